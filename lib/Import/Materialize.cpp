// Known values where ops need them.
#include "GraphImporter.h"

namespace par {

using namespace mlir;

namespace {

/// The values of a StaticTensor as an attribute of the given type, which has its stored elements.
DenseElementsAttr toAttribute(const StaticTensor &value, RankedTensorType type) {
  Type element = type.getElementType();
  int64_t count = value.getStoredCount();
  if (auto floatType = dyn_cast<FloatType>(element)) {
    SmallVector<APFloat> values;
    for (int64_t i = 0; i < count; ++i) {
      APFloat number(value.floatAt(i));
      bool inexact = false;
      number.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
      values.push_back(number);
    }
    return DenseElementsAttr::get(type, values);
  }
  SmallVector<APInt> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(APInt(element.getIntOrFloatBitWidth(), uint64_t(value.intAt(i)), true, true));
  return DenseElementsAttr::get(type, values);
}

/// value = first + step * index, for a stored vector of integers.
struct Progression {
  int64_t first = 0, step = 0;
};
std::optional<Progression> findProgression(const StaticTensor &value, ArrayRef<int64_t> core) {
  if (value.isFloat() || value.getType() == onnx::ElementType::Bool || core.size() != 1 || core[0] < 2)
    return std::nullopt;
  Progression found{value.intAt(0), value.intAt(1) - value.intAt(0)};
  for (int64_t i = 0; i < core[0]; ++i)
    if (value.intAt(i) != found.first + i * found.step)
      return std::nullopt;
  return found;
}

/// A matrix of two values: `below` where column - row <= diagonal, `above` elsewhere.
struct DiagonalMask {
  double below = 0, above = 0;
  int64_t diagonal = 0;
};
std::optional<DiagonalMask> findDiagonal(const StaticTensor &value, ArrayRef<int64_t> core) {
  if (core.size() != 2)
    return std::nullopt;
  int64_t rows = core[0], columns = core[1], last = rows * columns - 1;
  DiagonalMask mask;
  mask.below = value.floatAt((rows - 1) * columns); // lower left corner
  mask.above = value.floatAt(columns - 1);          // upper right corner
  if (mask.below == mask.above || last < 3)
    return std::nullopt;
  int64_t width = 0;
  while (width < columns && value.floatAt(width) == mask.below)
    ++width;
  mask.diagonal = width - 1;
  if (width == 0)
    for (mask.diagonal = -1; -mask.diagonal < rows; --mask.diagonal)
      if (value.floatAt(-mask.diagonal * columns) == mask.below)
        break;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (value.floatAt(row * columns + column) != (column - row <= mask.diagonal ? mask.below : mask.above))
        return std::nullopt;
  return mask;
}

Value buildProgression(OpBuilder &builder, Location loc, Progression progression, RankedTensorType type) {
  Value value = IotaOp::create(builder, loc, type, 0);
  if (progression.step != 1)
    value = MultiplyOp::create(builder, loc, value, buildSplat(builder, loc, type, progression.step));
  if (progression.first != 0)
    value = AddOp::create(builder, loc, value, buildSplat(builder, loc, type, progression.first));
  return value;
}

Value buildDiagonal(OpBuilder &builder, Location loc, const DiagonalMask &mask, RankedTensorType type) {
  auto indices = RankedTensorType::get(type.getShape(), builder.getI64Type());
  Value row = IotaOp::create(builder, loc, indices, 0), column = IotaOp::create(builder, loc, indices, 1);
  if (mask.diagonal != 0)
    row = AddOp::create(builder, loc, row, buildSplat(builder, loc, indices, mask.diagonal));
  bool boolean = type.getElementType().isInteger(1);
  Predicate predicate = boolean && mask.below == 0 ? Predicate::gt : Predicate::le;
  Value below = CompareOp::create(builder, loc, predicate, column, row);
  if (boolean)
    return below;
  return SelectOp::create(builder, loc, type, below, buildSplat(builder, loc, type, mask.below),
                          buildSplat(builder, loc, type, mask.above));
}

} // namespace

/// The stored elements, without the dims that are stored once.
Value GraphImporter::materializeCore(const StaticTensor &value, StringRef name, Location loc) {
  Shape core;
  for (int64_t dim : value.getStored())
    if (dim != 1)
      core.push_back(dim);
  RankedTensorType type = typeOf(value.getType(), core);
  // Beyond a few elements, computing beats storing: iotas and comparisons fuse into the op that uses them.
  int64_t count = value.getStoredCount();
  if (count <= 64)
    return ConstantOp::create(builder, loc, toAttribute(value, type));
  if (std::optional<Progression> progression = findProgression(value, core))
    return buildProgression(builder, loc, *progression, type);
  if (std::optional<DiagonalMask> mask = findDiagonal(value, core))
    return buildDiagonal(builder, loc, *mask, type);
  if (count <= 1024)
    return ConstantOp::create(builder, loc, toAttribute(value, type));
  std::string symbol = ("constant." + name).str();
  if (!module->lookupSymbol(symbol)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(step);
    VariableOp::create(builder, loc, StringRef(symbol), VariableKind::buffer, FlatSymbolRefAttr(), type, TypeAttr(),
                       ShardingAttr(), ArrayAttr(), toAttribute(value, type), StringAttr(),
                       DictionaryAttr());
  }
  return ReadOp::create(builder, loc, type, symbol);
}

Value GraphImporter::materialize(const StaticTensor &value, StringRef name, Location loc) {
  Value core = materializeCore(value, name, loc);
  if (cast<RankedTensorType>(core.getType()).getShape() == value.getShape())
    return core;
  SmallVector<int64_t> dims;
  for (auto [i, stored] : llvm::enumerate(value.getStored()))
    if (stored != 1)
      dims.push_back(i);
  return buildBroadcast(builder, loc, core, dims, value.getShape());
}

} // namespace par
