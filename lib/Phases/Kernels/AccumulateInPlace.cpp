#include "Groups.h"
#include "par/Phases/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ACCUMULATEINPLACEPASS
#include "par/Phases/Kernels/Passes.h.inc"

namespace {

/// The summands of a sum that is stored, none of which anybody else reads.
struct Sum {
  AddOp root;
  SmallVector<AddOp> adds;
  LoadOp accumulator;          ///< value of the sum's own buffer
  SmallVector<Value> products; ///< matmuls and scattered sums, which can add to a buffer
  SmallVector<Value> rest;
};

} // namespace

/// Through reduction over ranks: the buffers that a value is stored to; false if anything else reads it.
static bool findBuffers(Value value, SmallVectorImpl<StringRef> &buffers) {
  for (OpOperand &use : value.getUses()) {
    if (auto store = dyn_cast<StoreOp>(use.getOwner()))
      buffers.push_back(store.getBuffer());
    else if (auto reduce = dyn_cast<AllReduceOp>(use.getOwner());
             !reduce || !findBuffers(reduce->getResult(use.getOperandNumber()), buffers))
      return false;
  }
  return true;
}

/// The op that makes a summand, before layout ops.
static Operation *findMaker(Value value) {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<TransposeOp, ReshapeOp>(op) && op->getOperand(0).hasOneUse())
    op = op->getOperand(0).getDefiningOp();
  return op;
}

static void collect(AddOp add, ArrayRef<StringRef> buffers, Sum &sum) {
  sum.adds.push_back(add);
  for (Value operand : add->getOperands()) {
    Operation *op = operand.getDefiningOp();
    auto load = dyn_cast_or_null<LoadOp>(op);
    if (auto inner = dyn_cast_or_null<AddOp>(op); inner && operand.hasOneUse())
      collect(inner, buffers, sum);
    else if (load && operand.hasOneUse() && !sum.accumulator && isEarlyLoad(load) &&
             llvm::is_contained(buffers, load.getBuffer()))
      sum.accumulator = load;
    else if (isa_and_nonnull<DotOp, IndexAddOp>(findMaker(operand)) && operand.hasOneUse())
      sum.products.push_back(operand);
    else
      sum.rest.push_back(operand);
  }
}

/// Moves an op right after the later one of its operands.
static void hoist(Operation *op) {
  Operation *latest = nullptr;
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp(); !latest || latest->isBeforeInBlock(source))
      latest = source;
  op->moveAfter(latest);
}

/// Builds ((accumulator + matmul) + matmul) + (rest + rest).
static void chain(Sum &sum) {
  auto byPlace = [](Value a, Value b) { return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp()); };
  llvm::stable_sort(sum.products, byPlace);
  OpBuilder builder(sum.root);
  sum.accumulator->moveBefore(sum.root->getBlock(), sum.root->getBlock()->begin());
  auto add = [&](Value left, Value right) {
    return AddOp::create(builder, sum.root.getLoc(), left, right).getResult();
  };
  Value whole = sum.accumulator, rest;
  for (Value product : sum.products) {
    whole = add(whole, product);
    hoist(whole.getDefiningOp());
  }
  for (Value other : sum.rest)
    rest = rest ? add(rest, other) : other;
  sum.root.replaceAllUsesWith(rest ? add(whole, rest) : whole);
  for (AddOp old : sum.adds)
    old.erase();
}

static void chainSums(Block &block) {
  SmallVector<Sum> sums;
  for (auto add : block.getOps<AddOp>()) {
    SmallVector<StringRef> buffers;
    if (!findBuffers(add, buffers) || buffers.empty())
      continue;
    sums.emplace_back().root = add;
    collect(add, buffers, sums.back());
  }
  for (Sum &sum : sums) {
    if (sum.products.empty())
      continue;
    if (sum.accumulator)
      chain(sum);
    else
      for (AddOp add : llvm::reverse(sum.adds))
        hoist(add);
  }
}

namespace {
struct AccumulateInPlacePass : impl::AccumulateInPlacePassBase<AccumulateInPlacePass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>())
        chainSums(block.getBody().front());
  }
};
} // namespace

} // namespace par
