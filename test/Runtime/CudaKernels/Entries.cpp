// All kernels, and their names. A name that is missing here is missed by the tests of its builtin.
#include "Entries.h"

#include "kernels/cuda/Builtins.cu"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

using Words = std::span<const uint64_t>;
using Kernel = std::function<void(Words)>;

template <typename... Parameters> Kernel kernel(void (*function)(Parameters...)) {
  return [function](Words words) {
    if (words.size() != sizeof...(Parameters))
      throw std::runtime_error(std::to_string(words.size()) + " parameters for " + std::to_string(sizeof...(Parameters)));
    [&]<size_t... i>(std::index_sequence<i...>) {
      function(std::bit_cast<Parameters>(words[i])...);
    }(std::index_sequence_for<Parameters...>());
  };
}

#define PAR_NAMED(ENTRY) {#ENTRY, kernel(ENTRY)}
const std::map<std::string_view, Kernel> &kernels() {
  static const std::map<std::string_view, Kernel> all{
      PAR_NAMED(par_adamw),
      PAR_NAMED(par_adamw_coef),
      PAR_NAMED(par_sgd),
      PAR_NAMED(par_sgd_coef),
      PAR_NAMED(par_momentum),
      PAR_NAMED(par_momentum_coef),
      PAR_NAMED(par_cross_entropy),
      PAR_NAMED(par_cross_entropy_shard),
      PAR_NAMED(par_cross_entropy_backward),
      PAR_NAMED(par_row_max),
      PAR_NAMED(par_softmax),
      PAR_NAMED(par_softmax_backward),
      PAR_NAMED(par_layer_norm),
      PAR_NAMED(par_layer_norm_backward),
      PAR_NAMED(par_layer_norm_backward_sums),
      PAR_NAMED(par_gather_rows),
      PAR_NAMED(par_scatter_add_rows),
      PAR_NAMED(par_sum_squares),
      PAR_NAMED(par_sum_squares_parts),
      PAR_NAMED(par_sum_squares_total),
      PAR_NAMED(par_max_pool),
      PAR_NAMED(par_max_pool_grad),
      PAR_NAMED(par_copy),
  };
  return all;
}

using Reduce = void (*)(void *, par::kernels::CudaSources, uint64_t, uint64_t, uint64_t);
#define PAR_REDUCTION(TYPE) {"par_reduce_" #TYPE, par_reduce_##TYPE}
const std::map<std::string_view, Reduce> &reductions() {
  static const std::map<std::string_view, Reduce> all{
      PAR_REDUCTION(f64), PAR_REDUCTION(f32), PAR_REDUCTION(bf16), PAR_REDUCTION(f16), PAR_REDUCTION(i64),
      PAR_REDUCTION(i32), PAR_REDUCTION(i16), PAR_REDUCTION(i8),   PAR_REDUCTION(u8),  PAR_REDUCTION(i1)};
  return all;
}

} // namespace

void launchEntry(const par::kernels::CudaStage &stage, std::span<const uint64_t> parameters, uint64_t seed) {
  const Kernel &kernel = kernels().at(stage.entry);
  emulation::launch({stage.grid, stage.block, stage.shared}, [&] { kernel(parameters); }, seed);
}

void launchReduce(const par::kernels::CudaStage &stage, void *out, const par::kernels::CudaSources &sources,
                  uint64_t members, uint64_t n, uint64_t op, uint64_t seed) {
  Reduce function = reductions().at(stage.entry);
  emulation::launch({stage.grid, stage.block, stage.shared}, [&] { function(out, sources, members, n, op); }, seed);
}
