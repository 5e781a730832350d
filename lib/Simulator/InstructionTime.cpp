#include "Expansion.h"

using namespace par;
using namespace par::format;

/// Bytes that a kernel reads and writes.
static int64_t movedBytes(const Kernel &kernel) {
  int64_t bytes = 0;
  for (const KernelOperand &operand : kernel.operands) {
    bool twice = operand.access == Access::ReadWrite || operand.access == Access::Accumulate;
    bytes += operand.bytes * (twice ? 2 : 1);
  }
  return bytes;
}

static int64_t productTime(const Call &call, const Hardware &hardware) {
  int64_t batch = 1;
  for (int64_t dim : call.batch)
    batch *= dim;
  // Operands that repeat over the batch are counted as often as they are read.
  int64_t elements = call.m * call.k + call.k * call.n + call.m * call.n * (call.beta == 0 ? 1 : 2);
  return hardware.localTime(2 * batch * call.m * call.n * call.k, batch * elements * sizeOf(call.type),
                            call.type);
}

int64_t par::instructionTime(const Program &program, const Instruction &instruction, int64_t members,
                             const Hardware &hardware) {
  int64_t bytes = instruction.n * sizeOf(instruction.type);
  switch (instruction.op) {
  case Op::Kernel:
    return hardware.localTime(0, movedBytes(program.kernels[instruction.kernel]));
  case Op::Call:
    return productTime(program.calls[instruction.call], hardware);
  case Op::Coll:
    return hardware.collectiveTime(instruction.coll, bytes, members);
  case Op::Send:
  case Op::Recv:
    return hardware.transferTime(bytes);
  case Op::Copy:
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
