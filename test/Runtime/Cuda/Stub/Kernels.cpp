// The builtin kernels on the imagined GPU: their CPU forms, under the names of the entries that the runtime
// launches.
#include "Machine.h"
#include "par/kernels/Builtins.h"
#include "par/kernels/CudaBuiltins.h"
#include "par/kernels/LowPrecision.h"

#include <algorithm>

namespace par::stub {

namespace {

/// The builtin that an entry computes, with scratch memory or without; none for the other one of two stages. The first
/// stage of layer_norm_backward does all the work: the second has no bf16 and f16 variants.
struct Form {
  const kernels::BuiltinKernel *builtin = nullptr;
  bool coefficient = false, scratch = false;
};

Form formOf(std::string_view entry) {
  Form form;
  std::string_view name = entry.substr(std::string_view("par_").size());
  if (name == "sum_squares_parts" || name == "layer_norm_backward_sums")
    return form;
  form.scratch = name == "sum_squares_total" || name.starts_with("layer_norm_backward");
  form.coefficient = name.ends_with("_coef");
  if (name == "sum_squares_total" || form.coefficient)
    name = name.substr(0, name.rfind('_'));
  form.builtin = kernels::findBuiltin(name);
  return form;
}

/// Combines two members' values, by the number of the operation: add, max, min or multiply.
float join(uint64_t operation, float a, float b) {
  switch (operation) {
  case 1:
    return std::max(a, b);
  case 2:
    return std::min(a, b);
  case 3:
    return a * b;
  default:
    return a + b;
  }
}

/// par_reduce_f32: out, 16 sources, members, n, operation.
void joinSources(const std::vector<uint64_t> &p) {
  std::vector<float> total(p[18]);
  for (uint64_t member = 0; member < p[17]; ++member)
    for (uint64_t i = 0; i < p[18]; ++i) {
      float value = reinterpret_cast<const float *>(p[1 + member])[i];
      total[i] = member == 0 ? value : join(p[19], total[i], value);
    }
  std::copy(total.begin(), total.end(), reinterpret_cast<float *>(p[0]));
}

/// The same of bf16 or f16, joined in f32.
template <auto widen, auto narrow>
void joinNarrow(const std::vector<uint64_t> &p) {
  std::vector<uint16_t> total(p[18]);
  for (uint64_t i = 0; i < p[18]; ++i) {
    float joined = widen(reinterpret_cast<const uint16_t *>(p[1])[i]);
    for (uint64_t member = 1; member < p[17]; ++member)
      joined = join(p[19], joined, widen(reinterpret_cast<const uint16_t *>(p[1 + member])[i]));
    total[i] = narrow(joined);
  }
  std::copy(total.begin(), total.end(), reinterpret_cast<uint16_t *>(p[0]));
}

} // namespace

void registerBuiltins(Machine &machine) {
  machine.kernel("par_reduce_f32", 5, joinSources);
  machine.kernel("par_reduce_bf16", 5, joinNarrow<kernels::fromBF16, kernels::toBF16>);
  machine.kernel("par_reduce_f16", 5, joinNarrow<kernels::fromF16, kernels::toF16>);
  for (std::string_view entry : kernels::cudaEntries()) {
    Form form = formOf(entry);
    kernels::KernelFunction function = form.builtin ? kernels::builtinFunction(form.builtin->name) : nullptr;
    if (!function)
      continue;
    size_t operands = 0;
    for (const kernels::BuiltinOperand &operand : form.builtin->operands)
      operands += operand.onlyIf < 0 || form.coefficient;
    size_t skipped = form.scratch ? 1 : 0, immediates = form.builtin->immediates.size();
    machine.kernel(std::string(entry), operands + skipped + immediates, [=](const std::vector<uint64_t> &p) {
      std::vector<void *> pointers;
      for (size_t i = 0; i < operands; ++i)
        pointers.push_back(reinterpret_cast<void *>(p[i]));
      const uint64_t *imm = p.data() + operands + skipped;
      function(pointers.data(), imm, 0, kernels::builtinTiles(*form.builtin, {imm, immediates}));
    });
  }
}

} // namespace par::stub
