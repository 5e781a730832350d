#include "api/Exchange.h"

#include "app/Results.h"
#include "par/files/Safetensors.h"

#include <algorithm>

namespace par::api {

/// The begin of so many bytes, on a page of its own.
uint64_t Exchange::take(uint64_t bytes) {
  constexpr uint64_t page = 4096;
  uint64_t begin = end;
  end += (bytes + page - 1) / page * page;
  return begin;
}

Exchange::Exchange(const format::Manifest &manifest) {
  auto bytesOf = [](std::span<const int64_t> shape, format::DType type) {
    return static_cast<uint64_t>(core::elementCount(shape)) * format::sizeOf(type);
  };
  for (const format::Input &input : manifest.inputs)
    inputs.push_back(take(bytesOf(input.shape, input.type) * manifest.calls));
  for (const format::Output &output : manifest.outputs)
    outputs.push_back(take(bytesOf(core::resultShape(output, manifest, manifest.batch), output.type) * manifest.calls));
  // Written values may be of a wider type than the tensor's.
  uint64_t largest = 0;
  for (const format::Tensor &tensor : manifest.tensors)
    largest = std::max<uint64_t>(largest, bytesOf(tensor.stored, format::DType::F64));
  tensors = take(largest);
}

} // namespace par::api
