#include "Expansion.h"
#include "par/kernels/Builtins.h"

#include <algorithm>

using namespace par;
using namespace par::format;

/// Whether an earlier operand reads another part of the same memory: queries, keys and values that one matmul gave.
static bool isReadBefore(const Instruction &instruction, size_t index) {
  const Operand &operand = instruction.operands[index];
  return operand.access == Access::Read &&
         std::any_of(instruction.operands.begin(), instruction.operands.begin() + index, [&](const Operand &other) {
           return other.buffer == operand.buffer && other.access == Access::Read;
         });
}

/// Bytes that a kernel reads and writes.
static int64_t movedBytes(const Kernel &kernel, const Instruction &instruction) {
  int64_t bytes = 0;
  for (size_t i = 0; i < std::min(kernel.operands.size(), instruction.operands.size()); ++i) {
    bool twice = kernel.operands[i].access == Access::ReadWrite || kernel.operands[i].access == Access::Accumulate;
    if (!isReadBefore(instruction, i))
      bytes += kernel.operands[i].bytes * (twice ? 2 : 1);
  }
  return bytes;
}

static int64_t productTime(const Call &call, const Hardware &hardware) {
  int64_t batch = 1;
  for (int64_t dim : call.batch)
    batch *= dim;
  // Operands that repeat over the batch are counted as often as they are read.
  int64_t bytes = (call.m * call.k + call.k * call.n) * sizeOf(call.type) +
                  call.m * call.n * (call.beta == 0 ? 1 : 2) * sizeOf(call.typeC);
  return hardware.localTime(2 * batch * call.m * call.n * call.k, batch * bytes, call.type);
}

/// FLOP of the matmuls of an attention, whose immediates begin with batch, heads, groups of heads, queries, keys and
/// both head dims: two matmuls of the size of the scores forward, five backward; half of that if it is causal.
static int64_t attentionFlops(const Kernel &kernel, const Instruction &instruction) {
  auto imm = [&](size_t at) { return instruction.imms[at].value; };
  bool backward = kernel.symbol.rfind("attention_backward", 0) == 0;
  int64_t scores = imm(0) * imm(1) * imm(3) * imm(4), each = backward ? 3 * imm(5) + 2 * imm(6) : imm(5) + imm(6);
  return 2 * scores * each / (imm(7) ? 2 : 1);
}

/// The format of a builtin's operands, by its name.
static DType formatOf(const Kernel &kernel) {
  if (!kernel.builtin)
    return DType::F32;
  std::string_view name = kernel.symbol;
  return name.ends_with("_bf16") ? DType::BF16 : name.ends_with("_f16") ? DType::F16 : DType::F32;
}

/// Operations of generated code, or of a builtin; 0 for those that memory bounds. A convolution's immediates begin with
/// images, groups, channels of one, outputs, and have the window's dims at 7 and the windows' numbers at 10
/// (par/kernels/Builtins.h).
static int64_t flopsOf(const Kernel &kernel, const Instruction &instruction) {
  if (!kernel.builtin)
    return kernel.flops;
  if (kernel.symbol.rfind("attention", 0) == 0 && instruction.imms.size() >= kernels::AttentionSizes::scalars)
    return attentionFlops(kernel, instruction);
  if (kernel.symbol.rfind("convolution", 0) != 0 || instruction.imms.size() != kernels::convolutionImmediateCount)
    return 0;
  int64_t flops = 2;
  for (size_t at : {0, 2, 3, 7, 8, 9, 10, 11, 12})
    flops *= instruction.imms[at].value;
  return flops;
}

bool par::crossesSpaces(const Program &program, const Instruction &instruction) {
  auto space = [&](const Operand &operand) { return program.buffers[operand.buffer].space; };
  return instruction.op == Op::Copy && space(instruction.operands[0]) != space(instruction.operands[1]);
}

int64_t par::latencyOf(const Instruction &instruction, RankGroup group, const Hardware &hardware) {
  return instruction.op == Op::Coll ? hardware.collectiveLatency(instruction.coll, group)
                                    : hardware.transferTime(0, group.hosts > 1);
}

int64_t par::instructionTime(const Program &program, const Instruction &instruction, RankGroup group,
                             const Hardware &hardware) {
  int64_t bytes = instruction.n * sizeOf(instruction.type);
  switch (instruction.op) {
  case Op::Kernel:
    return hardware.localTime(flopsOf(program.kernels[instruction.kernel], instruction),
                              movedBytes(program.kernels[instruction.kernel], instruction),
                              formatOf(program.kernels[instruction.kernel]));
  case Op::Call:
    return productTime(program.calls[instruction.call], hardware);
  case Op::Coll:
    return hardware.collectiveTime(instruction.coll, bytes, group);
  case Op::Send:
  case Op::Recv:
    return hardware.transferTime(bytes, group.hosts > 1);
  case Op::Copy:
    if (crossesSpaces(program, instruction))
      return hardware.hostTime(instruction.n * sizeOf(program.buffers[instruction.operands[0].buffer].type));
    [[fallthrough]];
  case Op::Fill:
  case Op::Feed:
  case Op::Fetch: {
    int64_t moved = 0;
    for (const Operand &operand : instruction.operands)
      moved += program.buffers[operand.buffer].bytes();
    return hardware.localTime(0, moved);
  }
  case Op::Group:
  case Op::Signal:
  case Op::Wait:
    return 0;
  }
  return 0;
}
