// Retypes a step for bf16 or fp16, op by op: matmuls and activations are low-precision, reductions and losses f32,
// elementwise ops follow their operands. Values that the format cannot hold keep their op in f32.
#include "par/Dialect/Interfaces/Bilinear.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Par.h"
#include "par/Phases/Train/Passes.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_MIXPRECISIONPASS
#include "par/Phases/Train/Passes.h.inc"

namespace {

/// An f32 value that takes the format of the other operands; of several kinds the last one listed applies.
enum class Weak {
  Exact,     ///< one number everywhere, which the narrow format has
  Inexact,   ///< one number that it would round
  Parameter, ///< a parameter, perhaps moved
};

/// Retypes the values of one step, from the first op to the last.
class Mixer {
public:
  Mixer(StepOp step, FloatType narrow, const llvm::StringSet<> &kept)
      : step(step), narrow(narrow), kept(kept), builder(step.getContext()) {}
  void run();

private:
  bool isWide(Value value) const { return getElementTypeOrSelf(value.getType()).isF32(); }
  bool isLowPrecision(Value value) const { return getElementTypeOrSelf(value.getType()) == narrow; }
  /// An f32 value that keeps its users in f32.
  bool isStrong(Value value) const { return isWide(value) && !weak.contains(value); }
  bool anyOperand(Operation *op, function_ref<bool(Value)> is) const { return llvm::any_of(op->getOperands(), is); }
  void convertOperands(Operation *op, FloatType type);
  void convertResults(Operation *op);
  void narrowResults(Operation *op);
  void visitRead(ReadOp read);
  void visitConstant(Operation *op, SplatElementsAttr splat);
  void visit(Operation *op);
  void visitElementwise(Operation *op);
  void visitLayoutOp(Operation *op);
  void visitComposite(Operation *op);
  std::optional<Weak> joinWeak(Operation *op) const;

  StepOp step;
  FloatType narrow;
  const llvm::StringSet<> &kept;
  OpBuilder builder;
  DenseMap<Value, Weak> weak;
  DenseSet<Value> firm; ///< a parameter that stays f32, perhaps through layout ops: its matmuls are f32
};

} // namespace

/// A convert in front of the op for every operand of the other of the two formats. Each use has its own, so that the
/// cotangents of a parameter's uses are added in f32.
void Mixer::convertOperands(Operation *op, FloatType type) {
  builder.setInsertionPoint(op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isWide(operand.get()) && !isLowPrecision(operand.get()))
      continue;
    Value value = buildConvert(builder, operand.get().getLoc(), operand.get(), type);
    if (value == operand.get())
      continue;
    if (std::optional<int64_t> stage = getStage(op))
      setStage(value.getDefiningOp(), *stage);
    operand.set(value);
  }
}

/// Rounds the f32 results, which stay f32 inside the op.
void Mixer::convertResults(Operation *op) {
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    if (!isWide(result))
      continue;
    auto rounded = cast<ConvertOp>(buildConvert(builder, op->getLoc(), result, narrow).getDefiningOp());
    if (std::optional<int64_t> stage = getStage(op))
      rounded.setStage(*stage);
    result.replaceAllUsesExcept(rounded.getResult(), rounded);
  }
}

/// Gives the op's f32 results, and its attributes of their type, the narrow type.
void Mixer::narrowResults(Operation *op) {
  for (Value result : op->getResults())
    if (isWide(result))
      result.setType(cast<RankedTensorType>(result.getType()).clone(narrow));
  for (NamedAttribute attribute : op->getAttrs())
    if (auto number = dyn_cast<FloatAttr>(attribute.getValue()); number && number.getType().isF32())
      op->setAttr(attribute.getName(), FloatAttr::get(narrow, number.getValueAsDouble()));
}

void Mixer::visitRead(ReadOp read) {
  auto variable = SymbolTable::lookupNearestSymbolFrom<VariableOp>(read, read.getVariableAttr());
  VariableKind kind = variable.getKind();
  bool weight = kind == VariableKind::parameter || kind == VariableKind::frozen;
  if (!weight || !isWide(read))
    return;
  if (kept.contains(read.getVariable()))
    firm.insert(read);
  else
    weak[read] = Weak::Parameter;
}

