#include "Groups.h"
#include "par/Kernels/Builtin.h"

using namespace mlir;

namespace par {

/// Ops that update state take over its storage: result i of an optimizer is the new value of its i-th state operand.
static SmallVector<std::pair<Value, Value>> findUpdates(Operation *op) {
  if (auto adamw = dyn_cast<AdamwOp>(op))
    return {{adamw.getNewWeight(), adamw.getWeight()},
            {adamw.getNewFirst(), adamw.getFirst()},
            {adamw.getNewSecond(), adamw.getSecond()}};
  if (auto momentum = dyn_cast<MomentumOp>(op))
    return {{momentum.getNewWeight(), momentum.getWeight()}, {momentum.getNewVelocity(), momentum.getVelocity()}};
  if (auto sgd = dyn_cast<SgdOp>(op))
    return {{sgd.getNewWeight(), sgd.getWeight()}};
  return {};
}

/// The multiplication of an optimizer's gradient by a scalar that nobody else reads.
static MultiplyOp findScaling(Operation *op) {
  if (findUpdates(op).empty())
    return {};
  auto product = op->getOperand(1).getDefiningOp<MultiplyOp>(); // weight, gradient, ...
  return product && product->hasOneUse() ? product : MultiplyOp();
}

/// The squares that a reduction alone adds up, of what is in memory anyway.
static MultiplyOp findSquares(Operation *op, IsTaken isTaken) {
  auto squares = isa<ReduceOp>(op) ? op->getOperand(0).getDefiningOp<MultiplyOp>() : MultiplyOp();
  if (!squares || !squares->hasOneUse() || squares.getLhs() != squares.getRhs())
    return {};
  Operation *source = squares.getLhs().getDefiningOp();
  return !source || !isKernelOp(source) || isTaken(source) ? squares : MultiplyOp();
}

/// What widens an operand from bf16 or f16, and what narrows the result: a kernel that keeps both so computes in f32.
struct Conversions {
  ConvertOp widening, narrowing;
};

static Conversions findConversions(Operation *op, IsTaken isTaken) {
  if (op->hasTrait<OpTrait::Elementwise>())
    return {};
  for (Value operand : op->getOperands()) {
    auto widening = operand.getDefiningOp<ConvertOp>();
    if (!widening || !isFree(widening))
      continue;
    Value result = op->getResult(0);
    auto narrowing = result.hasOneUse() ? dyn_cast<ConvertOp>(*result.getUsers().begin()) : ConvertOp();
    bool goesBack = narrowing && !isTaken(narrowing) && narrowing.getType() == widening.getOperand().getType();
    return {widening, goesBack ? narrowing : ConvertOp()};
  }
  return {};
}

static std::unique_ptr<Group> finishBuiltin(std::unique_ptr<Group> group, IsTaken isTaken) {
  group->close(isTaken);
  OpBuilder builder(group->anchor->getContext());
  OwningOpRef<KernelOp> kernel(buildKernel(builder, *group));
  std::optional<BuiltinCall> call = describeBuiltin(*kernel);
  if (!call)
    return nullptr;
  group->implementation = "builtin:" + std::string(call->kernel->name);
  return group;
}

/// With the conversions around the op.
static std::unique_ptr<Group> tryNarrow(Operation *op, Conversions conversions, IsTaken isTaken) {
  auto group = std::make_unique<Group>();
  group->clones.insert(conversions.widening);
  group->ops.push_back(op);
  group->anchor = op;
  group->results.assign(op->result_begin(), op->result_end());
  if (conversions.narrowing) {
    group->ops.push_back(conversions.narrowing);
    group->results = {conversions.narrowing.getResult()};
  }
  return finishBuiltin(std::move(group), isTaken);
}

/// With the multiplication of an operand before the op, or the add to an accumulator behind it.
static std::unique_ptr<Group> tryBuiltin(Operation *op, MultiplyOp scaling, AddOp add, IsTaken isTaken) {
  auto group = std::make_unique<Group>();
  if (scaling) {
    group->ops.push_back(scaling);
    for (Value factor : scaling->getOperands())
      if (auto broadcast = factor.getDefiningOp<BroadcastInDimOp>())
        group->clones.insert(broadcast);
  }
  group->ops.push_back(op);
  group->anchor = op;
  group->results.assign(op->result_begin(), op->result_end());
  group->tied = findUpdates(op);
  if (add) {
    group->ops.push_back(add);
    group->results = {add.getResult()};
    group->tied = {{add.getResult(), add.getLhs() == op->getResult(0) ? add.getRhs() : add.getLhs()}};
  }
  return finishBuiltin(std::move(group), isTaken);
}

std::unique_ptr<Group> formBuiltin(Operation *op, IsTaken isTaken) {
  for (MultiplyOp product : {findScaling(op), findSquares(op, isTaken)})
    if (product && !isTaken(product))
      if (auto group = tryBuiltin(op, product, {}, isTaken))
        return group;
  if (Conversions conversions = findConversions(op, isTaken); conversions.widening)
    if (auto group = tryNarrow(op, conversions, isTaken))
      return group;
  Value accumulator;
  if (op->getNumResults() == 1)
    if (AddOp add = findAccumulation(op->getResult(0), accumulator, isTaken); add && !isTaken(add))
      if (auto group = tryBuiltin(op, {}, add, isTaken))
        return group;
  return tryBuiltin(op, {}, {}, isTaken);
}

} // namespace par
