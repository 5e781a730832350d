// Times the algorithms of products on a GPU, on memory of its own.
#pragma once

#include "cuda/TuningFile.h"

namespace par::cuda {

class Trial {
public:
  Trial(const Gpu &gpu, Stream stream);
  /// The fastest of what was proposed; the first of it where there is no choice, or not enough memory for a
  /// trial.
  TunedProduct fastest(Product &product, const format::Call &call,
                       const std::vector<Algorithms> &proposed);

private:
  bool reserve(uint64_t bytes);
  double once(Product &product, void *const *operands);

  const Gpu &gpu;
  Stream stream;
  Owned<Event> begin, end;
  Block memory;
};

} // namespace par::cuda