/// A number that the narrow format cannot hold at all (a mask's -3e38, an epsilon) keeps its op in f32.
void Mixer::visitConstant(Operation *op, SplatElementsAttr splat) {
  APFloat number = splat.getSplatValue<APFloat>(), rounded = number;
  bool inexact = false;
  rounded.convert(narrow.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  if (rounded.isInfinity() != number.isInfinity() || (rounded.isZero() && !number.isZero()))
    return;
  weak[op->getResult(0)] = inexact ? Weak::Inexact : Weak::Exact;
}

/// The weakness of an op whose f32 operands are all weak; none if one is not.
std::optional<Weak> Mixer::joinWeak(Operation *op) const {
  std::optional<Weak> joined;
  for (Value operand : op->getOperands()) {
    if (!isWide(operand))
      continue;
    auto known = weak.find(operand);
    if (known == weak.end())
      return std::nullopt;
    joined = std::max(joined.value_or(Weak::Exact), known->second);
  }
  return joined;
}

/// Narrow if operands are narrow or weak; f32 if one is strong.
void Mixer::visitElementwise(Operation *op) {
  if (anyOperand(op, [&](Value value) { return isStrong(value); }))
    return convertOperands(op, builder.getF32Type());
  if (!anyOperand(op, [&](Value value) { return isLowPrecision(value); })) {
    if (std::optional<Weak> joined = joinWeak(op))
      for (Value result : op->getResults())
        weak[result] = std::max(*joined, Weak::Inexact); // the result need not be exact
    return;
  }
  // The number itself is not rounded, only the result.
  bool inexact = anyOperand(op, [&](Value value) {
    auto known = weak.find(value);
    return known != weak.end() && known->second == Weak::Inexact;
  });
  if (inexact) {
    convertOperands(op, builder.getF32Type());
    return convertResults(op);
  }
  convertOperands(op, narrow);
  narrowResults(op);
}

/// Elements come out in the format in which they went in.
void Mixer::visitLayoutOp(Operation *op) {
  if (op->getNumOperands() == 1 && firm.contains(op->getOperand(0)))
    firm.insert(op->getResult(0));
  if (anyOperand(op, [&](Value value) { return isStrong(value); }))
    return convertOperands(op, builder.getF32Type());
  if (anyOperand(op, [&](Value value) { return isLowPrecision(value); })) {
    convertOperands(op, narrow);
    return narrowResults(op);
  }
  std::optional<Weak> joined = joinWeak(op);
  if (!joined)
    return;
  bool addressed = anyOperand(op, [](Value value) { return isa<IntegerType>(getElementTypeOrSelf(value.getType())); });
  // Looked-up rows are activations; the scattered sum of their cotangents stays f32.
  if (addressed && *joined == Weak::Parameter)
    return convertResults(op);
  for (Value result : op->getResults())
    weak[result] = *joined;
}

/// A composite defines what it computes and returns in f32 (statistics, losses); its parameters stay f32.
void Mixer::visitComposite(Operation *op) {
  if (op->hasTrait<OpTrait::SameOperandsAndResultType>()) {
    if (anyOperand(op, [&](Value value) { return isLowPrecision(value); }))
      narrowResults(op);
    return;
  }
  auto infers = dyn_cast<InferTypeOpInterface>(op);
  if (!infers || !isLowPrecision(op->getOperand(0)))
    return convertOperands(op, builder.getF32Type());
  SmallVector<Type> types;
  if (failed(infers.inferReturnTypes(op->getContext(), std::nullopt, op->getOperands(), op->getAttrDictionary(),
                                     op->getPropertiesStorage(), op->getRegions(), types)))
    return convertOperands(op, builder.getF32Type());
  for (auto [result, type] : llvm::zip(op->getResults(), types))
    result.setType(type);
}

void Mixer::visit(Operation *op) {
  SplatElementsAttr splat;
  if (matchPattern(op, m_Constant(&splat)) && isWide(op->getResult(0)))
    return visitConstant(op, splat);
  if (!anyOperand(op, [&](Value value) { return isWide(value) || isLowPrecision(value); }))
    return;
  bool between = llvm::all_of(op->getResults(), [&](Value value) {
    return isWide(value) || !isa<FloatType>(getElementTypeOrSelf(value.getType()));
  });
  if (!between || isa<ConvertOp>(op))
    return; // the model's own formats
  if (isa<BitCastOp>(op))
    return convertOperands(op, builder.getF32Type()); // bits are those of the model's format
  if (op->hasTrait<OpTrait::Elementwise>())
    return visitElementwise(op);
  if (movesElements(op))
    return visitLayoutOp(op);
  if (isBilinear(op) && !anyOperand(op, [&](Value value) { return firm.contains(value); })) {
    convertOperands(op, narrow);
    return narrowResults(op);
  }
  if (isa<DecomposableOpInterface>(op))
    return visitComposite(op);
  // Sums, other ops that combine many elements, and matmuls of parameters that stay f32.
  convertOperands(op, builder.getF32Type());
}

void Mixer::run() {
  for (Operation &op : llvm::make_early_inc_range(step.getBlock().without_terminator())) {
    if (auto read = dyn_cast<ReadOp>(op))
      visitRead(read);
    else if (isTensorOp(&op))
      visit(&op);
    else
      convertOperands(&op, builder.getF32Type()); // variables keep their type
  }
  Operation *terminator = step.getTerminator();
  builder.setInsertionPoint(terminator);
  for (auto [operand, type] : llvm::zip(terminator->getOpOperands(), step.getFunctionType().getResults()))
    operand.set(buildConvert(builder, operand.get().getLoc(), operand.get(), getTensorType(type).getElementType()));
}

namespace {
struct MixPrecisionPass : impl::MixPrecisionPassBase<MixPrecisionPass> {
  using MixPrecisionPassBase::MixPrecisionPassBase;
  void runOnOperation() override {
    Builder builder(&getContext());
    if (compute != "bf16" && compute != "fp16") {
      getOperation().emitError() << "computes in \"" << compute.getValue() << "\", expected bf16 or fp16";
      return signalPassFailure();
    }
    FloatType narrow = compute == "bf16" ? FloatType(builder.getBF16Type()) : FloatType(builder.getF16Type());
    llvm::StringSet<> kept;
    for (const std::string &name : keep)
      kept.insert(name);
    for (StepOp step : getOperation().getOps<StepOp>())
      Mixer(step, narrow, kept).run();
  }
};
} // namespace

} // namespace par
