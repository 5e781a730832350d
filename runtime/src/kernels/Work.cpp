#include "par/kernels/Work.h"

#include <algorithm>

namespace par::kernels {

using format::DType;
using format::Instruction;
using format::Kernel;
using format::Operand;

/// Whether an earlier operand reads another part of the same memory.
static bool isReadBefore(const Instruction &instruction, size_t index) {
  const Operand &operand = instruction.operands[index];
  return operand.access == format::Access::Read &&
         std::any_of(instruction.operands.begin(), instruction.operands.begin() + static_cast<std::ptrdiff_t>(index),
                     [&](const Operand &other) {
                       return other.buffer == operand.buffer && other.access == format::Access::Read;
                     });
}

int64_t movedBytes(const Kernel &kernel, const Instruction &instruction) {
  int64_t bytes = 0;
  for (size_t i = 0; i < std::min(kernel.operands.size(), instruction.operands.size()); ++i) {
    format::Access access = kernel.operands[i].access;
    bool twice = access == format::Access::ReadWrite || access == format::Access::Accumulate;
    if (!isReadBefore(instruction, i))
      bytes += static_cast<int64_t>(kernel.operands[i].bytes) * (twice ? 2 : 1);
  }
  return bytes;
}

DType formatOf(const Kernel &kernel) {
  if (!kernel.builtin)
    return DType::F32;
  std::string_view name = kernel.symbol;
  return name.ends_with("_bf16") ? DType::BF16 : name.ends_with("_f16") ? DType::F16 : DType::F32;
}

bool isAttention(const Kernel &kernel) { return kernel.builtin && kernel.symbol.starts_with("attention"); }

bool isConvolution(const Kernel &kernel) { return kernel.builtin && kernel.symbol.starts_with("convolution"); }

} // namespace par::kernels
