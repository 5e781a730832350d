// Expands a program's entries for one rank into flat lists of steps with addresses in the arenas; an instruction of
// every run is one step, a group is one.
#include "par/device/Loader.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <map>
#include <span>

namespace par::core {

using format::Op;

LoadedProgram::LoadedProgram(const format::Bundle &bundle, const std::string &folder, uint32_t rank, Arenas arenas)
    : bundle(bundle), source(bundle.programs[bundle.manifest.ranks[rank].role]), place(folder), rank(rank),
      arenas(arenas) {
  for (uint32_t block = 0; block < source.blocks.size(); ++block) {
    ids.emplace_back();
    for (size_t n = 0; n < source.blocks[block].instructions.size(); ++n)
      ids.back().push_back(format::instructionId(source, block, n));
  }
}

std::byte *LoadedProgram::address(uint32_t buffer, uint32_t slot) const {
  const format::Buffer &self = source.buffers[buffer];
  const format::Buffer &owner = self.of == format::noIndex ? self : source.buffers[self.of];
  std::byte *arena = self.space == format::Space::Dev ? arenas.dev : arenas.host;
  return arena + owner.at[slot] + (self.of == format::noIndex ? 0 : self.offset);
}

/// Expands one entry: every instruction of every run becomes a step, groups become one.
class Expander {
public:
  Expander(const LoadedProgram &loaded, const format::Entry &entry) : loaded(loaded), program(loaded.source) {
    out.name = entry.name;
    out.runs = entry.runs;
    for (const format::Run &run : entry.runs)
      expandRun(run);
  }
  ExpandedEntry take() { return std::move(out); }

private:
  void expandRun(const format::Run &run) {
    const auto &instructions = program.blocks[run.block].instructions;
    for (size_t n = 0; n < instructions.size(); ++n) {
      const format::Instruction &instruction = instructions[n];
      Command step;
      step.op = instruction.op;
      step.queue = instruction.queue;
      step.id = loaded.ids[run.block][n].c_str();
      step.microbatch = run.microbatch;
      step.run = static_cast<uint32_t>(&run - out.runs.data());
      step.instruction = &instruction;
      step.operands = static_cast<uint32_t>(out.pointers.size());
      for (const format::Operand &operand : instruction.operands)
        out.pointers.push_back(pointer(operand, run));
      step.firstUnit = static_cast<uint32_t>(out.communications.size());
      if (instruction.op == Op::Group)
        for (uint64_t i = 0; i < instruction.n; ++i)
          addCommunication(instructions[n + 1 + i], run, loaded.ids[run.block][n + 1 + i].c_str());
      else
        fillIn(step, instruction, run);
      step.units = static_cast<uint32_t>(out.communications.size()) - step.firstUnit;
      bool communicates = instruction.op == Op::Group || instruction.op == Op::Send;
      if (!communicates || step.units > 0) {
        uint64_t members = instruction.op == Op::Group ? instruction.n : 0;
        if (writesState(std::span(instructions).subspan(n, 1 + members)))
          out.firstWrite = std::min(out.firstWrite, out.steps.size());
        out.steps.push_back(step);
      }
      if (instruction.op == Op::Group)
        n += instruction.n;
    }
  }

  bool writesState(std::span<const format::Instruction> instructions) const {
    for (const format::Instruction &instruction : instructions)
      for (const format::Operand &operand : instruction.operands) {
        const format::Buffer &buffer = program.buffers[operand.buffer];
        const format::Buffer &owner = buffer.of == format::noIndex ? buffer : program.buffers[buffer.of];
        if (operand.access != format::Access::Read && owner.kind == format::BufferKind::State)
          return true;
      }
    return false;
  }

  void *pointer(const format::Operand &operand, const format::Run &run) const {
    uint32_t slot = format::slotOf(operand.slot, format::depthOf(program, operand.buffer), run);
    return loaded.address(operand.buffer, slot);
  }

