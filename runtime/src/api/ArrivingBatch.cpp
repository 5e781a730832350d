#include "api/ArrivingBatch.h"

#include <chrono>
#include <thread>

namespace par::api {

ArrivingBatch::ArrivingBatch(const format::Manifest &manifest, const Exchange &exchange)
    : FedBatch(manifest, rowsOfCall(manifest)), exchange(exchange) {}

void ArrivingBatch::expect(const format::Manifest &manifest, const FedArrays &arrays, uint64_t next) {
  clear();
  number = next;
  for (const auto &[index, array] : arrays)
    feed(manifest.inputs[index].name, array);
}

/// The wait has an end, as the caller may be gone; the next run then copies the rows itself.
bool ArrivingBatch::isThere() const {
  using namespace std::chrono_literals;
  auto end = std::chrono::steady_clock::now() + 200ms;
  while (exchange.arrived() < number) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    std::this_thread::sleep_for(20us);
  }
  return true;
}

} // namespace par::api
