// Forms the groups of builtin kernels: the op with as many of its surrounding converts, scalings and accumulations as
// one builtin call covers.
#include "Groups.h"
#include "PaddedRows.h"
#include "par/Dialect/Interfaces/Optimizer.h"
#include "par/Phases/Kernels/Builtin.h"

using namespace mlir;

namespace par {

/// Ops that update state take over its storage: result i of an optimizer is the new value of its i-th state operand.
static SmallVector<std::pair<Value, Value>> findUpdates(Operation *op) {
  SmallVector<std::pair<Value, Value>> updates;
  if (auto optimizer = dyn_cast<OptimizerOpInterface>(op)) {
    updates.emplace_back(op->getResult(0), op->getOperand(0));
    for (Value state : op->getResults().drop_front()) // after weight and gradient
      updates.emplace_back(state, op->getOperand(updates.size() + 1));
  }
  return updates;
}

/// The multiplication of an optimizer's gradient by a scalar, if the optimizer is its only user.
static MultiplyOp findScaling(Operation *op) {
  if (findUpdates(op).empty())
    return {};
  auto product = op->getOperand(1).getDefiningOp<MultiplyOp>(); // weight, gradient, ...
  return product && product->hasOneUse() ? product : MultiplyOp();
}

/// The squares of a value in memory, if a reduction is their only user.
static MultiplyOp findSquares(Operation *op, IsTaken isTaken) {
  auto squares = isa<ReduceOp>(op) ? op->getOperand(0).getDefiningOp<MultiplyOp>() : MultiplyOp();
  if (!squares || !squares->hasOneUse() || squares.getLhs() != squares.getRhs())
    return {};
  Operation *source = squares.getLhs().getDefiningOp();
  return !source || !isKernelOp(source) || isTaken(source) ? squares : MultiplyOp();
}

/// The converts around an op. A call that absorbs them reads and writes 16 bit, computes f32.
struct Conversions {
  SmallVector<ConvertOp, 2> widenings;
  ConvertOp narrowing;
  /// Pad of the converted result, with zeros after its rows.
  PadOp padding;
};

static Conversions findConversions(Operation *op, IsTaken isTaken) {
  Conversions found;
  if (op->hasTrait<OpTrait::Elementwise>())
    return found;
  for (Value operand : op->getOperands())
    if (auto widening = operand.getDefiningOp<ConvertOp>(); widening && isFree(widening))
      found.widenings.push_back(widening);
  Value result = op->getResult(0);
  auto narrowing = result.hasOneUse() ? dyn_cast<ConvertOp>(*result.getUsers().begin()) : ConvertOp();
  if (!found.widenings.empty() && narrowing && !isTaken(narrowing) &&
      narrowing.getType().getElementType() == found.widenings[0].getOperand().getType().getElementType())
    found.narrowing = narrowing;
  if (found.narrowing && narrowing.getResult().hasOneUse())
    if (auto padding = dyn_cast<PadOp>(*narrowing->getUsers().begin()); padding && padsRows(padding))
      found.padding = padding;
  return found;
}

std::unique_ptr<Group> finishBuiltin(std::unique_ptr<Group> group, bool gpu, IsTaken isTaken) {
  group->close(isTaken);
  OpBuilder builder(group->anchor->getContext());
  OwningOpRef<KernelOp> kernel(buildKernel(builder, *group));
  std::optional<BuiltinCall> call = describeBuiltin(*kernel);
  if (!call || (call->kernel->forCuda && !gpu))
    return nullptr;
  group->implementation = "builtin:" + std::string(call->kernel->name);
  return group;
}

/// With the conversions around the op.
static std::unique_ptr<Group> tryNarrow(Operation *op, Conversions conversions, bool gpu, IsTaken isTaken) {
  auto group = std::make_unique<Group>();
  for (ConvertOp widening : conversions.widenings) {
    group->clones.insert(widening);
    if (Operation *slice = widening.getOperand().getDefiningOp(); dropsPadding(slice) && !isTaken(slice))
      group->clones.insert(slice);
  }
  group->ops.push_back(op);
  group->anchor = op;
  group->results.assign(op->result_begin(), op->result_end());
  if (conversions.narrowing) {
    group->ops.push_back(conversions.narrowing);
    group->results = {conversions.narrowing.getResult()};
  }
  if (conversions.padding) {
    group->ops.push_back(conversions.padding);
    group->results = {conversions.padding.getResult()};
  }
  return finishBuiltin(std::move(group), gpu, isTaken);
}

/// With as many of the conversions as one kernel does.
static std::unique_ptr<Group> tryNarrowest(Operation *op, const Conversions &all, bool gpu, IsTaken isTaken) {
  if (all.widenings.empty())
    return nullptr;
  Conversions first{{all.widenings[0]}, all.narrowing, {}};
  if (all.padding)
    if (auto group = tryNarrow(op, {first.widenings, all.narrowing, all.padding}, gpu, isTaken))
      return group;
  for (const Conversions &widened : {all, first})
    for (ConvertOp narrowing : {all.narrowing, ConvertOp()})
      if (auto group = tryNarrow(op, {widened.widenings, narrowing, {}}, gpu, isTaken))
        return group;
  return nullptr;
}

/// The group of a builtin, with the multiplication of an operand before it, or the add to an accumulator after it.
static std::unique_ptr<Group> tryBuiltin(Operation *op, MultiplyOp scaling, AddOp add, bool gpu, IsTaken isTaken) {
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
  return finishBuiltin(std::move(group), gpu, isTaken);
}

std::unique_ptr<Group> formBuiltin(Operation *op, bool gpu, IsTaken isTaken) {
  for (MultiplyOp product : {findScaling(op), findSquares(op, isTaken)})
    if (product && !isTaken(product))
      if (auto group = tryBuiltin(op, product, {}, gpu, isTaken))
        return group;
  if (auto group = tryNarrowest(op, findConversions(op, isTaken), gpu, isTaken))
    return group;
  Value accumulator;
  if (op->getNumResults() == 1)
    if (AddOp add = findAccumulation(op->getResult(0), accumulator, isTaken); add && !isTaken(add))
      if (auto group = tryBuiltin(op, {}, add, gpu, isTaken))
        return group;
  return tryBuiltin(op, {}, {}, gpu, isTaken);
}

/// The type from which the operands are converted, if it is one type.
static Type narrowType(const Conversions &conversions) {
  llvm::SmallSetVector<Type, 2> types;
  for (ConvertOp widening : conversions.widenings)
    types.insert(widening.getOperand().getType().getElementType());
  return types.size() == 1 ? types[0] : Type();
}

/// Whether a GPU's library has a form of the op's kernel that keeps all in that type.
static bool keepsAll(Operation *op, Type narrow) {
  auto group = tryBuiltin(op, {}, {}, /*gpu=*/true, [](Operation *) { return false; });
  if (!group)
    return false;
  std::string name = StringRef(group->implementation).drop_front(StringRef("builtin:").size()).str();
  const kernels::BuiltinKernel *form = kernels::findBuiltin(name + (narrow.isBF16() ? "_bf16" : "_f16"));
  return form && form->forCuda;
}

/// Rounds the result of an op to the type of its operands, if all of these are stored in one 16-bit type.
static void roundResult(Operation *op) {
  Conversions conversions = findConversions(op, [](Operation *) { return false; });
  Type narrow = narrowType(conversions);
  if (!narrow || conversions.narrowing || op->getNumResults() != 1 ||
      conversions.widenings.size() != op->getNumOperands() || !keepsAll(op, narrow))
    return;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value result = op->getResult(0), rounded = buildConvert(builder, op->getLoc(), result, narrow);
  Value widened = buildConvert(builder, op->getLoc(), rounded, getElementTypeOrSelf(result.getType()));
  result.replaceAllUsesExcept(widened, rounded.getDefiningOp());
  for (Operation *user : llvm::make_early_inc_range(widened.getUsers()))
    if (isa<ConvertOp>(user) && user->getResult(0).getType() == rounded.getType()) {
      user->getResult(0).replaceAllUsesWith(rounded);
      user->erase();
    }
}

void roundForLibrary(BlockOp block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.getBody().front())
    if (isKernelOp(&op) && !isFree(&op))
      ops.push_back(&op);
  for (Operation *op : ops)
    if (!isa<ConvertOp>(op)) // those may go
      roundResult(op);
}

} // namespace par
