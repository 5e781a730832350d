#include "par/data/InputChecks.h"

#include "par/files/Convert.h"
#include "par/messages/Failure.h"

#include <algorithm>

namespace par::core {

using format::Input;
using format::Limits;

static int64_t minOf(const Limits &run) { return run.fromEnd ? -run.limit : 0; }

static std::string rangeOf(const Limits &run) {
  if (run.limit <= 0)
    return "";
  return core::format(" in [{}, {})", minOf(run), run.limit) +
         (run.ignored ? core::format(" or the ignored {}", *run.ignored) : "");
}

std::string describeRange(const Input &input) { return input.limits.size() == 1 ? rangeOf(input.limits.front()) : ""; }

/// "[2, 0]": the indices of element `n` of a row, or of an input without rows.
static std::string placeOf(const Input &input, uint64_t n) {
  std::string place;
  for (size_t dim = input.shape.size(); dim-- > (input.microbatched ? 1 : 0);) {
    auto size = static_cast<uint64_t>(input.shape[dim]);
    place = std::to_string(n % size) + (place.empty() ? "" : ", ") + place;
    n /= size;
  }
  return "[" + place + "]";
}

void checkArray(const Input &input, const std::string &name, DType type, std::span<const int64_t> shape,
                const std::string &place) {
  if (type != input.type && !widens(type, input.type))
    throw Failure::at(place, Message::arrayType, name, describeArray(type, shape), input.name,
                      format::toString(input.type), describeRange(input));
  checkShape(input, name, type, shape, place);
}

void checkShape(const Input &input, const std::string &name, DType type, std::span<const int64_t> shape,
                const std::string &place) {
  size_t skip = input.microbatched ? 1 : 0;
  bool fits = shape.size() == input.shape.size();
  for (size_t d = skip; fits && d < input.shape.size(); ++d)
    fits = shape[d] == input.shape[d];
  if (!fits)
    throw Failure::at(place, Message::arrayShape, name, describeArray(type, shape), input.name,
                      describeArray(input.type, std::span(input.shape).subspan(skip)));
}

std::string describeInputs(const format::Manifest &manifest) {
  NameList names;
  for (const Input &input : manifest.inputs)
    names.add("\"" + format::excerpt(input.name, 60) + "\" " + describeArray(input.type, input.shape));
  return names.empty() ? "none" : names.str();
}

static bool isWithin(const Limits &run, int64_t value) {
  return run.limit == 0 || (value >= minOf(run) && value < run.limit) || value == run.ignored;
}

static Failure outside(const Input &input, const Limits &run, const ArrayPlace &array, uint64_t n, int64_t value) {
  bool isOne = input.limits.size() == 1 && array.row;
  std::string place = array.row ? core::format("in row {}", *array.row) : "at " + placeOf(input, n);
  auto failure =
      Failure::at(std::string(array.file), Message::valueRange, array.name, value, place, input.name,
                  format::toString(input.type), rangeOf(run) + (isOne || !array.row ? "" : " at " + placeOf(input, n)));
  if (value < 0 && !run.ignored && !run.fromEnd)
    return std::move(failure).note(core::format(textOf(Message::valuePads), input.name, run.limit - 1));
  return failure;
}

void checkRange(const Input &input, const ArrayPlace &place, const std::byte *data, uint64_t elements) {
  if (!isInteger(input.type) || input.limits.empty())
    return;
  for (uint64_t i = 0; i < elements;)
    for (const Limits &run : input.limits)
      for (uint64_t end = i + run.count; i < end; ++i)
        if (int64_t value = integerAt(input.type, data, i); !isWithin(run, value))
          throw outside(input, run, place, i, value);
}

} // namespace par::core
