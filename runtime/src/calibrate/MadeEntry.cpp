#include "MadeEntry.h"

namespace par::calibrate {

using core::Command;
using core::ExpandedEntry;
using format::CollKind;
using format::DType;
using format::Op;

Command &MadeEntry::make(Op op, uint32_t queue) {
  Command step;
  step.op = op;
  step.queue = queue;
  step.id = "calibrate";
  instructions.emplace_back().op = op;
  instructions.back().queue = queue;
  step.instruction = &instructions.back();
  step.operands = static_cast<uint32_t>(entry.pointers.size());
  return entry.steps.emplace_back(step);
}

void MadeEntry::add(const Command &step, const ExpandedEntry &from, uint32_t queue) {
  Command &own = entry.steps.emplace_back(step);
  const format::Instruction &instruction = *step.instruction;
  own.queue = queue;
  own.operands = static_cast<uint32_t>(entry.pointers.size());
  auto operands = from.pointers.begin() + step.operands;
  entry.pointers.insert(entry.pointers.end(), operands,
                        operands + static_cast<std::ptrdiff_t>(instruction.operands.size()));
  if (step.op != Op::Kernel)
    return;
  own.immediates = static_cast<uint32_t>(entry.immediates.size());
  auto immediates = from.immediates.begin() + step.immediates;
  entry.immediates.insert(entry.immediates.end(), immediates,
                          immediates + static_cast<std::ptrdiff_t>(instruction.imms.size()));
}

void MadeEntry::copy(void *to, const void *from, uint64_t bytes, uint32_t queue) {
  make(Op::Copy, queue).bytes = bytes;
  entry.pointers.push_back(const_cast<void *>(from));
  entry.pointers.push_back(to);
}

void MadeEntry::zero(void *at, DType type, uint64_t bytes, uint32_t queue) {
  Command &step = make(Op::Fill, queue);
  step.bytes = bytes;
  step.type = type;
  entry.pointers.push_back(at);
}

void MadeEntry::call(uint32_t call, std::vector<void *> operands, uint32_t queue) {
  make(Op::Call, queue);
  instructions.back().call = call;
  entry.pointers.insert(entry.pointers.end(), operands.begin(), operands.end());
}

void MadeEntry::communicate(const comm::Communication &communication, uint32_t queue) {
  Command &step = make(communication.op, queue);
  step.firstUnit = static_cast<uint32_t>(entry.communications.size());
  step.units = 1;
  entry.communications.push_back(communication);
}

uint32_t computeQueue(const format::Program &program) {
  for (uint32_t i = 0; i < program.queues.size(); ++i)
    if (program.queues[i] == "compute")
      return i;
  return 0;
}

CommunicationBytes bytesOf(const comm::Communication &c, uint64_t members) {
  uint64_t one = c.n * format::sizeOf(c.type), all = one * members;
  if (c.op == Op::Send)
    return {one, 0};
  if (c.op == Op::Recv)
    return {0, one};
  bool toAll = c.kind == CollKind::AllToAll;
  return {toAll || c.kind == CollKind::ReduceScatter ? all : one, toAll || c.kind == CollKind::AllGather ? all : one};
}

LocalEntry::LocalEntry(const ExpandedEntry &whole, std::span<const comm::Members> table, const std::byte *random,
                       uint32_t queue)
    : made(whole.name, whole.runs) {
  for (size_t i = 0; i < whole.steps.size(); ++i) {
    const Command &step = whole.steps[i];
    if (step.op == Op::Signal || step.op == Op::Wait)
      continue;
    if (step.units == 0)
      made.add(step, whole, queue);
    for (uint32_t unit = 0; unit < step.units; ++unit) {
      const comm::Communication &c = whole.communications[step.firstUnit + unit];
      replace(c, table[c.communicator].ranks.size(), random, queue);
    }
    sources.resize(made.size(), step.units == 0 ? static_cast<int64_t>(i) : -1);
  }
}

/// An all-reduce and a reduce leave their operands as they are: any sum takes as long to read.
void LocalEntry::replace(const comm::Communication &c, uint64_t members, const std::byte *random, uint32_t queue) {
  bool inPlace = c.op == Op::Coll && (c.kind == CollKind::AllReduce || c.kind == CollKind::Reduce);
  if (c.op == Op::Send || inPlace)
    return;
  uint64_t bytes = c.in == c.out ? std::max(bytesOf(c, members).in, bytesOf(c, members).out) : bytesOf(c, members).out;
  bool isFloat = c.type == DType::F32 || c.type == DType::F64 || c.type == DType::F16 || c.type == DType::BF16;
  if (isFloat)
    made.copy(c.out, random, bytes, queue);
  else
    made.zero(c.out, c.type, bytes, queue);
}

} // namespace par::calibrate
