#include "Groups.h"
#include "par/Kernels/Matmul.h"

using namespace mlir;

namespace par {

static bool isMovement(Operation *op) { return isa_and_nonnull<TransposeOp, ReshapeOp>(op); }

/// The movements of its result that nobody but the next one reads; leaves the last value in `value`.
static SmallVector<Operation *> followResult(Value &value) {
  SmallVector<Operation *> path;
  while (value.hasOneUse() && isMovement(*value.getUsers().begin())) {
    path.push_back(*value.getUsers().begin());
    value = path.back()->getResult(0);
  }
  return path;
}

static void foldOperand(Group &group, Value operand, IsTaken isTaken) {
  while (isMovement(operand.getDefiningOp()) && !isTaken(operand.getDefiningOp())) {
    group.clones.insert(operand.getDefiningOp());
    operand = operand.getDefiningOp()->getOperand(0);
  }
}

static std::unique_ptr<Group> buildProduct(DotOp dot, bool foldsOperands, bool foldsResult,
                                           IsTaken isTaken) {
  auto group = std::make_unique<Group>();
  group->implementation = "library:matmul";
  group->anchor = dot;
  if (foldsOperands) {
    foldOperand(*group, dot.getLhs(), isTaken);
    foldOperand(*group, dot.getRhs(), isTaken);
  }
  group->ops.push_back(dot);
  Value value = dot.getResult(), accumulator;
  if (foldsResult)
    group->ops.append(followResult(value));
  if (AddOp add = findAccumulation(value, accumulator, isTaken)) {
    group->ops.push_back(add);
    value = add.getResult();
    group->tied.push_back({value, accumulator});
  }
  group->results.push_back(value);
  group->close(isTaken);
  return group;
}

/// Whether a library call computes what the group does.
static bool fits(const Group &group) {
  OpBuilder builder(group.anchor->getContext());
  OwningOpRef<KernelOp> kernel(buildKernel(builder, group));
  return describeMatmul(*kernel).has_value();
}

std::unique_ptr<Group> formProduct(DotOp dot, IsTaken isTaken) {
  if (dot->use_empty())
    return nullptr;
  for (bool foldsOperands : {true, false})
    for (bool foldsResult : {true, false})
      if (auto group = buildProduct(dot, foldsOperands, foldsResult, isTaken); fits(*group))
        return group;
  return nullptr;
}

} // namespace par
