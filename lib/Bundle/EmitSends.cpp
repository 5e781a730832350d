//===- EmitSends.cpp - sends to other stages, beside compute
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A send is a rendezvous: on the queue of compute a stage would stand still until the next one gets to its receive. So sends
// between stages have a queue of their own. It waits for compute before each send, and whoever writes over what is sent waits for
// the send's end, of the same microbatch's slot where it is the same buffer. The order of issue stays, and so does the proof that
// it does not deadlock.
//
//===----------------------------------------------------------------------===//
#include "EmitProgram.h"

using namespace mlir;

namespace par {

namespace {

/// The end of a send, and the buffer from which it goes.
struct Sent {
  uint32_t root, event;
};

class SendsBeside {
public:
  explicit SendsBeside(format::Program &program) : program(program) {}
  /// Whether some block's sends got the queue.
  bool move(uint32_t queue);
  void addWaits(format::Block &block) const;

private:
  using Instruction = format::Instruction;

  /// A send, or a group of them, on a communicator on which the program does nothing else: that has one queue.
  bool isSend(const format::Block &block, size_t n) const;
  void moveSends(format::Block &block, uint32_t queue);
  uint32_t addEvent(StringRef word, format::Index index, uint32_t depth);
  std::vector<Instruction> waitsOf(const Instruction &writer) const;
  void wait(std::vector<Instruction> &waits, const Instruction &writer, const format::Operand &operand, Sent sent) const;

  format::Program &program;
  std::vector<Sent> sent;
  llvm::DenseSet<uint32_t> bound; ///< communicators that have to do with other than sends
};

} // namespace

/// An event is signalled or waited for.
static format::Instruction eventOf(format::Op op, uint32_t queue, uint32_t event, format::SlotExpr slot = {}) {
  format::Instruction made;
  made.op = op;
  made.queue = queue;
  made.event = event;
  made.eventSlot = slot;
  return made;
}

bool SendsBeside::isSend(const format::Block &block, size_t n) const {
  const Instruction &it = block.instructions[n + (block.instructions[n].op == format::Op::Group)];
  return it.op == format::Op::Send && !bound.contains(it.comm);
}

uint32_t SendsBeside::addEvent(StringRef word, format::Index index, uint32_t depth) {
  program.events.push_back({(word + "." + Twine(program.events.size())).str(), index, depth});
  return program.events.size() - 1;
}

void SendsBeside::moveSends(format::Block &block, uint32_t queue) {
  std::vector<Instruction> ordered;
  for (size_t n = 0; n < block.instructions.size(); ++n) {
    if (!isSend(block, n)) {
      ordered.push_back(std::move(block.instructions[n]));
      continue;
    }
    size_t last = n + (block.instructions[n].op == format::Op::Group ? block.instructions[n].n : 0);
    uint32_t ready = addEvent("ready", format::Index::None, 1);
    ordered.push_back(eventOf(format::Op::Signal, 0, ready));
    ordered.push_back(eventOf(format::Op::Wait, queue, ready));
    SmallVector<std::pair<uint32_t, format::SlotExpr>> ends;
    for (; n <= last; ++n) {
      ordered.push_back(std::move(block.instructions[n]));
      ordered.back().queue = queue;
      if (ordered.back().op == format::Op::Send)
        program.comms[ordered.back().comm].queue = queue;
      for (const format::Operand &operand : ordered.back().operands) {
        uint32_t root = ownerOf(program, operand.buffer);
        const format::Buffer &buffer = program.buffers[root];
        sent.push_back({root, addEvent("sent", buffer.index, std::max<size_t>(1, buffer.at.size()))});
        ends.emplace_back(sent.back().event, operand.slot);
      }
    }
    --n;
    for (auto [event, slot] : ends)
      ordered.push_back(eventOf(format::Op::Signal, queue, event, slot));
  }
  block.instructions = std::move(ordered);
}

bool SendsBeside::move(uint32_t queue) {
  for (const format::Block &block : program.blocks)
    for (const Instruction &it : block.instructions)
      if (it.op == format::Op::Recv || it.op == format::Op::Coll)
        bound.insert(it.comm);
  for (format::Block &block : program.blocks)
    moveSends(block, queue);
  return !sent.empty();
}

/// Waits for those slots of what is sent that an operand writes over.
void SendsBeside::wait(std::vector<Instruction> &waits, const Instruction &writer, const format::Operand &operand, Sent sent) const {
  uint32_t root = ownerOf(program, operand.buffer);
  const format::Buffer &mine = program.buffers[root], &theirs = program.buffers[sent.root];
  if (mine.space != theirs.space)
    return;
  auto add = [&](format::SlotExpr slot) {
    bool known = llvm::any_of(waits, [&](const Instruction &it) { return it.event == sent.event && it.eventSlot == slot; });
    if (!known)
      waits.push_back(eventOf(format::Op::Wait, writer.queue, sent.event, slot));
  };
  if (root == sent.root)
    return add(operand.slot);
  for (auto [slot, other] : llvm::enumerate(theirs.at))
    if (llvm::any_of(mine.at, [&](uint64_t at) { return at < other + theirs.bytes() && other < at + mine.bytes(); }))
      add({format::SlotExpr::Fixed, int64_t(slot)});
}

std::vector<format::Instruction> SendsBeside::waitsOf(const Instruction &writer) const {
  std::vector<Instruction> waits;
  for (const format::Operand &operand : writer.operands)
    if (operand.access != format::Access::Read)
      for (Sent each : sent)
        wait(waits, writer, operand, each);
  return waits;
}

/// A group waits as a whole, before it begins. What a queue has waited for in a block it has not to wait for again, until it is
/// sent again.
void SendsBeside::addWaits(format::Block &block) const {
  std::vector<Instruction> ordered, waited;
  auto isSame = [](const Instruction &a, const Instruction &b) {
    return a.queue == b.queue && a.event == b.event && a.eventSlot == b.eventSlot;
  };
  for (size_t n = 0; n < block.instructions.size(); ++n) {
    size_t last = n + (block.instructions[n].op == format::Op::Group ? block.instructions[n].n : 0);
    if (const Instruction &it = block.instructions[n]; it.op == format::Op::Signal)
      llvm::erase_if(waited, [&](const Instruction &known) { return known.event == it.event; });
    for (size_t m = n; m <= last; ++m)
      for (const Instruction &each : waitsOf(block.instructions[m]))
        if (llvm::none_of(waited, [&](const Instruction &known) { return isSame(known, each); })) {
          waited.push_back(each);
          ordered.push_back(each);
        }
    for (; n < last; ++n)
      ordered.push_back(std::move(block.instructions[n]));
    ordered.push_back(std::move(block.instructions[n]));
  }
  block.instructions = std::move(ordered);
}

void ProgramEmitter::giveSendsAQueue() {
  if (out.queues.size() == format::kMaxQueues)
    return;
  SendsBeside sends(out);
  if (!sends.move(out.queues.size()))
    return;
  out.queues.push_back("sends");
  for (format::Block &block : out.blocks)
    sends.addWaits(block);
}

} // namespace par
