#include "MovedElements.h"
#include "par/Dialect/Par.h"
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_WIDENMASTERSPASS
#include "par/Phases/Train/Passes.h.inc"

namespace {

/// Makes masters of f32 of the parameters that the file has in bf16 or f16.
class MasterWidener {
public:
  explicit MasterWidener(ModuleOp module) : module(module), builder(module.getContext()) {}
  void widen(VariableOp variable);

private:
  void widenValue(VariableOp variable);
  void roundAtUse(OpOperand &use, FloatType narrow);
  void roundRows(OpOperand &use, FloatType narrow);

  ModuleOp module;
  OpBuilder builder;
};

} // namespace

/// Converts a value in the module to f32.
void MasterWidener::widenValue(VariableOp variable) {
  auto value = dyn_cast_or_null<DenseElementsAttr>(variable.getValueAttr());
  if (!value)
    return;
  auto widened = value.mapValues(builder.getF32Type(), [](const APFloat &number) {
    APFloat wide = number;
    bool inexact = false;
    wide.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &inexact);
    return wide.bitcastToAPInt();
  });
  variable.setValueAttr(widened);
}

static void takeStage(Value made, Operation *from) {
  if (std::optional<int64_t> stage = getStage(from))
    setStage(made.getDefiningOp(), *stage);
}

void MasterWidener::roundAtUse(OpOperand &use, FloatType narrow) {
  builder.setInsertionPoint(use.getOwner());
  Value rounded = buildConvert(builder, use.getOwner()->getLoc(), use.get(), narrow);
  takeStage(rounded, use.getOwner());
  use.set(rounded);
}

/// Looked-up rows are rounded rather than the table: the sum of their cotangents is f32.
void MasterWidener::roundRows(OpOperand &use, FloatType narrow) {
  Operation *lookup = use.getOwner();
  Value rows = lookup->getResult(0);
  rows.setType(cast<RankedTensorType>(rows.getType()).clone(builder.getF32Type()));
  builder.setInsertionPointAfter(lookup);
  Value rounded = buildConvert(builder, lookup->getLoc(), rows, narrow);
  takeStage(rounded, lookup);
  rows.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
}

void MasterWidener::widen(VariableOp variable) {
  auto narrow = dyn_cast<FloatType>(variable.getTensorType().getElementType());
  if (!narrow || narrow.getWidth() >= 32)
    return;
  RankedTensorType wide = variable.getTensorType().clone(builder.getF32Type());
  if (DictionaryAttr source = variable.getSourceAttr(); source && !source.contains("dtype")) {
    NamedAttrList entries(source);
    entries.set("dtype", TypeAttr::get(narrow));
    variable.setSourceAttr(entries.getDictionary(module.getContext()));
  }
  widenValue(variable);
  variable.setTypeAttr(TypeAttr::get(wide));
  if (std::optional<Type> stored = variable.getStored())
    variable.setStoredAttr(TypeAttr::get(cast<RankedTensorType>(*stored).clone(builder.getF32Type())));
  for (StepOp step : module.getOps<StepOp>())
    for (ReadOp read : llvm::to_vector(step.getBlock().getOps<ReadOp>())) {
      if (read.getVariable() != variable.getSymName())
        continue;
      read.getResult().setType(wide);
      for (OpOperand &use : llvm::make_early_inc_range(read.getResult().getUses()))
        isLookup(use) ? roundRows(use, narrow) : roundAtUse(use, narrow);
    }
}

namespace {
struct WidenMastersPass : impl::WidenMastersPassBase<WidenMastersPass> {
  void runOnOperation() override {
    MasterWidener widener(getOperation());
    for (VariableOp variable : getOperation().getOps<VariableOp>())
      if (variable.getKind() == VariableKind::parameter)
        widener.widen(variable);
  }
};
} // namespace

} // namespace par