  void fillIn(Command &step, const format::Instruction &instruction, const format::Run &run) {
    const format::Manifest &manifest = loaded.bundle.manifest;
    switch (instruction.op) {
    case Op::Kernel:
      step.immediates = static_cast<uint32_t>(out.immediates.size());
      for (const format::Imm &imm : instruction.imms)
        out.immediates.push_back(bind(imm));
      return;
    case Op::Call:
      return;
    case Op::Coll:
    case Op::Send:
    case Op::Recv:
      addCommunication(instruction, run, step.id);
      return;
    case Op::Signal:
      latest[eventKey(instruction, run)] = static_cast<int64_t>(out.steps.size());
      return;
    case Op::Wait:
      if (auto found = latest.find(eventKey(instruction, run)); found != latest.end())
        step.awaited = found->second;
      return;
    default:
      break;
    }
    const format::Buffer &buffer = program.buffers[instruction.operands[0].buffer];
    step.type = buffer.type;
    bool counted = instruction.op == Op::Copy || instruction.op == Op::Fill;
    step.bytes = counted ? instruction.n * format::sizeOf(buffer.type) : buffer.bytes();
    step.value = instruction.value;
    step.input = instruction.op == Op::Feed ? manifest.findInput(instruction.name) : nullptr;
    step.output = instruction.op == Op::Fetch ? manifest.findOutput(instruction.name) : nullptr;
  }

  uint64_t bind(const format::Imm &imm) const {
    int64_t value = imm.value;
    if (!imm.axis.empty())
      value += imm.scale *
               static_cast<int64_t>(format::coordinateOf(loaded.bundle.manifest, loaded.rank, imm.axis).value_or(0));
    return static_cast<uint64_t>(value);
  }

  std::pair<uint32_t, uint32_t> eventKey(const format::Instruction &instruction, const format::Run &run) const {
    uint32_t depth = program.events[instruction.event].depth;
    return {instruction.event, format::slotOf(instruction.eventSlot, depth, run)};
  }

  void addCommunication(const format::Instruction &instruction, const format::Run &run, const char *id) {
    const std::string &name = program.comms[instruction.comm].name;
    if (isSentToNobody(*loaded.bundle.manifest.findCommunicator(name), instruction, run.microbatch, loaded.rank))
      return;
    comm::Communication c;
    c.op = instruction.op;
    c.kind = instruction.coll;
    c.reduction = instruction.reduction;
    c.type = instruction.type;
    c.communicator = comm::indexOf(loaded.bundle.manifest, name, loaded.rank);
    c.peer = instruction.root;
    if (instruction.op != Op::Coll)
      c.peer = instruction.peer[static_cast<size_t>(run.microbatch) % instruction.peer.size()];
    c.tag = instruction.tag;
    c.n = instruction.n;
    c.id = id;
    if (instruction.op != Op::Recv)
      c.in = pointer(instruction.operands.front(), run);
    if (instruction.op != Op::Send)
      c.out = pointer(instruction.operands.back(), run);
    out.communications.push_back(c);
  }

  const LoadedProgram &loaded;
  const format::Program &program;
  ExpandedEntry out;
  std::map<std::pair<uint32_t, uint32_t>, int64_t> latest; ///< event and slot -> step of its last signal
};

const ExpandedEntry &LoadedProgram::entry(const std::string &name) {
  for (const auto &known : expanded)
    if (known->name == name)
      return *known;
  uint32_t index = source.findEntry(name);
  if (index == format::noIndex) {
    std::string names;
    for (const format::Entry &entry : source.entries)
      names += (names.empty() ? "" : ", ") + entry.name;
    Failure failure = Failure::at(place, Message::noEntry, name, names);
    if (name == "predict")
      throw std::move(failure).note(
          "a bundle that trains does not predict: compile its model without train (--set train=null) "
          "and run that bundle with --weights");
    if (source.findEntry("predict") != format::noIndex)
      throw std::move(failure).note("a bundle without train does nothing but predict: compile the model with train");
    throw failure;
  }
  expanded.push_back(std::make_unique<ExpandedEntry>(Expander(*this, source.entries[index]).take()));
  return *expanded.back();
}

} // namespace par::core
