#include "AlignedRows.h"
#include "Groups.h"
#include "StridedView.h"
#include "par/Kernels/Matmul.h"

using namespace mlir;

namespace par {

static bool isMovement(Operation *op) { return isa_and_nonnull<TransposeOp, ReshapeOp>(op); }

/// What strides of an operand can say.
static bool isView(Operation *op) { return isMovement(op) || dropsPadding(op); }

/// How much of what stands around a product is tried to be part of its call.
struct Folding {
  bool operands, result; ///< movements
  bool narrow;           ///< conversions of bf16 and f16
};

/// The movements of its result that nobody but the next one reads; leaves the last value in `value`.
static SmallVector<Operation *> followResult(Value &value, Folding folding) {
  SmallVector<Operation *> path;
  while (value.hasOneUse()) {
    Operation *user = *value.getUsers().begin();
    bool narrows = folding.narrow && isa<ConvertOp>(user) && !isFree(user);
    if (!(folding.result && isMovement(user)) && !narrows)
      break;
    path.push_back(user);
    value = user->getResult(0);
  }
  return path;
}

static void foldOperand(Group &group, Value operand, Folding folding, IsTaken isTaken) {
  SmallVector<Operation *> moves;
  for (Operation *op = operand.getDefiningOp(); op && !isTaken(op); op = operand.getDefiningOp()) {
    bool widens = folding.narrow && isa<ConvertOp>(op) && isFree(op);
    if (!(folding.operands && isView(op)) && !widens)
      break;
    if (!widens)
      moves.push_back(op);
    if (!widens && !viewBehind(op->getOperand(0), moves))
      break;
    group.clones.insert(op);
    operand = op->getOperand(0);
  }
}

static std::unique_ptr<Group> buildProduct(DotOp dot, Folding folding, IsTaken isTaken) {
  auto group = std::make_unique<Group>();
  group->implementation = "library:matmul";
  group->anchor = dot;
  foldOperand(*group, dot.getLhs(), folding, isTaken);
  foldOperand(*group, dot.getRhs(), folding, isTaken);
  group->ops.push_back(dot);
  Value value = dot.getResult(), accumulator;
  group->ops.append(followResult(value, folding));
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

std::unique_ptr<Group> formProduct(DotOp dot, bool narrow, IsTaken isTaken) {
  if (dot->use_empty())
    return nullptr;
  for (bool conversions : {true, false})
    for (bool operands : {true, false})
      for (bool result : {true, false})
        if (narrow || !conversions)
          if (auto group = buildProduct(dot, {operands, result, conversions}, isTaken); fits(*group))
            return group;
  return nullptr;
}

} // namespace par
