// Every instruction has the operands that it takes.
#include "CheckProgram.h"
#include "Names.h"

using namespace par::format;

static bool isCommunication(Op op) { return op == Op::Coll || op == Op::Send || op == Op::Recv; }

/// A slot expression uses the index of its buffer or event, or is fixed.
static bool fits(const SlotExpr &slot, Index index, uint32_t depth) {
  if (slot.offset < INT32_MIN || slot.offset > INT32_MAX)
    return false;
  if (slot.base == SlotExpr::Fixed)
    return slot.offset >= 0 && slot.offset < int64_t(depth);
  return slot.base == SlotExpr::Mb ? index == Index::Mb : index == Index::Ver;
}

Status Checker::operands(const Instruction &it, const std::string &place) const {
  for (const Operand &operand : it.operands) {
    if (operand.buffer >= program.buffers.size())
      return fail(place, "no buffer " + number(operand.buffer));
    const Buffer &buffer = program.buffers[operand.buffer];
    if (!fits(operand.slot, buffer.index, depthOf(program, operand.buffer)))
      return fail(place, "the slot of '" + describe(program, operand) + "' does not fit its index '" +
                             std::string(toString(buffer.index)) + "' and depth " +
                             number(depthOf(program, operand.buffer)));
  }
  return {};
}

Status Checker::signature(const Instruction &it, std::initializer_list<Access> accesses,
                          const std::string &place) const {
  bool same = it.operands.size() == accesses.size();
  std::string expected;
  size_t i = 0;
  for (Access access : accesses) {
    same = same && it.operands[i++].access == access;
    expected += (expected.empty() ? "" : ", ") + std::string(toString(access));
  }
  if (same)
    return {};
  std::string got;
  for (const Operand &operand : it.operands)
    got += (got.empty() ? "" : ", ") + std::string(toString(operand.access));
  return fail(place, std::string(toString(it.op)) + " takes (" + expected + "), got (" + got + ")");
}

/// n elements of the instruction's type fit each operand.
Status Checker::elements(const Instruction &it, const std::string &place) const {
  bool typed = isCommunication(it.op);
  for (const Operand &operand : it.operands) {
    const Buffer &buffer = program.buffers[operand.buffer];
    DType type = typed ? it.type : program.buffers[it.operands[0].buffer].type;
    if (buffer.type != type)
      return fail(place, "'" + buffer.name + "' is " + describe(buffer) + ", not of " + std::string(toString(type)));
    if (it.n == 0 || it.n > buffer.bytes() / sizeOf(buffer.type))
      return fail(place, number(it.n) + " elements do not fit '" + buffer.name + "', " + describe(buffer));
  }
  return {};
}

Status Checker::kernel(const Instruction &it, const std::string &place) const {
  if (it.kernel >= program.kernels.size())
    return fail(place, "no kernel " + number(it.kernel));
  const Kernel &kernel = program.kernels[it.kernel];
  if (it.operands.size() != kernel.operands.size() || it.imms.size() != kernel.imms)
    return fail(place, "kernel '" + kernel.name + "' takes " + number(kernel.operands.size()) + " operands and " +
                           number(kernel.imms) + " immediates, got " + number(it.operands.size()) + " and " +
                           number(it.imms.size()));
  for (size_t i = 0; i < it.operands.size(); ++i) {
    const Buffer &buffer = program.buffers[it.operands[i].buffer];
    const KernelOperand &wanted = kernel.operands[i];
    if (it.operands[i].access != wanted.access)
      return fail(place, "operand " + number(i) + " of kernel '" + kernel.name + "' is '" +
                             std::string(toString(wanted.access)) + "', got '" + describe(program, it.operands[i]) +
                             "'");
    // A read of 0 bytes may be of any buffer; a write of 0 bytes would be taken for one of the whole.
    bool writesNone = wanted.bytes == 0 && wanted.access != Access::Read;
    if ((writesNone && buffer.bytes() > 0) || wanted.bytes > buffer.bytes())
      return fail(place, "operand " + number(i) + " of kernel '" + kernel.name + "' touches " + number(wanted.bytes) +
                             " bytes, '" + buffer.name + "' has " + number(buffer.bytes()));
  }
  return {};
}

