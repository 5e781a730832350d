#include "Expansion.h"
#include "par/kernels/Builtins.h"
#include "par/kernels/Work.h"

#include <algorithm>

using namespace par;
using namespace par::format;

static Cost costOfCall(const Call &call, const CostTable &costs) {
  MatmulShape shape{call.type, call.typeC, call.transA, call.transB, 1, call.m, call.n, call.k, call.beta != 0};
  for (int64_t dim : call.batch)
    shape.batch *= dim;
  return costs.matmul(shape);
}

static bool begins(const Kernel &kernel, std::string_view with) { return kernel.symbol.rfind(with, 0) == 0; }

/// The immediates begin with batch, heads, groups of heads, queries, keys, both head dims and whether it is causal.
static AttentionShape attentionOf(const Kernel &kernel, const Instruction &instruction) {
  auto imm = [&](size_t at) { return instruction.imms[at].value; };
  return {kernels::formatOf(kernel),
          begins(kernel, "attention_backward"),
          imm(0),
          imm(1),
          imm(2),
          imm(3),
          imm(4),
          imm(5),
          imm(6),
          imm(7) != 0};
}

/// The immediates begin with images, groups, channels of one, outputs, and have the window's dims at 7 and the windows'
/// numbers at 10 (par/kernels/Builtins.h).
static ConvolutionShape convolutionOf(const Kernel &kernel, const Instruction &instruction) {
  auto imm = [&](size_t at) { return instruction.imms[at].value; };
  ConvolutionPass pass = begins(kernel, "convolution_input_grad")    ? ConvolutionPass::Data
                         : begins(kernel, "convolution_filter_grad") ? ConvolutionPass::Weights
                                                                     : ConvolutionPass::Forward;
  return {kernels::formatOf(kernel),  pass, imm(0), imm(1), imm(2), imm(3), imm(7) * imm(8) * imm(9),
          imm(10) * imm(11) * imm(12)};
}

/// Builtins that are neither attention nor a convolution are bounded by memory.
static Cost costOfKernel(const Kernel &kernel, const Instruction &instruction, const CostTable &costs) {
  int64_t bytes = kernels::movedBytes(kernel, instruction);
  if (!kernel.builtin)
    return costs.kernel(bytes, kernel.flops);
  if (kernels::isAttention(kernel) && instruction.imms.size() >= kernels::AttentionSizes::scalars)
    return costs.attention(attentionOf(kernel, instruction), bytes);
  if (kernels::isConvolution(kernel) && instruction.imms.size() >= kernels::convolutionImmediateCount)
    return costs.convolution(convolutionOf(kernel, instruction), bytes);
  return costs.kernel(bytes);
}

bool par::crossesSpaces(const Program &program, const Instruction &instruction) {
  auto space = [&](const Operand &operand) { return program.buffers[operand.buffer].space; };
  return instruction.op == Op::Copy && space(instruction.operands[0]) != space(instruction.operands[1]);
}

int64_t par::latencyOf(const Instruction &instruction, const RankGroup &group, const CostTable &costs) {
  return instruction.op == Op::Coll ? costs.collectiveLatency(instruction.coll, group) : costs.link(group).latency;
}

Cost par::communicationCost(const Instruction &instruction, const RankGroup &group, const CostTable &costs) {
  int64_t bytes = instruction.n * sizeOf(instruction.type);
  return instruction.op == Op::Coll ? costs.collective(instruction.coll, bytes, group) : costs.send(bytes, group);
}

/// A copy, or a kernel that only writes or only reads.
static Cost costOfCopy(const Program &program, const Instruction &instruction, const CostTable &costs) {
  if (crossesSpaces(program, instruction))
    return costs.hostCopy(instruction.n * sizeOf(program.buffers[instruction.operands[0].buffer].type));
  int64_t moved = 0;
  for (const Operand &operand : instruction.operands)
    moved += program.buffers[operand.buffer].bytes();
  return costs.copy(moved);
}

Cost par::localCost(const Program &program, const Instruction &instruction, int64_t processes, const CostTable &costs) {
  Cost cost;
  switch (instruction.op) {
  case Op::Kernel:
    cost = costOfKernel(program.kernels[instruction.kernel], instruction, costs);
    break;
  case Op::Call:
    cost = costOfCall(program.calls[instruction.call], costs);
    break;
  case Op::Feed:
  case Op::Fetch:
    cost = costs.feed(instruction.op == Op::Fetch, program.buffers[instruction.operands[0].buffer].bytes());
    break;
  case Op::Copy:
  case Op::Fill:
    cost = costOfCopy(program, instruction, costs);
    break;
  case Op::Coll:
  case Op::Send:
  case Op::Recv:
  case Op::Group:
  case Op::Signal:
  case Op::Wait:
    return cost;
  }
  cost.ns = cost.ns * costs.together(instruction.op == Op::Call, processes) / 1000;
  return cost;
}
