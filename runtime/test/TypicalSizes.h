// Builtins at the sizes of a model that is trained: GPT-2 124M, pools as of ResNet-50.
#pragma once

#include "par/kernels/Builtins.h"

#include <vector>

namespace par::kernels {

inline constexpr uint64_t typicalTokens = 16 << 10, typicalWidth = 768, typicalVocabulary = 50257;

/// Immediates of a builtin at these sizes, by their names; those of no size are 0.
inline std::vector<uint64_t> typicalImmediates(const BuiltinKernel &kernel, uint64_t tokens = typicalTokens,
                                               uint64_t vocabulary = typicalVocabulary) {
  bool classes = kernel.name.starts_with("cross_entropy") || kernel.name.starts_with("row_max");
  std::vector<uint64_t> imm;
  for (const BuiltinImmediate &immediate : kernel.immediates) {
    std::string_view name = immediate.name;
    imm.push_back(name == "n"       ? kernel.name.ends_with("rows") ? tokens : vocabulary * typicalWidth
                  : name == "rows"  ? kernel.name.ends_with("_rows") ? vocabulary : tokens
                  : name == "cols"  ? classes ? vocabulary : typicalWidth
                  : name == "total" ? vocabulary
                  : name == "width" ? typicalWidth
                                    : 0);
  }
  if (kernel.name.starts_with("max_pool")) // 112 x 112, windows of 3 x 3 every 2
    imm = {64 * 64, 1, 112, 112, 1, 3, 3, 1, 56, 56, 1, 2, 2, 0, 1, 1, 0, 1, 1, 1, 1, 1};
  return imm;
}

} // namespace par::kernels
