// Sends to and receives from other stages, beside compute. A transfer is a rendezvous. On the queue of compute a sender
// would block until the other stage gets to its receive, and an early receiver would block until the other stage has
// computed the value, though later instructions may not need it. So sends and receives between stages have a queue
// each, which waits for compute before each of them. An instruction that overwrites a sent value waits for the send's
// end; one that accesses a received value waits for the receive's end. With slots of a buffer, it is the send or
// receive of the same microbatch's slot. The order of issue stays, and so does the proof that it does not deadlock.
#include "EmitProgram.h"

using namespace mlir;

namespace par {

namespace {

/// The end of a send or of a receive, and the buffer from which or into which it goes.
struct Moved {
  uint32_t root, event;
  bool isRead; ///< an instruction reads the received value: later ones find the bytes free and need not wait
};

/// The transfers of one direction.
class TransfersBeside {
public:
  TransfersBeside(format::Program &program, format::Op kind, uint32_t queue)
      : program(program), kind(kind), queue(queue) {}
  /// Whether some block's transfers got the queue.
  bool move();
  void addWaits(format::Block &block) const;

private:
  using Instruction = format::Instruction;

  /// A transfer of the kind, or a group of them, on a communicator on which the program does nothing else: that has one
  /// queue.
  bool isMine(const format::Block &block, size_t n) const;
  void moveTransfers(format::Block &block);
  uint32_t addEvent(StringRef word, format::Index index, uint32_t depth);
  std::vector<Instruction> waitsOf(const Instruction &user) const;
  void wait(std::vector<Instruction> &waits, const Instruction &user, const format::Operand &operand,
            Moved moved) const;
  bool isRead(uint32_t root) const;
  bool receives() const { return kind == format::Op::Recv; }

  format::Program &program;
  format::Op kind;
  uint32_t queue;
  std::vector<Moved> moved;
  llvm::DenseSet<uint32_t> bound; ///< communicators that have to do with something else
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

bool TransfersBeside::isMine(const format::Block &block, size_t n) const {
  const Instruction &it = block.instructions[n + (block.instructions[n].op == format::Op::Group)];
  return it.op == kind && !bound.contains(it.comm);
}

uint32_t TransfersBeside::addEvent(StringRef word, format::Index index, uint32_t depth) {
  program.events.push_back({(word + "." + Twine(program.events.size())).str(), index, depth});
  return program.events.size() - 1;
}

void TransfersBeside::moveTransfers(format::Block &block) {
  std::vector<Instruction> ordered;
  for (size_t n = 0; n < block.instructions.size(); ++n) {
    if (!isMine(block, n)) {
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
      if (ordered.back().op == kind)
        program.comms[ordered.back().comm].queue = queue;
      for (const format::Operand &operand : ordered.back().operands) {
        uint32_t root = ownerOf(program, operand.buffer);
        const format::Buffer &buffer = program.buffers[root];
        uint32_t end = addEvent(receives() ? "received" : "sent", buffer.index, std::max<size_t>(1, buffer.at.size()));
        moved.push_back({root, end, receives() && isRead(root)});
        ends.emplace_back(end, operand.slot);
      }
    }
    --n;
    for (auto [event, slot] : ends)
      ordered.push_back(eventOf(format::Op::Signal, queue, event, slot));
  }
  block.instructions = std::move(ordered);
}

bool TransfersBeside::move() {
  for (const format::Block &block : program.blocks)
    for (const Instruction &it : block.instructions)
      if (it.op != kind && llvm::is_contained({format::Op::Send, format::Op::Recv, format::Op::Coll}, it.op))
        bound.insert(it.comm);
  for (format::Block &block : program.blocks)
    moveTransfers(block);
  return !moved.empty();
}

bool TransfersBeside::isRead(uint32_t root) const {
  auto reads = [&](const format::Operand &operand) {
    return operand.access != format::Access::Write && ownerOf(program, operand.buffer) == root;
  };
  return llvm::any_of(program.blocks, [&](const format::Block &block) {
    return llvm::any_of(block.instructions, [&](const Instruction &it) { return llvm::any_of(it.operands, reads); });
  });
}

/// Waits for sends from slots that an operand overwrites, and for receives into slots that it accesses.
void TransfersBeside::wait(std::vector<Instruction> &waits, const Instruction &user, const format::Operand &operand,
                           Moved moved) const {
  uint32_t root = ownerOf(program, operand.buffer);
  bool writes = operand.access != format::Access::Read;
  const format::Buffer &mine = program.buffers[root], &theirs = program.buffers[moved.root];
  if (mine.space != theirs.space || !(writes || (receives() && root == moved.root)))
    return;
  auto add = [&](format::SlotExpr slot) {
    bool known =
        llvm::any_of(waits, [&](const Instruction &it) { return it.event == moved.event && it.eventSlot == slot; });
    if (!known)
      waits.push_back(eventOf(format::Op::Wait, user.queue, moved.event, slot));
  };
  if (root == moved.root)
    return add(operand.slot);
  if (moved.isRead)
    return;
  for (auto [slot, other] : llvm::enumerate(theirs.at))
    if (llvm::any_of(mine.at, [&](uint64_t at) { return at < other + theirs.bytes() && other < at + mine.bytes(); }))
      add({format::SlotExpr::Fixed, int64_t(slot)});
}

/// Instructions on the transfers' own queue are in order already.
std::vector<format::Instruction> TransfersBeside::waitsOf(const Instruction &user) const {
  std::vector<Instruction> waits;
  if (user.queue != queue)
    for (const format::Operand &operand : user.operands)
      for (Moved each : moved)
        wait(waits, user, operand, each);
  return waits;
}

/// A group waits as a whole, before it begins. A queue waits for a transfer once in a block, until the next transfer of
/// the same bytes.
void TransfersBeside::addWaits(format::Block &block) const {
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

void ProgramEmitter::giveTransfersQueues() {
  for (format::Op kind : {format::Op::Send, format::Op::Recv}) {
    if (out.queues.size() == format::maxQueues)
      return;
    TransfersBeside transfers(out, kind, out.queues.size());
    if (!transfers.move())
      continue;
    out.queues.push_back(kind == format::Op::Send ? "sends" : "receives");
    for (format::Block &block : out.blocks)
      transfers.addWaits(block);
  }
}

} // namespace par
