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

/// With the scaling of its gradient before the op, or the add to an accumulator behind it.
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
  group->close(isTaken);
  OpBuilder builder(op->getContext());
  OwningOpRef<KernelOp> kernel(buildKernel(builder, *group));
  std::optional<BuiltinCall> call = describeBuiltin(*kernel);
  if (!call)
    return nullptr;
  group->implementation = "builtin:" + std::string(call->kernel->name);
  return group;
}

std::unique_ptr<Group> formBuiltin(Operation *op, IsTaken isTaken) {
  if (MultiplyOp scaling = findScaling(op); scaling && !isTaken(scaling))
    if (auto group = tryBuiltin(op, scaling, {}, isTaken))
      return group;
  Value accumulator;
  if (op->getNumResults() == 1)
    if (AddOp add = findAccumulation(op->getResult(0), accumulator, isTaken); add && !isTaken(add))
      if (auto group = tryBuiltin(op, {}, add, isTaken))
        return group;
  return tryBuiltin(op, {}, {}, isTaken);
}

} // namespace par
