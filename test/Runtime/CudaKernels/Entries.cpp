// All kernels, and their names.
#include "Entries.h"

#include "kernels/cuda/Builtins.cu"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

using Words = std::span<const uint64_t>;
using Kernel = std::function<void(Words)>;

template <typename... Parameters>
Kernel kernel(void (*function)(Parameters...)) {
  return [function](Words words) {
    if (words.size() != sizeof...(Parameters))
      throw std::runtime_error(std::to_string(words.size()) + " parameters for " +
                               std::to_string(sizeof...(Parameters)));
    [&]<size_t... i>(std::index_sequence<i...>) {
      function(std::bit_cast<Parameters>(words[i])...);
    }(std::index_sequence_for<Parameters...>());
  };
}

const std::map<std::string_view, Kernel> &kernels() {
  static const std::map<std::string_view, Kernel> all{
#define PAR_CUDA_ENTRY(NAME) {#NAME, kernel(NAME)},
#define PAR_CUDA_REDUCTION(TYPE)
#include "kernels/cuda/Entries.def"
  };
  return all;
}

using Reduce = void (*)(void *, par::kernels::CudaSources, uint64_t, uint64_t, uint64_t);
const std::map<std::string_view, Reduce> &reductions() {
  static const std::map<std::string_view, Reduce> all{
#define PAR_CUDA_ENTRY(NAME)
#define PAR_CUDA_REDUCTION(TYPE) {"par_reduce_" #TYPE, par_reduce_##TYPE},
#include "kernels/cuda/Entries.def"
  };
  return all;
}

} // namespace

void *allocateReachable(size_t bytes) { return ::operator new(bytes); }
void releaseReachable(void *memory, size_t) { ::operator delete(memory); }

void launchEntry(const par::kernels::CudaStage &stage, std::span<const uint64_t> parameters, uint64_t seed) {
  const Kernel &kernel = kernels().at(stage.entry);
  emulation::launch({stage.grid, stage.block, stage.shared}, [&] { kernel(parameters); }, seed);
}

void launchReduce(const par::kernels::CudaStage &stage, void *out, const par::kernels::CudaSources &sources,
                  uint64_t members, uint64_t n, uint64_t op, uint64_t seed) {
  Reduce function = reductions().at(stage.entry);
  emulation::launch({stage.grid, stage.block, stage.shared}, [&] { function(out, sources, members, n, op); }, seed);
}
