#include "par/data/FedBatch.h"

#include "par/data/InputChecks.h"
#include "par/files/Convert.h"
#include "par/format/NearestWord.h"
#include "par/messages/Failure.h"

#include <algorithm>

namespace par::core {

using format::Input;

namespace {

uint64_t elementsOfRow(const Input &input) {
  return static_cast<uint64_t>(elementCount(input.microbatched ? std::span(input.shape).subspan(1) : input.shape));
}

/// `elements` at `data` in the input's type, in place or in `scratch`.
const std::byte *widened(const Input &input, const FedArray &array, const std::byte *data, uint64_t elements,
                         std::vector<std::byte> &scratch) {
  if (array.type == input.type)
    return data;
  scratch.resize(elements * format::sizeOf(input.type));
  widen(array.type, data, input.type, scratch.data(), elements);
  return scratch.data();
}

} // namespace

FedBatch::FedBatch(const format::Manifest &manifest, uint64_t rows)
    : manifest(manifest), count(rows), fed(manifest.inputs.size()) {}

void FedBatch::feed(const std::string &name, FedArray array) {
  const Input *input = manifest.findInput(name);
  if (!input)
    throw Failure::at(name, Message::fedUnknown, name, describeInputs(manifest)).exitsWith(exitUsage);
  if (!array.data && elementCount(array.shape) > 0)
    throw Failure::at(name, Message::fedNull, name).exitsWith(exitUsage);
  checkArray(*input, name, array.type, array.shape, name);
  if (input->microbatched && static_cast<uint64_t>(array.shape[0]) != count)
    throw Failure::at(name, Message::fedRows, name, array.shape[0], count);
  fed[static_cast<size_t>(input - manifest.inputs.data())] = std::move(array);
}

/// Names of the inputs without an array; "" where there is none.
std::string FedBatch::missing(std::span<const size_t> inputs) const {
  NameList names;
  for (size_t i : inputs)
    if (!fed[i].data)
      names.add("\"" + manifest.inputs[i].name + "\" " +
                describeArray(manifest.inputs[i].type, manifest.inputs[i].shape));
  return names.empty() ? "" : names.str();
}

void FedBatch::check(const std::string &place, std::span<const size_t> inputs) const {
  if (std::string names = missing(inputs); !names.empty())
    throw Failure::at(place, Message::fedMissing, names).exitsWith(exitUsage);
  std::vector<std::byte> scratch;
  for (size_t index : inputs) {
    const Input &input = manifest.inputs[index];
    if (!isInteger(input.type) || input.limits.empty())
      continue;
    const FedArray &array = arrayOf(input);
    uint64_t elements = elementsOfRow(input), bytes = elements * format::sizeOf(array.type);
    for (uint64_t row = 0; row < (input.microbatched ? count : 1); ++row) {
      ArrayPlace at{input.name, input.name, input.microbatched ? std::optional(row) : std::nullopt};
      checkRange(input, at, widened(input, array, array.data + row * bytes, elements, scratch), elements);
    }
  }
}

void FedBatch::clear() { fed.assign(fed.size(), {}); }

bool FedBatch::hasAny() const {
  return std::any_of(fed.begin(), fed.end(), [](const FedArray &array) { return array.data; });
}

const FedArray &FedBatch::arrayOf(const Input &input) const {
  return fed[static_cast<size_t>(manifest.findInput(input.name) - manifest.inputs.data())];
}

bool FedBatch::has(const std::string &input) const {
  const Input *found = manifest.findInput(input);
  return found && arrayOf(*found).data;
}

const std::byte *FedBatch::row(const Input &input, uint64_t row, std::vector<std::byte> &scratch) const {
  const FedArray &array = arrayOf(input);
  uint64_t elements = elementsOfRow(input);
  return widened(input, array, array.data + row * elements * format::sizeOf(array.type), elements, scratch);
}

const std::byte *FedBatch::whole(const Input &input) const {
  const FedArray &array = arrayOf(input);
  return widened(input, array, array.data, elementsOfRow(input), wide);
}

} // namespace par::core
