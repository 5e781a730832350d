// One batch of made-up samples, for measurements: the values that a step reads change no time of it, as long as they
// are ordinary numbers, and indices within their limits.
#include "par/data/Data.h"

#include "par/files/Convert.h"
#include "par/files/Random.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cstring>

namespace par::core {
namespace {

using format::DType;
using format::Input;

uint64_t elementsOf(const Input &input) {
  uint64_t elements = 1;
  for (int64_t size : input.shape)
    elements *= static_cast<uint64_t>(size);
  return elements;
}

/// The limit of one element; 2 where nothing is known (a mask), 1 where the element is an index of unknown limit.
uint64_t limitOf(const Input &input, uint64_t element) {
  uint64_t period = 0;
  for (const format::Limits &run : input.limits)
    period += run.count;
  if (period == 0)
    return 2;
  uint64_t place = element % period;
  for (const format::Limits &run : input.limits) {
    if (place < run.count)
      return static_cast<uint64_t>(std::max<int64_t>(1, run.limit));
    place -= run.count;
  }
  return 1;
}

class MadeUpDataset : public Dataset {
public:
  MadeUpDataset(const format::Manifest &manifest, uint64_t seed) : batch(manifest.batch * manifest.calls) {
    for (const Input &input : manifest.inputs)
      values[input.name] = make(input, seed, input.microbatched ? manifest.calls : 1);
  }

  uint64_t rows() const override { return batch; }
  std::string describe() const override { return core::format("made up: {} rows", batch); }
  bool has(const std::string &input) const override { return values.count(input) != 0; }
  std::string feeds() const override { return "made-up data feeds all inputs"; }

  const std::byte *row(const Input &input, uint64_t row, std::vector<std::byte> &) const override {
    const std::vector<std::byte> &all = values.at(input.name);
    return all.data() + all.size() / batch * row;
  }
  const std::byte *whole(const Input &input) const override { return values.at(input.name).data(); }

private:
  /// `times` as many values as one call reads: normal numbers as floats, integers below their limits.
  static std::vector<std::byte> make(const Input &input, uint64_t seed, uint64_t times) {
    uint64_t elements = elementsOf(input) * times, each = format::sizeOf(input.type);
    std::vector<std::byte> bytes(elements * each);
    uint32_t stream = randomStream(input.name);
    for (uint64_t i = 0; i < elements; ++i) {
      std::byte *to = bytes.data() + i * each;
      if (isFloat(input.type)) {
        auto number = static_cast<float>(randomNormal(seed, i, stream, 0));
        convertElements(to, input.type, reinterpret_cast<const std::byte *>(&number), DType::F32, 1);
      } else {
        uint64_t number = randomWords(seed, i, stream, 0)[0] % limitOf(input, i);
        std::memcpy(to, &number, each); // little-endian: the low bytes are the number in every width
      }
    }
    return bytes;
  }

  uint64_t batch;
  std::map<std::string, std::vector<std::byte>> values;
};

} // namespace

std::unique_ptr<Dataset> makeUpData(const format::Manifest &manifest, uint64_t seed) {
  return std::make_unique<MadeUpDataset>(manifest, seed);
}

} // namespace par::core
