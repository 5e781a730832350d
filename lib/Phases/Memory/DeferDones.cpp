// Ends of collectives go to where another block first touches the results.
//
// Reductions of gradients start in the last backward of a stage, and the update reads them much later. Their ends would
// stop compute at the end of the backward, and with it the other stages of the rank and the stage that waits for the
// gradient of the input. A block of its own ends them right before the first run that touches their results:
//
//     runs     last, recv, send, other, update              last, recv, send, other, last.ends, update
//     last     compute, start, end, store        becomes    compute, start, store
//     last.ends                                             end
//
// Operands stay alive until the end. Ends do not move over runs of later microbatches, where memory is short: gradients
// of the first microbatch would stay until the second one's. The collectives go on a queue of their own: on that of
// their kind those of the runs between would wait for them.
#include "Views.h"
#include "par/Dialect/Beside.h"
#include "par/Dialect/Calls.h"
#include "par/Phases/Memory/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_DEFERDONESPASS
#include "par/Phases/Memory/Passes.h.inc"

namespace {

using Ops = llvm::SetVector<Operation *>;

/// Buffers that ops of a block load from or store to.
struct Touches {
  llvm::DenseSet<StringAttr> loaded, stored;
};

/// A run of a block in an entry.
struct RunOfBlock {
  EntryOp entry;
  size_t index;
};

/// Moves the ends of one program's collectives.
class DoneDeferral {
public:
  DoneDeferral(ProgramOp program, const SymbolTable &kernels) : program(program), kernels(kernels), builder(program) {}

  void run();

private:
  /// Ends of a block's own collectives, and all that moves out of the block with them.
  struct Part {
    SmallVector<DoneOp> ends;
    Ops moved;
  };

  std::optional<RunOfBlock> findOnlyRun(BlockOp block);
  std::optional<Part> findPart(BlockOp block);
  bool canMove(Operation *op, const Ops &moved, const Touches &staying) const;
  size_t findPlace(const Part &part, RunOfBlock run);
  void deferPart(BlockOp block, const Part &part, RunOfBlock run, size_t place);
  void moveEnd(DoneOp end, IRMapping &mapping, OpBuilder &there);
  std::string keep(Value value);
  Value carry(Value value, IRMapping &mapping, OpBuilder &there);
  StoreOp findOnlyStore(Value result) const;
  void insertRun(RunOfBlock after, size_t place, BlockOp block);

  ProgramOp program;
  const SymbolTable &kernels;
  OpBuilder builder;
  llvm::DenseMap<Attribute, Touches> touches; ///< of a block by name
  unsigned buffers = 0;
};

} // namespace

static StringAttr nameOf(FlatSymbolRefAttr buffer) { return buffer.getAttr(); }

/// `without`: ops that do not count.
static Touches touchesOf(BlockOp block, const Ops &without = {}) {
  Touches touches;
  for (Operation &op : block.getBody().front())
    if (without.contains(&op))
      continue;
    else if (auto load = dyn_cast<LoadOp>(op))
      touches.loaded.insert(nameOf(load.getBufferAttr()));
    else if (auto store = dyn_cast<StoreOp>(op))
      touches.stored.insert(nameOf(store.getBufferAttr()));
  return touches;
}

/// All that uses the op's results, and the op.
static Ops closureOf(Operation *op) {
  Ops closure;
  closure.insert(op);
  for (size_t next = 0; next < closure.size(); ++next)
    closure.insert(closure[next]->user_begin(), closure[next]->user_end());
  return closure;
}

std::optional<RunOfBlock> DoneDeferral::findOnlyRun(BlockOp block) {
  std::optional<RunOfBlock> only;
  for (EntryOp entry : program.getOps<EntryOp>())
    for (auto [index, name] : llvm::enumerate(entry.getBlocks().getAsRange<FlatSymbolRefAttr>())) {
      if (name.getAttr() != block.getSymNameAttr())
        continue;
      if (only)
        return std::nullopt;
      only = RunOfBlock{entry, index};
    }
  return only;
}

/// Whether an op can stand in another block: it computes nothing and only works on what moves, and nothing else of the
/// block touches the buffer that it stores to, or overwrites an operand that an end keeps.
bool DoneDeferral::canMove(Operation *op, const Ops &moved, const Touches &staying) const {
  auto isStored = [&](StringAttr buffer, bool loadsToo) {
    return staying.stored.contains(buffer) || (loadsToo && staying.loaded.contains(buffer));
  };
  if (auto store = dyn_cast<StoreOp>(op))
    return !isStored(nameOf(store.getBufferAttr()), /*loadsToo=*/true);
  if (auto done = dyn_cast<DoneOp>(op)) // an all-reduce works in place: its operand's buffer may be one of this block
    return !isa<AllReduceOp>(done.getValues().front().getDefiningOp()) &&
           llvm::none_of(done.getInputs(), [&](Value input) {
             auto load = input.getDefiningOp<LoadOp>();
             return load && isStored(nameOf(load.getBufferAttr()), /*loadsToo=*/false);
           });
  return (isView(op, kernels) || isa<CollectiveOpInterface>(op)) && llvm::all_of(op->getOperands(), [&](Value operand) {
           return operand.getDefiningOp() && moved.contains(operand.getDefiningOp());
         });
}

