// Reads and writes of an op's sharding, stage and types, and small builders (splat, broadcast, reshape, convert) that
// all phases share.
#include "par/Dialect/Splat.h"

#include <cmath>

using namespace mlir;

namespace par {

ShardingAttr getSharding(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto fragment = dyn_cast<FragmentOp>(argument.getOwner()->getParentOp());
    if (!fragment || !fragment.getShardings() || argument.getArgNumber() >= fragment.getShardings()->size())
      return {};
    return dyn_cast<ShardingAttr>((*fragment.getShardings())[argument.getArgNumber()]);
  }
  auto result = cast<OpResult>(value);
  auto shardings = dyn_cast_or_null<ArrayAttr>(result.getOwner()->getInherentAttr("shardings").value_or(Attribute()));
  if (!shardings || result.getResultNumber() >= shardings.size())
    return {};
  return dyn_cast<ShardingAttr>(shardings[result.getResultNumber()]);
}

void setSharding(Value value, ShardingAttr sharding) {
  MLIRContext *context = value.getContext();
  Operation *owner;
  unsigned index, many;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    owner = argument.getOwner()->getParentOp();
    index = argument.getArgNumber();
    many = argument.getOwner()->getNumArguments();
  } else {
    owner = value.getDefiningOp();
    index = cast<OpResult>(value).getResultNumber();
    many = owner->getNumResults();
  }
  SmallVector<Attribute> all(many, UnitAttr::get(context));
  if (auto old = dyn_cast_or_null<ArrayAttr>(owner->getInherentAttr("shardings").value_or(Attribute())))
    llvm::copy(old, all.begin());
  all[index] = sharding;
  owner->setInherentAttr(StringAttr::get(context, "shardings"), ArrayAttr::get(context, all));
}

bool isTensorOp(Operation *op) {
  return static_cast<bool>(op->getInherentAttr("stage").value_or(Attribute())) && !isa<FragmentOp>(op);
}

std::optional<int64_t> getStage(Operation *op) {
  if (isa<FragmentOp>(op))
    return std::nullopt;
  auto stage = dyn_cast_or_null<IntegerAttr>(op->getInherentAttr("stage").value_or(Attribute()));
  if (!stage || stage.getInt() < 0)
    return std::nullopt;
  return stage.getInt();
}

void setStage(Operation *op, int64_t stage) {
  MLIRContext *context = op->getContext();
  op->setInherentAttr(StringAttr::get(context, "stage"), IntegerAttr::get(IntegerType::get(context, 64), stage));
}

RankedTensorType getTensorType(Type type) {
  if (auto dist = dyn_cast<DistType>(type))
    return dist.getTensor();
  return cast<RankedTensorType>(type);
}

SmallVector<StringAttr> getAxes(ArrayAttr axes) { return llvm::to_vector(axes.getAsRange<StringAttr>()); }

SmallVector<SmallVector<StageOp>> getStagesByRanks(ModuleOp module) {
  llvm::MapVector<Attribute, SmallVector<StageOp>> groups;
  for (StageOp stage : module.getOps<StageOp>())
    groups[stage.getRanksAttr()].push_back(stage);
  return llvm::map_to_vector(groups, [](const auto &group) { return group.second; });
}

MeshAttr getMesh(Operation *from, FlatSymbolRefAttr stage) {
  auto module = dyn_cast<ModuleOp>(from);
  if (!module)
    module = from->getParentOfType<ModuleOp>();
  auto op = module ? module.lookupSymbol<StageOp>(stage.getAttr()) : StageOp();
  return op ? op.getMesh() : MeshAttr();
}

/// A number as an integer of a type; numbers out of range, an infinity say, are clamped.
static APInt clampToInteger(double value, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  double limit = std::ldexp(1.0, width - 1);
  if (width > 1 && value >= limit)
    return APInt::getSignedMaxValue(width);
  if (width > 1 && value < -limit)
    return APInt::getSignedMinValue(width);
  return APInt(64, static_cast<uint64_t>(static_cast<int64_t>(value))).trunc(width);
}

double numberOf(SplatElementsAttr splat) {
  if (isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().convertToDouble();
  APInt number = splat.getSplatValue<APInt>();
  return number.getBitWidth() == 1 ? double(number.getZExtValue()) : double(number.getSExtValue());
}

std::optional<double> readSplat(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    SplatElementsAttr splat;
    if (matchPattern(op, m_Constant(&splat)))
      return numberOf(splat);
    auto convert = dyn_cast<ConvertOp>(op);
    bool keeps = convert && isa<FloatType>(convert.getType().getElementType()) &&
                 isa<FloatType>(convert.getOperand().getType().getElementType());
    if (!keeps && !isa<BroadcastInDimOp, ReshapeOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

Value buildSplat(OpBuilder &builder, Location loc, RankedTensorType type, double value) {
  Attribute element;
  if (auto floating = dyn_cast<FloatType>(type.getElementType()))
    element = builder.getFloatAttr(floating, value);
  else
    element = builder.getIntegerAttr(type.getElementType(), clampToInteger(value, type.getElementType()));
  return ConstantOp::create(builder, loc, cast<ElementsAttr>(SplatElementsAttr::get(type, element)));
}

Value buildBroadcast(OpBuilder &builder, Location loc, Value operand, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(operand.getType()).clone(shape);
  if (type == operand.getType())
    return operand;
  return BroadcastInDimOp::create(builder, loc, type, operand, dims);
}

Value buildReshape(OpBuilder &builder, Location loc, Value operand, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(operand.getType()).clone(shape);
  if (type == operand.getType())
    return operand;
  return ReshapeOp::create(builder, loc, type, operand);
}

Value buildConvert(OpBuilder &builder, Location loc, Value operand, Type elementType) {
  auto type = cast<RankedTensorType>(operand.getType());
  if (type.getElementType() == elementType)
    return operand;
  return ConvertOp::create(builder, loc, type.clone(elementType), operand);
}

Value buildDot(OpBuilder &builder, Location loc, Value lhs, Value rhs, ArrayRef<int64_t> lhsContracting,
               ArrayRef<int64_t> rhsContracting, ArrayRef<int64_t> lhsBatching, ArrayRef<int64_t> rhsBatching,
               Type elementType) {
  auto left = cast<RankedTensorType>(lhs.getType()), right = cast<RankedTensorType>(rhs.getType());
  SmallVector<int64_t> shape =
      DotOp::inferShape(left.getShape(), right.getShape(), lhsContracting, rhsContracting, lhsBatching, rhsBatching);
  auto type = RankedTensorType::get(shape, elementType ? elementType : left.getElementType());
  return DotOp::create(builder, loc, type, lhs, rhs, lhsContracting, rhsContracting, lhsBatching, rhsBatching);
}

} // namespace par
