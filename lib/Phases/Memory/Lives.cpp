// Computes when each slot of each buffer holds a value, by playing the entries with the touches of each block. The
// intervals are the input of Solver/Packing.
#include "par/Dialect/Calls.h"
#include "par/Dialect/Parts.h"
#include "par/Dialect/Space.h"
#include "par/Phases/Memory/Arena.h"

#include <optional>

using namespace mlir;

namespace par {

ArenaSize getArenaSize(ProgramOp program) {
  ArenaSize size;
  auto end = [&](BufferOp buffer, int64_t from) {
    int64_t last = from;
    if (std::optional<ArrayRef<int64_t>> slots = buffer.getAt())
      for (int64_t at : *slots)
        last = std::max(last, at + getByteSize(buffer.getTensorType()));
    return (last + arenaAlignment - 1) / arenaAlignment * arenaAlignment;
  };
  int64_t whole = 0;
  for (BufferOp buffer : program.getOps<BufferOp>()) {
    if (isOnHost(buffer)) {
      size.host = end(buffer, size.host);
      continue;
    }
    whole = end(buffer, whole);
    if (buffer.getKind() == BufferKind::state)
      size.state = end(buffer, size.state);
  }
  size.pool = std::max(whole, size.state) - size.state;
  return size;
}

namespace {

/// An access of an op of a block to a buffer. A write that keeps the old bytes (in place) continues the life; any other
/// write begins a new life.
struct SlotTouch {
  enum Kind { Read, Send, Write, Keep } kind;
  unsigned buffer;
  int64_t op; ///< number in the block, from 1 on; 0: before the first
};

/// Simulates the entries and records when each slot is written and read. Entries run a block thousands of times, so its
/// accesses are listed once, and the slots of all buffers have consecutive numbers.
class Lives {
public:
  explicit Lives(ProgramOp program);
  std::vector<BufferUse> run();

private:
  std::vector<SlotTouch> findTouches(BlockOp block);
  void runEntry(EntryOp entry);
  void play(SlotTouch touch, RunIndex run, int64_t at);
  void endEntry();
  unsigned numberOf(BufferOp buffer) const { return numbers.lookup(buffer); }

  ProgramOp program;
  SymbolTable names;
  SmallVector<BufferOp> buffers;
  llvm::DenseMap<Operation *, unsigned> numbers; ///< of the buffers
  SmallVector<unsigned> first;                   ///< the number of a buffer's slot 0
  llvm::DenseMap<Attribute, std::pair<std::vector<SlotTouch>, int64_t>>
      touches; ///< of a block by name, and its number of ops
  int64_t position = 0;
  std::vector<std::optional<BufferUse>> open;
  /// Sent to another stage on a queue of its own: only the next write waits for the send's end, so the slot keeps its
  /// bytes until then.
  std::vector<bool> sent;
  std::vector<BufferUse> done;
};

} // namespace

Lives::Lives(ProgramOp program) : program(program), names(program) {
  unsigned slots = 0;
  for (BufferOp buffer : program.getOps<BufferOp>()) {
    numbers[buffer] = buffers.size();
    buffers.push_back(buffer);
    first.push_back(slots);
    slots += buffer.getDepth();
  }
  open.resize(slots);
  sent.resize(slots);
  for (BlockOp block : program.getOps<BlockOp>())
    touches[block.getSymNameAttr()] = {findTouches(block),
                                       static_cast<int64_t>(block.getBody().front().getOperations().size())};
}

std::vector<SlotTouch> Lives::findTouches(BlockOp block) {
  std::vector<SlotTouch> found;
  // Inputs are fed where a block first needs them.
  for (LoadOp load : block.getOps<LoadOp>())
    if (auto buffer = names.lookup<BufferOp>(load.getBuffer()); buffer.getKind() == BufferKind::input)
      found.push_back({SlotTouch::Read, numberOf(buffer), 0});
  for (auto [index, op] : llvm::enumerate(block.getBody().front())) {
    if (isa<LoadOp>(op))
      continue;
    int64_t at = index + 1;
    llvm::SmallDenseSet<unsigned> reads;
    for (Value operand : op.getOperands())
      if (BufferOp buffer = getBuffer(operand, names); buffer && isa_and_nonnull<LoadOp>(operand.getDefiningOp())) {
        found.push_back({SlotTouch::Read, numberOf(buffer), at});
        reads.insert(numberOf(buffer));
        if (isa<SendOp, SendPartsOp>(op))
          found.push_back({SlotTouch::Send, numberOf(buffer), at});
      }
    if (auto store = dyn_cast<StoreOp>(op)) {
      // The store of a result follows right after the op that writes it; a store of a load is a copy.
      if (isa_and_nonnull<LoadOp>(store.getOperand().getDefiningOp()))
        found.push_back({SlotTouch::Write, numberOf(names.lookup<BufferOp>(store.getBuffer())), at});
      continue;
    }
    for (Value result : op.getResults())
      if (BufferOp buffer = getBuffer(result, names))
        found.push_back({reads.contains(numberOf(buffer)) ? SlotTouch::Keep : SlotTouch::Write, numberOf(buffer), at});
  }
  return found;
}

void Lives::play(SlotTouch touch, RunIndex run, int64_t at) {
  BufferOp buffer = buffers[touch.buffer];
  int64_t slot = run.slotOf(buffer);
  unsigned number = first[touch.buffer] + slot;
  if (touch.kind == SlotTouch::Send) {
    sent[number] = true;
    return;
  }
  std::optional<BufferUse> &use = open[number];
  if (touch.kind == SlotTouch::Write && use) {
    if (sent[number])
      use->end = at;
    sent[number] = false;
    done.push_back(*use);
    use.reset();
  }
  if (!use)
    use = {buffer, slot, at, at};
  use->end = at;
}

void Lives::endEntry() {
  for (size_t number = 0; number < open.size(); ++number) {
    if (!open[number])
      continue;
    if (sent[number])
      open[number]->end = position;
    done.push_back(*open[number]);
    open[number].reset();
  }
  sent.assign(sent.size(), false);
}

void Lives::runEntry(EntryOp entry) {
  int64_t begin = position;
  for (auto [index, name] : llvm::enumerate(entry.getBlocks().getAsRange<FlatSymbolRefAttr>())) {
    auto &[list, count] = touches.find(name.getAttr())->second;
    RunIndex run{entry.getMicrobatches()[index], getVersion(entry, index)};
    for (SlotTouch touch : list)
      play(touch, run, position + touch.op);
    position += count;
  }
  endEntry();
  ++position;
  // The host writes hyperparameters before the entry, and they are read until its end.
  for (BufferOp buffer : buffers)
    for (uint64_t slot = 0; buffer.getKind() == BufferKind::hyperparameter && slot < buffer.getDepth(); ++slot)
      done.push_back({buffer, static_cast<int64_t>(slot), begin, position - 1});
}

std::vector<BufferUse> Lives::run() {
  for (EntryOp entry : program.getOps<EntryOp>())
    runEntry(entry);
  llvm::erase_if(done,
                 [&](BufferUse &use) { return use.buffer.getKind() == BufferKind::state || isOnHost(use.buffer); });
  return std::move(done);
}

std::vector<BufferUse> computeLives(ProgramOp program) { return Lives(program).run(); }

} // namespace par
