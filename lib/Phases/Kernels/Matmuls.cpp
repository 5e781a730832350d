#include "Groups.h"
#include "PaddedRows.h"
#include "StridedView.h"
#include "par/Phases/Kernels/Matmul.h"

using namespace mlir;

namespace par {

static bool isLayoutOp(Operation *op) { return isa_and_nonnull<TransposeOp, ReshapeOp>(op); }

/// Ops that an operand's strides can express.
static bool isView(Operation *op) { return isLayoutOp(op) || dropsPadding(op); }

/// Which neighbors of a matmul are tried as parts of its call.
struct Folding {
  bool operands, result; ///< layout ops
  bool narrow;           ///< conversions of bf16 and f16
};

/// The chain of layout ops after a result, each the only user of its operand; leaves the last value in `value`.
static SmallVector<Operation *> followResult(Value &value, Folding folding) {
  SmallVector<Operation *> path;
  while (value.hasOneUse()) {
    Operation *user = *value.getUsers().begin();
    bool narrows = folding.narrow && isa<ConvertOp>(user) && !isFree(user);
    if (!(folding.result && isLayoutOp(user)) && !narrows)
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

static std::unique_ptr<Group> buildMatmulGroup(DotOp dot, Folding folding, IsTaken isTaken) {
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

/// The library call that computes the group.
static std::optional<MatmulCall> callOf(const Group &group) {
  OpBuilder builder(group.anchor->getContext());
  OwningOpRef<KernelOp> kernel(buildKernel(builder, group));
  return describeMatmul(*kernel);
}

static int64_t widthOf(const MatmulCall &call) { return std::min(call.m, call.n); }

/// Whether layout ops make a matmul many matmuls of few columns, each of which reads a whole operand, though without
/// them it is wide, and its sums are so long that the copy of its result costs little. A Fourier transform's result
/// [batch, frequency, channel, 2], from sums over 512 numbers: 1,024 matmuls of 768 x 2, or 4 of 768 x 512.
static bool isCutThin(const MatmulCall &moved, const MatmulCall &plain) {
  constexpr int64_t minColumns = 16, longSum = 64;
  return widthOf(moved) < minColumns && widthOf(plain) >= minColumns && moved.k >= longSum;
}

/// The matmul with as many neighbors as a call takes, except those that make it thin.
static std::unique_ptr<Group> buildWide(DotOp dot, bool operands, bool conversions, IsTaken isTaken) {
  auto moved = buildMatmulGroup(dot, {operands, /*result=*/true, conversions}, isTaken);
  std::optional<MatmulCall> call = callOf(*moved);
  if (call && moved->ops.size() == 1)
    return moved;
  auto plain = buildMatmulGroup(dot, {operands, /*result=*/false, conversions}, isTaken);
  std::optional<MatmulCall> plainCall = callOf(*plain);
  if (call && !(plainCall && isCutThin(*call, *plainCall)))
    return moved;
  return plainCall ? std::move(plain) : nullptr;
}

std::unique_ptr<Group> formMatmul(DotOp dot, bool narrow, IsTaken isTaken) {
  if (dot->use_empty())
    return nullptr;
  for (bool conversions : {true, false})
    for (bool operands : {true, false})
      if (narrow || !conversions)
        if (auto group = buildWide(dot, operands, conversions, isTaken))
          return group;
  return nullptr;
}

} // namespace par
