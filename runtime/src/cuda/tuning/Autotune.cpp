#include "Autotune.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <limits>
#include <random>

namespace par::cuda {

namespace {

constexpr int rounds = 3, launches = 4;
/// A later proposal must be that much faster than the first one, so that noise does not choose.
constexpr double worthIt = 0.98, hopeless = 3;
constexpr uint64_t operandAlignment = 256, patternBytes = 1 << 20;

uint64_t aligned(uint64_t bytes) { return (bytes + operandAlignment - 1) / operandAlignment * operandAlignment; }

/// Bytes of the operands in the call's order.
std::vector<uint64_t> operandBytes(const format::Call &call) {
  uint64_t size = format::sizeOf(call.type);
  std::vector<uint64_t> bytes = {call.extent('a') * size, call.extent('b') * size};
  if (call.bias)
    bytes.push_back(static_cast<uint64_t>(call.n) * size);
  uint64_t result = call.extent('c') * format::sizeOf(call.typeC);
  if (call.hasAux())
    bytes.push_back(call.auxBytes());
  bytes.push_back(result);
  if (call.workspace)
    bytes.push_back(call.workspace);
  return bytes;
}

} // namespace

Autotune::Autotune(const Gpu &gpu, Stream stream, std::span<std::byte> lent)
    : gpu(gpu), stream(stream), begin(makeEvent(gpu, true)), end(makeEvent(gpu, true)), lent(lent) {}

bool Autotune::reserve(uint64_t bytes) {
  if (bytes <= filled)
    return true;
  if (bytes <= lent.size()) {
    fill(lent.data(), bytes);
    return true;
  }
  own = {};
  filled = 0;
  size_t free = 0, total = 0;
  gpu->check(gpu->memoryInfo(&free, &total), "cuMemGetInfo");
  if (bytes > free / 2)
    return false;
  own = DeviceBuffer(gpu, bytes, DeviceBuffer::Place::Device);
  fill(own.data(), bytes);
  return true;
}

/// Numbers from 1 to 2 in f32 and bf16, whose bits differ: a GPU draws less power for zeros, and clocks
/// higher.
void Autotune::fill(std::byte *where, uint64_t bytes) {
  memory = where, filled = bytes;
  auto address = reinterpret_cast<Address>(where);
  uint64_t part = std::min(bytes, patternBytes);
  DeviceBuffer pattern(gpu, patternBytes, DeviceBuffer::Place::Host);
  std::mt19937 random(1);
  for (uint64_t at = 0; at < patternBytes; at += sizeof(uint32_t)) {
    uint32_t word = 0x3f803f80 | (static_cast<uint32_t>(random()) & 0x007f007f);
    std::copy_n(reinterpret_cast<const std::byte *>(&word), sizeof word, pattern.data() + at);
  }
  gpu->check(gpu->copyToDevice(address, pattern.data(), part, stream), "cuMemcpyHtoDAsync");
  for (uint64_t at = part; at < bytes; at += part) {
    part = std::min(at, bytes - at);
    gpu->check(gpu->copy(address + at, address, part, stream), "cuMemcpyAsync");
  }
  gpu->check(gpu->streamSynchronize(stream), "cuStreamSynchronize");
}

/// Microseconds of one run, as the mean of some consecutive runs.
double Autotune::once(const Way &way, void *const *operands, int launches) {
  gpu->check(gpu->eventRecord(begin, stream), "cuEventRecord");
  for (int i = 0; i < launches; ++i)
    way(operands);
  gpu->check(gpu->eventRecord(end, stream), "cuEventRecord");
  gpu->check(gpu->streamSynchronize(stream), "cuStreamSynchronize");
  float milliseconds = 0;
  gpu->check(gpu->eventElapsed(&milliseconds, begin, end), "cuEventElapsedTime");
  return static_cast<double>(milliseconds) * 1000 / launches;
}

Autotune::Fastest Autotune::fastest(const std::vector<uint64_t> &sizes, const std::vector<Way> &ways) {
  uint64_t bytes = 0;
  for (uint64_t size : sizes)
    bytes += aligned(size);
  if (ways.size() == 1 || !reserve(bytes))
    return {};
  std::vector<void *> operands;
  std::byte *at = memory;
  for (uint64_t size : sizes) {
    operands.push_back(at);
    at += aligned(size);
  }
  std::vector<double> times(ways.size(), std::numeric_limits<double>::infinity());
  // Round by round, so that a changing clock affects all alike. The first round loads code and warms up; a proposal
  // that takes several times as long as another leaves.
  std::vector<double> first;
  for (const Way &way : ways) {
    once(way, operands.data(), 1);
    first.push_back(once(way, operands.data(), 1));
  }
  double limit = hopeless * *std::min_element(first.begin(), first.end());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < ways.size(); ++i)
      if (first[i] <= limit)
        times[i] = std::min(times[i], once(ways[i], operands.data(), launches));
  auto least = static_cast<size_t>(std::min_element(times.begin(), times.end()) - times.begin());
  if (times[least] > worthIt * times[0])
    least = 0;
  return {least, times[least]};
}

TunedGemm Autotune::fastest(Gemm &product, const format::Call &call, const std::vector<Algorithms> &proposed) {
  std::vector<Way> ways;
  for (const Algorithms &algorithms : proposed)
    ways.push_back([&](void *const *operands) {
      product.choose(algorithms);
      product.run(operands, stream);
    });
  Fastest found = fastest(operandBytes(call), ways);
  return {proposed[found.way], found.microseconds};
}

} // namespace par::cuda
