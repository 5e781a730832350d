// Names to code.
#include "par/kernels/Builtins.h"

namespace par::kernels {

#define PAR_KERNEL(NAME) void NAME(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1);
PAR_KERNEL(adamw)
PAR_KERNEL(sgd)
PAR_KERNEL(momentum)
PAR_KERNEL(crossEntropy)
PAR_KERNEL(crossEntropyShard)
PAR_KERNEL(crossEntropyBackward)
PAR_KERNEL(gatherRows)
PAR_KERNEL(scatterAddRows)
PAR_KERNEL(sumSquares)
PAR_KERNEL(rowMax)
PAR_KERNEL(softmax)
PAR_KERNEL(softmaxBackward)
PAR_KERNEL(layerNorm)
PAR_KERNEL(layerNormBackward)
PAR_KERNEL(convolution)
PAR_KERNEL(convolutionInputGrad)
PAR_KERNEL(convolutionFilterGrad)
PAR_KERNEL(maxPool)
PAR_KERNEL(maxPoolGrad)
#undef PAR_KERNEL

KernelFunction builtinFunction(std::string_view name) {
  static constexpr struct {
    std::string_view name;
    KernelFunction function;
  } functions[] = {
      {"adamw", adamw},
      {"sgd", sgd},
      {"momentum", momentum},
      {"cross_entropy", crossEntropy},
      {"cross_entropy_shard", crossEntropyShard},
      {"cross_entropy_backward", crossEntropyBackward},
      {"gather_rows", gatherRows},
      {"scatter_add_rows", scatterAddRows},
      {"sum_squares", sumSquares},
      {"row_max", rowMax},
      {"softmax", softmax},
      {"softmax_backward", softmaxBackward},
      {"layer_norm", layerNorm},
      {"layer_norm_backward", layerNormBackward},
      {"convolution", convolution},
      {"convolution_input_grad", convolutionInputGrad},
      {"convolution_filter_grad", convolutionFilterGrad},
      {"max_pool", maxPool},
      {"max_pool_grad", maxPoolGrad},
  };
  for (const auto &entry : functions)
    if (entry.name == name)
      return entry.function;
  return nullptr;
}

} // namespace par::kernels