/// The ends that can move. An end that another one needs moves only with that.
std::optional<DoneDeferral::Part> DoneDeferral::findPart(BlockOp block) {
  Part part;
  std::map<Operation *, Ops> closures;
  for (DoneOp done : block.getOps<DoneOp>())
    part.ends.push_back(done), closures[done] = closureOf(done);
  for (bool changed = true; changed && !part.ends.empty();) {
    part.moved.clear();
    for (DoneOp end : part.ends)
      part.moved.insert(closures[end].begin(), closures[end].end());
    Ops fixed;
    Touches staying = touchesOf(block, part.moved);
    for (Operation *op : part.moved)
      if (!canMove(op, part.moved, staying))
        fixed.insert(op);
    changed = !fixed.empty();
    llvm::erase_if(part.ends, [&](DoneOp end) {
      return llvm::any_of(closures[end], [&](Operation *op) { return fixed.contains(op); });
    });
  }
  if (part.ends.empty())
    return std::nullopt;
  // Ends of collectives that move along go as they are.
  llvm::erase_if(part.ends, [&](DoneOp end) { return part.moved.contains(end.getValues().front().getDefiningOp()); });
  return part;
}

/// The first run after the block's that touches what moves with it: results, or the bytes of operands.
size_t DoneDeferral::findPlace(const Part &part, RunOfBlock run) {
  llvm::DenseSet<StringAttr> results, operands;
  for (Operation *op : part.moved)
    if (auto store = dyn_cast<StoreOp>(op))
      results.insert(nameOf(store.getBufferAttr()));
    else if (auto done = dyn_cast<DoneOp>(op))
      for (Value input : done.getInputs())
        if (auto load = input.getDefiningOp<LoadOp>())
          operands.insert(nameOf(load.getBufferAttr()));
  auto blocks = llvm::to_vector(run.entry.getBlocks().getAsRange<FlatSymbolRefAttr>());
  for (size_t index = run.index + 1; index < blocks.size(); ++index) {
    const Touches &there = touches[blocks[index].getAttr()];
    auto isTouched = [&](StringAttr buffer) { return there.loaded.contains(buffer) || there.stored.contains(buffer); };
    if (llvm::any_of(results, isTouched) ||
        llvm::any_of(operands, [&](StringAttr buffer) { return there.stored.contains(buffer); }))
      return index;
  }
  return blocks.size();
}

/// Whether a run between the given one and a place is of a later microbatch.
static bool passesMicrobatch(RunOfBlock run, size_t place) {
  ArrayRef<int64_t> microbatches = run.entry.getMicrobatches();
  return llvm::any_of(microbatches.slice(run.index, place - run.index),
                      [&](int64_t microbatch) { return microbatch > microbatches[run.index]; });
}

/// A buffer that keeps a value of a block. Collectives of the block read it there, so that no other buffer has to
/// outlive the block.
std::string DoneDeferral::keep(Value value) {
  auto block = cast<BlockOp>(value.getDefiningOp()->getParentOp());
  std::string name = (block.getSymName() + ".kept" + Twine(buffers++)).str();
  builder.setInsertionPoint(block);
  BufferOp::create(builder, value.getLoc(), StringRef(name), BufferKind::temp, StringAttr(), /*sliced=*/false,
                   SlotIndex::none, 1, cast<RankedTensorType>(value.getType()), TypeAttr(), DenseI64ArrayAttr());
  builder.setInsertionPointAfter(value.getDefiningOp());
  StoreOp::create(builder, value.getLoc(), value, name);
  auto kept = LoadOp::create(builder, value.getLoc(), value.getType(), name);
  value.replaceUsesWithIf(kept, [](OpOperand &use) { return isa<CollectiveOpInterface, DoneOp>(use.getOwner()); });
  return name;
}

/// The value in the other block, by a buffer.
Value DoneDeferral::carry(Value value, IRMapping &mapping, OpBuilder &there) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  auto load = value.getDefiningOp<LoadOp>();
  std::string name = load ? load.getBuffer().str() : keep(value);
  mapping.map(value, LoadOp::create(there, value.getLoc(), value.getType(), name).getResult());
  return mapping.lookup(value);
}

