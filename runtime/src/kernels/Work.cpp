#include "par/kernels/Work.h"

#include "par/kernels/Builtins.h"

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

/// FLOP of the matmuls of an attention, whose immediates begin with batch, heads, groups of heads, queries, keys and
/// both head dims: two matmuls of the size of the scores forward, five backward; half of that if it is causal.
static int64_t attentionFlops(const Kernel &kernel, const Instruction &instruction) {
  auto imm = [&](size_t at) { return instruction.imms[at].value; };
  bool backward = kernel.symbol.rfind("attention_backward", 0) == 0;
  int64_t scores = imm(0) * imm(1) * imm(3) * imm(4), each = backward ? 3 * imm(5) + 2 * imm(6) : imm(5) + imm(6);
  return 2 * scores * each / (imm(7) ? 2 : 1);
}

DType formatOf(const Kernel &kernel) {
  if (!kernel.builtin)
    return DType::F32;
  std::string_view name = kernel.symbol;
  return name.ends_with("_bf16") ? DType::BF16 : name.ends_with("_f16") ? DType::F16 : DType::F32;
}

bool isAttention(const Kernel &kernel) { return kernel.builtin && kernel.symbol.starts_with("attention"); }

bool isConvolution(const Kernel &kernel) { return kernel.builtin && kernel.symbol.starts_with("convolution"); }

/// A convolution's immediates begin with images, groups, channels of one, outputs, and have the window's dims at 7 and
/// the windows' numbers at 10 (par/kernels/Builtins.h).
int64_t flopsOf(const Kernel &kernel, const Instruction &instruction) {
  if (!kernel.builtin)
    return kernel.flops;
  if (isAttention(kernel) && instruction.imms.size() >= AttentionSizes::scalars)
    return attentionFlops(kernel, instruction);
  if (!isConvolution(kernel) || instruction.imms.size() != convolutionImmediateCount)
    return 0;
  int64_t flops = 2;
  for (size_t at : {0, 2, 3, 7, 8, 9, 10, 11, 12})
    flops *= instruction.imms[at].value;
  return flops;
}

} // namespace par::kernels
