#include "par/data/Elements.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

namespace par::core {

/// Numbers with commas between; nullopt if they are not that.
static std::optional<std::vector<float>> readNumbers(std::string_view text) {
  std::vector<float> numbers;
  for (const char *at = text.data(), *end = at + text.size(); at <= end; ++at) {
    float number = 0;
    auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || !std::isfinite(number) || (next != end && *next != ','))
      return std::nullopt;
    numbers.push_back(number);
    at = next;
  }
  return numbers;
}

bool readPixels(const std::string &text, PixelFeeds &feeds) {
  size_t equals = text.find('='), slash = text.find('/', equals == std::string::npos ? text.size() : equals);
  std::string name = text.substr(0, equals);
  Pixels pixels;
  if (equals != std::string::npos) {
    if (slash == std::string::npos)
      return false;
    std::string_view numbers = text;
    auto mean = readNumbers(numbers.substr(equals + 1, slash - equals - 1)),
         spread = readNumbers(numbers.substr(slash + 1));
    if (!mean || !spread || mean->size() != spread->size())
      return false;
    for (float each : *spread)
      if (!(each > 0))
        return false;
    pixels = {*mean, *spread};
  }
  return !name.empty() && feeds.emplace(name, pixels).second;
}

bool converts(DType from, DType to) {
  if (from == to || widens(from, to))
    return true;
  return (isFloat(from) && isFloat(to)) || (isInteger(from) && isInteger(to));
}

bool isRounded(DType from, DType to) { return from != to && isFloat(from) && isFloat(to) && !widens(from, to); }

/// An integer keeps its value if it has it after the way there and back, and its sign.
static uint64_t convertIntegers(DType from, const std::byte *data, DType to, std::byte *result, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    int64_t value = integerAt(from, data, i);
    std::memcpy(result + i * format::sizeOf(to), &value, format::sizeOf(to)); // the low bytes, which come first
    bool turned = value < 0 && (from == DType::U64) != (to == DType::U64);
    if (turned || integerAt(to, result, i) != value)
      return i;
  }
  return count;
}

uint64_t convertData(DType from, const std::byte *data, DType to, std::byte *result, uint64_t count) {
  if (isInteger(from) && isInteger(to) && !widens(from, to))
    return convertIntegers(from, data, to, result, count);
  if (isRounded(from, to))
    return static_cast<uint64_t>(convertElements(result, to, data, from, static_cast<int64_t>(count)));
  widen(from, data, to, result, count);
  return count;
}

void convertPixels(const std::byte *data, const Pixels &pixels, const format::Input &input, std::byte *result,
                   uint64_t count) {
  uint64_t channels = pixels.mean.size(), plane = std::max<uint64_t>(1, count / channels);
  uint64_t each = format::sizeOf(input.type);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t channel = std::min(i / plane, channels - 1);
    float value =
        (static_cast<float>(std::to_integer<int>(data[i])) / 255 - pixels.mean[channel]) / pixels.spread[channel];
    convertElements(result + i * each, input.type, reinterpret_cast<const std::byte *>(&value), DType::F32, 1);
  }
}

} // namespace par::core
