#include "sim/Ledger.h"

#include "par/cpu/LocalSteps.h"
#include "par/messages/Failure.h"

namespace par::sim {

using format::Op;

Ledger::Ledger(const format::Bundle &bundle, uint32_t rank, const core::ExpandedEntry &entry)
    : bundle(bundle), program(bundle.programs[bundle.manifest.ranks[rank].role]), rank(rank), entry(entry) {
  for (const core::Command &step : entry.steps) {
    ranges.emplace_back();
    if (step.op == Op::Signal || step.op == Op::Wait)
      continue;
    if (!cpu::communicates(step.op)) {
      add(step, *step.instruction, nullptr);
      continue;
    }
    // The communications of a group follow it in the block, those that this rank leaves out too.
    const format::Instruction *instruction = step.op == Op::Group ? step.instruction + 1 : step.instruction;
    auto isLeftOut = [&](const format::Instruction &it) {
      return isSentToNobody(*bundle.manifest.findCommunicator(program.comms[it.comm].name), it, step.microbatch, rank);
    };
    for (uint32_t piece = 0; piece < step.units; ++piece, ++instruction) {
      while (isLeftOut(*instruction))
        ++instruction;
      add(step, *instruction, &entry.communications[step.firstUnit + piece]);
    }
  }
}

void *Ledger::operandOf(const core::Command &step, uint32_t operand, const comm::Communication *c) const {
  if (!c)
    return entry.pointers[step.operands + operand];
  return operand == 0 && c->op != Op::Recv ? const_cast<void *>(c->in) : c->out;
}

void Ledger::add(const core::Command &step, const format::Instruction &instruction, const comm::Communication *c) {
  format::Membership own;
  uint32_t members = 1;
  if (c && c->op == Op::Coll) {
    const format::Communicator &comm = *bundle.manifest.findCommunicator(program.comms[instruction.comm].name);
    own = *format::membershipOf(comm, rank);
    members = static_cast<uint32_t>(comm.groups[own.group].size());
  }
  auto first = static_cast<uint32_t>(accesses.size());
  for (const verify::ByteAccess &access : verify::accessesOf(program, instruction, own.member, members)) {
    const format::Buffer &buffer = program.buffers[instruction.operands[access.operand].buffer];
    uint64_t offset = access.offset - (buffer.of == format::noIndex ? 0 : buffer.offset);
    auto *begin = static_cast<const std::byte *>(operandOf(step, access.operand, c)) + offset;
    if (access.bytes)
      accesses.push_back({access.touch, begin, access.bytes, &step, &instruction, access.operand});
  }
  ranges.back().emplace_back(first, static_cast<uint32_t>(accesses.size()));
}

std::string Ledger::describe(uint32_t number) const {
  const Access &access = accesses[number];
  const core::Command &step = *access.step;
  std::string id = step.id;
  if (step.op == Op::Group) {
    uint32_t block = entry.runs[step.run].block;
    id = format::instructionId(program, block,
                               static_cast<size_t>(access.instruction - program.blocks[block].instructions.data()));
  }
  const char *verb = access.touch == verify::Touch::Read    ? "reads"
                     : access.touch == verify::Touch::Write ? "writes"
                                                            : "leaves undefined";
  return core::format("{}  {} '{}' on queue {}, microbatch {}", id, verb,
                      format::describe(program, access.instruction->operands[access.operand]),
                      program.queues[step.queue], step.microbatch);
}

} // namespace par::sim
