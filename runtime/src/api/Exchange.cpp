#include "api/Exchange.h"

#include "app/Results.h"
#include "par/files/Safetensors.h"

#include <algorithm>
#include <atomic>

namespace par::api {

/// The begin of so many bytes, on a page of its own.
uint64_t Exchange::take(uint64_t bytes) {
  constexpr uint64_t page = 4096;
  uint64_t begin = end;
  end += (bytes + page - 1) / page * page;
  return begin;
}

/// A number in the memory that the constructor sets aside first.
static std::atomic_ref<uint64_t> arrivals(std::span<std::byte> memory) {
  static_assert(std::atomic_ref<uint64_t>::is_always_lock_free, "other processes do not know this one's locks");
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t *>(memory.data()));
}

uint64_t Exchange::arrived() const { return arrivals(memory).load(std::memory_order_acquire); }

void Exchange::arrive(uint64_t number) const { arrivals(memory).store(number, std::memory_order_release); }

Exchange::Exchange(const format::Manifest &manifest) {
  take(sizeof(uint64_t));
  auto bytesOf = [](std::span<const int64_t> shape, format::DType type) {
    return static_cast<uint64_t>(core::elementCount(shape)) * format::sizeOf(type);
  };
  for (const format::Input &input : manifest.inputs) {
    uint64_t bytes = bytesOf(input.shape, input.type) * manifest.calls;
    uint64_t first = take(bytes); // a page that is never used takes no memory
    inputs.push_back({first, take(bytes)});
  }
  for (const format::Output &output : manifest.outputs)
    outputs.push_back(take(bytesOf(core::resultShape(output, manifest, manifest.batch), output.type) * manifest.calls));
  // Written values may be of a wider type than the tensor's.
  uint64_t largest = 0;
  for (const format::Tensor &tensor : manifest.tensors)
    largest = std::max<uint64_t>(largest, bytesOf(tensor.stored, format::DType::F64));
  tensors = take(largest);
}

} // namespace par::api
