// Moves elements of a gradient of several stages on each stage that contributes to it, before the sum over stages.
#include "MovedGradients.h"

#include "par/Phases/Split/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_DISTRIBUTEGRADIENTSPASS
#include "par/Phases/Split/Passes.h.inc"

/// Contributions to a sum by the stage that makes them, in order.
using Contributions = llvm::MapVector<int64_t, SmallVector<Value>>;

/// Collects the parts that adds without a stage sum up. False if a part has no stage.
static bool collect(Value value, Contributions &contributions) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  std::optional<int64_t> stage = getStage(op);
  if (stage)
    contributions[*stage].push_back(value);
  else if (isa<AddOp>(op) && op->hasOneUse())
    return collect(op->getOperand(0), contributions) && collect(op->getOperand(1), contributions);
  return stage.has_value();
}

static Value addUp(OpBuilder &builder, Location loc, ArrayRef<Value> values, std::optional<int64_t> stage) {
  Value sum = values.front();
  for (Value more : values.drop_front()) {
    sum = AddOp::create(builder, loc, sum, more);
    if (stage)
      setStage(sum.getDefiningOp(), *stage);
  }
  return sum;
}

/// Erases an add, and those that only it read.
static void eraseUnused(Operation *op) {
  if (!isa_and_nonnull<AddOp>(op) || !op->use_empty())
    return;
  Operation *lhs = op->getOperand(0).getDefiningOp(), *rhs = op->getOperand(1).getDefiningOp();
  op->erase();
  eraseUnused(lhs);
  if (rhs != lhs)
    eraseUnused(rhs);
}

/// A sum over stages whose elements then move into a gradient: moves each stage's part on its stage, and adds the
/// results.
static void distribute(AddOp add) {
  OpOperand &use = *add->use_begin();
  SmallVector<Operation *> chain = movesIntoGradient(use.getOwner(), use.getOperandNumber());
  Contributions contributions;
  if (chain.empty() || !collect(add, contributions) || contributions.size() < 2)
    return;
  OpBuilder builder(chain.back());
  builder.setInsertionPointAfter(chain.back());
  SmallVector<Value> moved;
  for (auto &[stage, values] : contributions) {
    IRMapping mapping;
    mapping.map(add.getResult(), addUp(builder, add.getLoc(), values, stage));
    for (Operation *op : chain)
      setStage(builder.clone(*op, mapping), stage);
    moved.push_back(mapping.lookup(chain.back()->getResult(0)));
  }
  Value last = chain.back()->getResult(0);
  last.replaceAllUsesWith(addUp(builder, add.getLoc(), moved, std::nullopt));
  for (Operation *op : llvm::reverse(chain))
    op->erase();
  eraseUnused(add);
}

namespace {
struct DistributeGradientsPass : impl::DistributeGradientsPassBase<DistributeGradientsPass> {
  void runOnOperation() override {
    auto endsSum = [](AddOp add) { return !getStage(add) && add->hasOneUse() && !isa<AddOp>(*add->user_begin()); };
    for (StepOp step : getOperation().getOps<StepOp>())
      for (AddOp add : llvm::to_vector(llvm::make_filter_range(step.getBlock().getOps<AddOp>(), endsSum)))
        distribute(add);
  }
};
} // namespace

} // namespace par
