// Times the algorithms of matmuls on a GPU.
#pragma once

#include "TuningFile.h"

#include <functional>
#include <span>

namespace par::cuda {

class Autotune {
public:
  /// On `lent` memory of the GPU, which is overwritten, or where that is too small on memory of its own.
  Autotune(const Gpu &gpu, Stream stream, std::span<std::byte> lent);
  /// The fastest proposal; the first one without a choice, or without enough memory for a trial.
  TunedGemm fastest(Gemm &product, const format::Call &call, const std::vector<Algorithms> &proposed);

  /// One of several ways to compute the same, on operands.
  using Way = std::function<void(void *const *operands)>;
  struct Fastest {
    size_t way = 0;
    double microseconds = 0; ///< 0: not timed
  };
  /// The same of ways that read and write operands of so many bytes.
  Fastest fastest(const std::vector<uint64_t> &bytes, const std::vector<Way> &ways);

private:
  bool reserve(uint64_t bytes);
  void fill(std::byte *memory, uint64_t bytes);
  double once(const Way &way, void *const *operands, int launches);

  const Gpu &gpu;
  Stream stream;
  Owned<Event> begin, end;
  std::span<std::byte> lent;
  DeviceBuffer own;
  std::byte *memory = nullptr;
  uint64_t filled = 0; ///< bytes of `memory`
};

} // namespace par::cuda
