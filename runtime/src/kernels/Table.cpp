// Names to code.
#include "LowPrecision.h"
#include "par/kernels/Builtins.h"

#include <iterator>
#include <utility>

namespace par::kernels {

#define PAR_KERNEL(NAME) void NAME(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1);
PAR_KERNEL(adamw)
PAR_KERNEL(sgd)
PAR_KERNEL(momentum)
PAR_KERNEL(adamwRows)
PAR_KERNEL(sgdRows)
PAR_KERNEL(momentumRows)
PAR_KERNEL(crossEntropy)
PAR_KERNEL(crossEntropyPadded)
PAR_KERNEL(crossEntropyShard)
PAR_KERNEL(crossEntropyBackward)
PAR_KERNEL(gatherRows)
PAR_KERNEL(scatterAddRows)
PAR_KERNEL(placeRows)
PAR_KERNEL(sumSquares)
PAR_KERNEL(rowMax)
PAR_KERNEL(softmax)
PAR_KERNEL(softmaxBackward)
PAR_KERNEL(layerNorm)
PAR_KERNEL(layerNormBackward)
PAR_KERNEL(convolution)
PAR_KERNEL(convolutionInputGrad)
PAR_KERNEL(convolutionFilterGrad)
PAR_KERNEL(convolutionLast)
PAR_KERNEL(convolutionLastAdd)
PAR_KERNEL(attentionF32)
PAR_KERNEL(attentionBackwardF32)
PAR_KERNEL(attentionBF16)
PAR_KERNEL(attentionF16)
PAR_KERNEL(attentionBackwardBF16)
PAR_KERNEL(attentionBackwardF16)
PAR_KERNEL(maxPool)
PAR_KERNEL(maxPoolGrad)
#undef PAR_KERNEL

/// No row has the name of one before: it would never be found.
template <typename Rows>
constexpr bool namedOnce(const Rows &rows) {
  for (const auto &row : rows)
    for (const auto *before = std::data(rows); before != &row; ++before)
      if (before->name == row.name)
        return false;
  return true;
}
static_assert(namedOnce(table::all), "a builtin kernel is registered twice");

/// The form in bf16 or f16 that is `row` of the table, by the f32 form.
template <size_t row>
static void narrowForm(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  const BuiltinKernel &kernel = table::all[row];
  static const KernelFunction inF32 = builtinFunction(formInF32(kernel.name));
  kernel.forCuda ? runOnCopies(kernel, inF32, ptr, imm) : runLowPrecision(kernel, inF32, ptr, imm, tile0, tile1);
}

/// The narrow form of that name, or null.
template <size_t... rows>
static KernelFunction findLowPrecision(std::string_view name, std::index_sequence<rows...>) {
  KernelFunction found = nullptr;
  ((found = table::all[rows].name == name ? &narrowForm<rows> : found), ...);
  return formInF32(name) != name ? found : nullptr;
}

KernelFunction builtinFunction(std::string_view name) {
  static constexpr struct {
    std::string_view name;
    KernelFunction function;
  } functions[] = {
      {"adamw", adamw},
      {"sgd", sgd},
      {"momentum", momentum},
      {"adamw_rows", adamwRows},
      {"sgd_rows", sgdRows},
      {"momentum_rows", momentumRows},
      {"cross_entropy", crossEntropy},
      {"cross_entropy_padded", crossEntropyPadded},
      {"cross_entropy_shard", crossEntropyShard},
      {"cross_entropy_backward", crossEntropyBackward},
      {"gather_rows", gatherRows},
      {"scatter_add_rows", scatterAddRows},
      {"place_rows", placeRows},
      {"sum_squares", sumSquares},
      {"row_max", rowMax},
      {"softmax", softmax},
      {"softmax_backward", softmaxBackward},
      {"layer_norm", layerNorm},
      {"layer_norm_backward", layerNormBackward},
      {"convolution", convolution},
      {"convolution_input_grad", convolutionInputGrad},
      {"convolution_filter_grad", convolutionFilterGrad},
      {"convolution_last", convolutionLast},
      {"convolution_last_add", convolutionLastAdd},
      {"attention", attentionF32},
      {"attention_backward", attentionBackwardF32},
      {"attention_bf16", attentionBF16},
      {"attention_f16", attentionF16},
      {"attention_backward_bf16", attentionBackwardBF16},
      {"attention_backward_f16", attentionBackwardF16},
      {"max_pool", maxPool},
      {"max_pool_grad", maxPoolGrad},
  };
  static_assert(namedOnce(functions), "a builtin kernel's function is registered twice");
  for (const auto &entry : functions)
    if (entry.name == name)
      return entry.function;
  return findLowPrecision(name, std::make_index_sequence<table::all.size()>());
}

} // namespace par::kernels
