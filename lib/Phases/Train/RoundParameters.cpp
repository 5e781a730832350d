// Rounds a parameter before its elements are moved, so that no step needs its f32 elements where it is used. Rounding
// and moving commute, element by element, so the values are the same bits.
#include "MovedElements.h"
#include "par/Dialect/Par.h"
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ROUNDPARAMETERSPASS
#include "par/Phases/Train/Passes.h.inc"

/// The format that every use rounds the value to, perhaps after it has moved the elements; null if one does not, or if
/// two differ.
static FloatType formatOfUses(Value value) {
  FloatType common;
  for (OpOperand &use : value.getUses()) {
    FloatType format;
    if (auto convert = dyn_cast<ConvertOp>(use.getOwner()))
      format = dyn_cast<FloatType>(convert.getType().getElementType());
    else if (movesElementsOf(use))
      format = formatOfUses(use.getOwner()->getResult(0));
    if (!format || format.getWidth() >= 32 || (common && common != format))
      return {};
    common = format;
  }
  return common;
}

/// Lets the op move elements of the narrow format; what rounded its result is left out.
static void moveRounded(Operation *op, FloatType format) {
  for (NamedAttribute attribute : op->getAttrs())
    if (auto number = dyn_cast<FloatAttr>(attribute.getValue()); number && number.getType().isF32())
      op->setAttr(attribute.getName(), FloatAttr::get(format, number.getValueAsDouble()));
  Value result = op->getResult(0);
  result.setType(cast<RankedTensorType>(result.getType()).clone(format));
  for (Operation *user : llvm::to_vector(result.getUsers())) {
    if (auto convert = dyn_cast<ConvertOp>(user)) {
      convert.replaceAllUsesWith(result);
      convert.erase();
    } else {
      moveRounded(user, format);
    }
  }
}

/// Each use that moves elements has a convert of its own, on the stage of that use.
static void roundBeforeMoves(ReadOp read, FloatType format) {
  OpBuilder builder(read.getContext());
  for (OpOperand &use : llvm::make_early_inc_range(read.getResult().getUses())) {
    Operation *user = use.getOwner();
    if (isa<ConvertOp>(user))
      continue;
    builder.setInsertionPoint(user);
    Value rounded = buildConvert(builder, user->getLoc(), read, format);
    if (std::optional<int64_t> stage = getStage(user))
      setStage(rounded.getDefiningOp(), *stage);
    use.set(rounded);
    moveRounded(user, format);
  }
}

namespace {
struct RoundParametersPass : impl::RoundParametersPassBase<RoundParametersPass> {
  using RoundParametersPassBase::RoundParametersPassBase;

  void runOnOperation() override {
    llvm::StringMap<SmallVector<ReadOp>> reads;
    for (StepOp step : getOperation().getOps<StepOp>())
      for (ReadOp read : step.getBlock().getOps<ReadOp>())
        reads[read.getVariable()].push_back(read);
    for (auto variable : getOperation().getOps<VariableOp>()) {
      RankedTensorType type = variable.getTensorType();
      if (variable.getKind() != VariableKind::parameter || !type.getElementType().isF32() ||
          type.getNumElements() < minSize)
        continue;
      // One step that reads f32 makes all ranks have it whole in f32.
      SmallVector<std::pair<ReadOp, FloatType>> rounded;
      bool all = llvm::all_of(reads[variable.getSymName()], [&](ReadOp read) {
        rounded.push_back({read, formatOfUses(read)});
        return read.use_empty() || rounded.back().second;
      });
      for (auto [read, format] : all ? rounded : SmallVector<std::pair<ReadOp, FloatType>>())
        roundBeforeMoves(read, format);
    }
  }
};
} // namespace

} // namespace par