/// The store of an end's result that nothing else uses, through views of all its elements: the collective can write
/// right there.
StoreOp DoneDeferral::findOnlyStore(Value result) const {
  int64_t elements = getTensorType(result.getType()).getNumElements();
  while (result.hasOneUse()) {
    Operation *user = *result.user_begin();
    if (auto store = dyn_cast<StoreOp>(user))
      return store;
    if (!isView(user, kernels) || getTensorType(user->getResult(0).getType()).getNumElements() != elements)
      return {};
    result = user->getResult(0);
  }
  return {};
}

/// The collective gets the queue, with those of its queue that feed it.
static void giveQueue(Operation *collective) {
  StringRef before = getQueue(collective);
  for (Value operand : collective->getOperands())
    if (Operation *op = operand.getDefiningOp(); op && isa<CollectiveOpInterface>(op) && getQueue(op) == before)
      giveQueue(op);
  cast<CollectiveOpInterface>(collective).setQueue("deferred");
}

void DoneDeferral::moveEnd(DoneOp end, IRMapping &mapping, OpBuilder &there) {
  giveQueue(end.getValues().front().getDefiningOp());
  SmallVector<Value> values, inputs, started(end.getValues()), kept(end.getInputs());
  SmallVector<unsigned> used; // results that ops of the other block use
  for (auto [value, result] : llvm::zip(started, end.getResults())) {
    if (StoreOp store = findOnlyStore(result)) {
      result.replaceAllUsesWith(value);
      values.push_back(LoadOp::create(there, store.getLoc(), store.getOperand().getType(), store.getBuffer()));
    } else {
      used.push_back(values.size());
      values.push_back(carry(value, mapping, there));
    }
  }
  for (Value input : kept)
    inputs.push_back(carry(input, mapping, there));
  auto moved = DoneOp::create(there, end.getLoc(), ValueRange(values).getTypes(), values, inputs);
  for (unsigned index : used)
    mapping.map(end.getResult(index), moved.getResult(index));
}

void DoneDeferral::insertRun(RunOfBlock after, size_t place, BlockOp block) {
  EntryOp entry = after.entry;
  SmallVector<Attribute> blocks(entry.getBlocks().getValue());
  SmallVector<int64_t> microbatches(entry.getMicrobatches());
  blocks.insert(blocks.begin() + place, FlatSymbolRefAttr::get(block.getSymNameAttr()));
  microbatches.insert(microbatches.begin() + place, microbatches[after.index]);
  if (auto versions = entry->getAttrOfType<DenseI64ArrayAttr>(versionsAttr)) {
    SmallVector<int64_t> all(versions.asArrayRef());
    all.insert(all.begin() + place, all[after.index]);
    entry->setAttr(versionsAttr, builder.getDenseI64ArrayAttr(all));
  }
  entry.setBlocksAttr(builder.getArrayAttr(blocks));
  entry.setMicrobatches(microbatches);
}

void DoneDeferral::deferPart(BlockOp block, const Part &part, RunOfBlock run, size_t place) {
  builder.setInsertionPointAfter(block);
  auto ends = BlockOp::create(builder, block.getLoc(), (block.getSymName() + ".ends").str());
  auto there = OpBuilder::atBlockEnd(&ends.getBody().emplaceBlock());
  IRMapping mapping;
  SmallVector<Operation *> inOrder;
  for (Operation &op : block.getBody().front())
    if (part.moved.contains(&op))
      inOrder.push_back(&op);
  SmallVector<Operation *> gone;
  for (Operation *op : inOrder) {
    if (auto end = dyn_cast<DoneOp>(op); end && llvm::is_contained(part.ends, end)) {
      moveEnd(end, mapping, there);
      gone.push_back(op);
      continue;
    }
    bool stays = llvm::none_of(op->getOperands(), [&](Value operand) { return mapping.contains(operand); });
    if (stays)
      continue; // a view or store of the collective's own result
    there.clone(*op, mapping);
    gone.push_back(op);
  }
  for (Operation *op : llvm::reverse(gone))
    op->erase();
  insertRun(run, place, ends);
  touches[block.getSymNameAttr()] = touchesOf(block);
  touches[ends.getSymNameAttr()] = touchesOf(ends);
}

void DoneDeferral::run() {
  for (BlockOp block : program.getOps<BlockOp>())
    touches[block.getSymNameAttr()] = touchesOf(block);
  for (BlockOp block : llvm::to_vector(program.getOps<BlockOp>())) {
    std::optional<RunOfBlock> only = findOnlyRun(block);
    std::optional<Part> part = only ? findPart(block) : std::nullopt;
    if (!part)
      continue;
    size_t place = findPlace(*part, *only);
    if (place > only->index + 1 && !passesMicrobatch(*only, place))
      deferPart(block, *part, *only, place);
  }
}

namespace {
struct DeferDonesPass : impl::DeferDonesPassBase<DeferDonesPass> {
  void runOnOperation() override {
    SymbolTable kernels(getOperation());
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      DoneDeferral(program, kernels).run();
  }
};
} // namespace

} // namespace par
