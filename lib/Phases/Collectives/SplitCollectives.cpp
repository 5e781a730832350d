// Makes collectives asynchronous: each is split into a start and a `par.done`. One that can start at the block's begin
// is started `window` collectives ahead, one that nothing in the block needs ends `window` later, and others are split
// if kernels stand between operand and first use.
#include "Grouping.h"
#include "par/Phases/Collectives/Passes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_SPLITCOLLECTIVESPASS
#include "par/Phases/Collectives/Passes.h.inc"

namespace {

/// Splits the collectives of one block.
class Splitter {
public:
  Splitter(BlockOp block, size_t window) : block(block), window(window) {}

  void run();

private:
  DoneOp split(Operation *collective, Operation *before);
  void hoist(ArrayRef<Operation *> collectives);
  void delay(ArrayRef<Operation *> collectives);
  void spread(ArrayRef<Operation *> collectives);

  BlockOp block;
  size_t window;
};

} // namespace

/// Puts the end of a collective before an op or at the block's end, and its followers after that.
DoneOp Splitter::split(Operation *collective, Operation *before) {
  OpBuilder builder = before ? OpBuilder(before) : OpBuilder::atBlockEnd(&block.getBody().front());
  StringRef kind = collective->getName().stripDialect();
  cast<CollectiveOpInterface>(collective).setQueue(kind);
  // An in-place reduction has no separate input.
  ValueRange inputs = isa<AllReduceOp>(collective) ? ValueRange() : ValueRange(collective->getOperands());
  auto done =
      DoneOp::create(builder, collective->getLoc(), collective->getResultTypes(), collective->getResults(), inputs);
  for (auto [value, result] : llvm::zip(collective->getResults(), done.getResults()))
    value.replaceAllUsesExcept(result, done);
  takeFollowersAlong(done);
  return done;
}

/// Collectives that can start at the block's begin, in the order of their first uses: each starts where the one
/// `window` before it ends, and ends at its first use.
void Splitter::hoist(ArrayRef<Operation *> collectives) {
  SmallVector<DoneOp> dones;
  for (Operation *collective : collectives)
    dones.push_back(split(collective, firstNeed(collective)));
  std::vector<SmallVector<Operation *>> sources; // found before ops move, after which the block is numbered again
  for (Operation *collective : collectives)
    sources.push_back(*sourcesOf(collective));
  Operation *begin = nullptr; // the first op that none of them is made from
  llvm::SmallPtrSet<Operation *, 8> first;
  for (auto [collective, made] : llvm::zip(collectives.take_front(window), sources)) {
    first.insert(collective);
    first.insert(made.begin(), made.end());
  }
  for (Operation &op : block.getBody().front())
    if (!isa<LoadOp>(op) && !first.contains(&op)) {
      begin = &op;
      break;
    }
  for (auto [index, collective] : llvm::enumerate(collectives))
    moveBefore(collective, sources[index], index < window ? begin : dones[index - window].getOperation());
}

/// Collectives without a use in the block, in the order in which they start: each ends where the one `window` after it
/// starts.
void Splitter::delay(ArrayRef<Operation *> collectives) {
  Operation *before = nullptr;
  for (Operation *collective : collectives) {
    Operation *made = lastOperand(collective);
    moveBehind(collective, before && lastOperand(before) == made ? before : made); // those of one op keep their order
    before = collective;
  }
  for (auto [index, collective] : llvm::enumerate(collectives))
    split(collective, index + window < collectives.size() ? collectives[index + window] : nullptr);
}

/// Whether there is a launch between a collective's last operand and its first use.
static bool leavesWork(Operation *collective) {
  Operation *need = firstNeed(collective);
  for (Operation *op = lastOperand(collective)->getNextNode(); op && op != need; op = op->getNextNode())
    if (isa<LaunchOp>(op) && !llvm::is_contained(collective->getUsers(), op))
      return true;
  return false;
}

/// Whether one is under way when the other, of its kind and group, could start.
static bool meet(Operation *one, Operation *other) {
  auto startsWithin = [](Operation *inner, Operation *outer) {
    Operation *made = lastOperand(inner);
    return !made->isBeforeInBlock(lastOperand(outer)) && made->isBeforeInBlock(firstNeed(outer));
  };
  return one->getName() == other->getName() &&
         cast<CollectiveOpInterface>(one).getAxes() == cast<CollectiveOpInterface>(other).getAxes() &&
         (startsWithin(one, other) || startsWithin(other, one));
}

/// A collective with launches between producer and first use becomes asynchronous; so do others that would share its
/// link from another queue.
void Splitter::spread(ArrayRef<Operation *> collectives) {
  llvm::SetVector<Operation *> apart;
  for (Operation *collective : collectives)
    if (leavesWork(collective))
      apart.insert(collective);
  for (size_t next = 0; next < apart.size(); ++next)
    for (Operation *other : collectives)
      if (!apart.contains(other) && meet(apart[next], other))
        apart.insert(other);
  Operation *before = nullptr;
  for (Operation *collective : collectives) {
    if (!apart.contains(collective))
      continue;
    Operation *made = lastOperand(collective);
    moveBehind(collective, before && lastOperand(before) == made ? before : made); // those of one op keep their order
    before = collective;
  }
  for (Operation *collective : collectives)
    if (apart.contains(collective))
      split(collective, firstNeed(collective));
}

void Splitter::run() {
  SmallVector<Operation *> early, late, others;
  for (Operation *collective : collectivesOf(block)) {
    if (!getQueue(collective).empty() || isScalar(collective) || !lastOperand(collective))
      continue;
    bool needed = firstNeed(collective);
    if (!needed)
      late.push_back(collective);
    else if (sourcesOf(collective))
      early.push_back(collective);
    else if (!isa<AllReduceOp>(collective)) // its first use is the next matmul
      others.push_back(collective);
  }
  // Each step moves ends, of which the next ones' may be made.
  spread(others);
  llvm::stable_sort(late, [](Operation *a, Operation *b) { return lastOperand(a)->isBeforeInBlock(lastOperand(b)); });
  delay(late);
  llvm::DenseMap<Operation *, Operation *> needs;
  for (Operation *collective : early)
    needs[collective] = firstNeed(collective);
  llvm::stable_sort(early, [&](Operation *a, Operation *b) { return needs.at(a)->isBeforeInBlock(needs.at(b)); });
  hoist(early);
}

namespace {
struct SplitCollectivesPass : impl::SplitCollectivesPassBase<SplitCollectivesPass> {
  using SplitCollectivesPassBase::SplitCollectivesPassBase;

  void runOnOperation() override {
    if (window == 0)
      return;
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>())
        Splitter(block, window).run();
  }
};
} // namespace

} // namespace par