Status Checker::product(const Instruction &it, const std::string &place) const {
  if (it.call >= program.calls.size())
    return fail(place, "no call " + number(it.call));
  const Call &call = program.calls[it.call];
  std::vector<std::pair<Access, uint64_t>> wanted;
  uint64_t size = sizeOf(call.type);
  wanted.push_back({Access::Read, call.extent('a') * size});
  wanted.push_back({Access::Read, call.extent('b') * size});
  if (call.bias)
    wanted.push_back({Access::Read, uint64_t(call.n) * size});
  if (call.hasAux())
    wanted.push_back({call.writesAux() ? Access::Write : Access::Read, call.auxBytes()});
  wanted.push_back({call.beta == 0 ? Access::Write : Access::Accumulate, call.extent('c') * sizeOf(call.typeC)});
  if (call.workspace)
    wanted.push_back({Access::Write, call.workspace});
  if (it.operands.size() != wanted.size())
    return fail(place, "call '" + call.name + "' takes " + number(wanted.size()) + " operands, got " +
                           number(it.operands.size()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Buffer &buffer = program.buffers[it.operands[i].buffer];
    bool scratch = call.workspace && i + 1 == wanted.size();
    DType type = i >= (call.bias ? 3u : 2u) ? call.typeC : call.type;
    if (it.operands[i].access != wanted[i].first)
      return fail(place, "operand " + number(i) + " of call '" + call.name + "' is '" +
                             std::string(toString(wanted[i].first)) + "', got '" + describe(program, it.operands[i]) +
                             "'");
    if (wanted[i].second > buffer.bytes() || (!scratch && buffer.type != type))
      return fail(place, "operand " + number(i) + " of call '" + call.name + "' touches " + number(wanted[i].second) +
                             " bytes of " + std::string(toString(type)) + ", '" + buffer.name + "' is " +
                             describe(buffer));
  }
  return {};
}

Status Checker::communication(const Instruction &it, const std::string &place) const {
  if (it.comm >= program.comms.size())
    return fail(place, "no communicator " + number(it.comm));
  const Comm &comm = program.comms[it.comm];
  if (comm.queue != it.queue)
    return fail(place, "communicator '" + comm.name + "' is bound to queue '" + program.queues[comm.queue] +
                           "', not '" + program.queues[it.queue] + "'");
  Status shape;
  if (it.op == Op::Coll) {
    bool two = it.operands.size() == 2;
    bool mayTwo = it.coll == CollKind::AllGather || it.coll == CollKind::ReduceScatter || it.coll == CollKind::AllToAll;
    shape =
        two && mayTwo ? signature(it, {Access::Read, Access::Write}, place) : signature(it, {Access::ReadWrite}, place);
  } else {
    shape = signature(it, {it.op == Op::Send ? Access::Read : Access::Write}, place);
    if (it.peer.empty())
      return fail(place, "no peer");
  }
  return shape ? elements(it, place) : shape;
}

Status Checker::group(const Block &block, size_t n, const std::string &place) const {
  const Instruction &it = block.instructions[n];
  if (it.n < 1 || it.n > maxGroup || it.n >= block.instructions.size() - n)
    return fail(place, "a group of " + number(it.n) + " communications, expected 1 to " + number(maxGroup) +
                           " that all stand in its block");
  for (size_t i = 1; i <= it.n; ++i) {
    const Instruction &member = block.instructions[n + i];
    if (!isCommunication(member.op) || member.queue != it.queue)
      return fail(place, "instruction " + number(n + i) + " is in a group, but is not a communication on queue '" +
                             program.queues[it.queue] + "'");
  }
  return {};
}

Status Checker::instruction(const Block &block, size_t n) const {
  const Instruction &it = block.instructions[n];
  std::string place = "blocks." + block.name + "[" + number(n) + "]";
  if (it.queue >= program.queues.size())
    return fail(place, "no queue " + number(it.queue));
  if (Status sound = operands(it, place); !sound)
    return sound;
  Status shape;
  switch (it.op) {
  case Op::Kernel:
    return kernel(it, place);
  case Op::Call:
    return product(it, place);
  case Op::Coll:
  case Op::Send:
  case Op::Recv:
    return communication(it, place);
  case Op::Group:
    return it.operands.empty() ? group(block, n, place) : signature(it, {}, place);
  case Op::Copy:
    shape = signature(it, {Access::Read, Access::Write}, place);
    return shape ? elements(it, place) : shape;
  case Op::Fill:
    shape = signature(it, {Access::Write}, place);
    return shape ? elements(it, place) : shape;
  case Op::Signal:
  case Op::Wait:
    if (it.event >= program.events.size())
      return fail(place, "no event " + number(it.event));
    if (!fits(it.eventSlot, program.events[it.event].index, program.events[it.event].depth))
      return fail(place, "the slot of event '" + program.events[it.event].name + "' does not fit its index");
    return signature(it, {}, place);
  case Op::Feed:
    return signature(it, {Access::Write}, place);
  case Op::Fetch:
    return signature(it, {Access::Read}, place);
  }
  return fail(place, "unknown opcode");
}

Status Checker::instructions() const {
  for (const Block &block : program.blocks)
    for (size_t n = 0; n < block.instructions.size(); ++n)
      if (Status status = instruction(block, n); !status)
        return status;
  return {};
}

Status par::format::checkProgram(const Program &program, const std::string &where) {
  Checker checker{program, where};
  if (Status status = checker.tables(); !status)
    return status;
  return checker.instructions();
}
