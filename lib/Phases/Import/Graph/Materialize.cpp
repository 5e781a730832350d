// Known values where ops need them: in the code of kernels, as iotas and comparisons, computed again, or as tables that
// the bundle keeps.
#include "GraphImporter.h"

#include "par/Dialect/Interfaces/Cost.h"

namespace par {

using namespace mlir;

namespace {

/// Maximum elements of any constant, and of one that fits into a kernel's code.
constexpr int64_t maxInline = 64, maxInCode = 1024;

/// A table is recomputed in each step if that takes fewer operations than this for each of its bytes: about as many as
/// a GPU (60 Tflop/s, 3.3 TB/s) or a CPU core (50 Gflop/s, 5 GB/s) executes while it reads one byte. Recomputing also
/// frees the memory.
constexpr double operationsPerByte = 16;

/// Parts the names of a recipe's values from a number.
constexpr char recipeMark = '\1';

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

/// A matrix of two values: `inside` where low <= column - row <= high, `outside` elsewhere. Without `low` all below the
/// diagonal `high` is inside: a causal mask; with it, a window.
struct BandMask {
  double inside = 0, outside = 0;
  std::optional<int64_t> low;
  int64_t high = 0;
};

/// By the values of the diagonals, which the first column and the first row hold: from the lower left to the upper
/// right.
std::optional<BandMask> findBand(const StaticTensor &value, ArrayRef<int64_t> core) {
  if (core.size() != 2)
    return std::nullopt;
  int64_t rows = core[0], columns = core[1];
  SmallVector<double> diagonals;
  for (int64_t row = rows - 1; row > 0; --row)
    diagonals.push_back(value.floatAt(row * columns));
  for (int64_t column = 0; column < columns; ++column)
    diagonals.push_back(value.floatAt(column));
  // At most two changes of value: below | inside | above, or inside | above.
  SmallVector<int64_t> changes;
  for (int64_t i = 1; i < int64_t(diagonals.size()) && changes.size() < 3; ++i)
    if (diagonals[i] != diagonals[i - 1])
      changes.push_back(i);
  bool window = changes.size() == 2;
  if (changes.empty() || changes.size() > 2 || (window && diagonals.front() != diagonals.back()))
    return std::nullopt;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (value.floatAt(row * columns + column) != diagonals[column - row + rows - 1])
        return std::nullopt;
  BandMask mask{diagonals[changes.back() - 1], diagonals.back(), std::nullopt, changes.back() - rows};
  if (window)
    mask.low = changes.front() - (rows - 1);
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

Value buildBand(OpBuilder &builder, Location loc, const BandMask &mask, RankedTensorType type) {
  auto indices = RankedTensorType::get(type.getShape(), builder.getI64Type());
  Value row = IotaOp::create(builder, loc, indices, 0), column = IotaOp::create(builder, loc, indices, 1);
  auto shifted = [&](int64_t diagonal) -> Value {
    return diagonal ? AddOp::create(builder, loc, row, buildSplat(builder, loc, indices, diagonal)).getResult() : row;
  };
  bool boolean = type.getElementType().isInteger(1), outside = boolean && mask.inside == 0;
  Value found = CompareOp::create(builder, loc, outside ? Predicate::gt : Predicate::le, column, shifted(mask.high));
  if (mask.low) {
    Value low = CompareOp::create(builder, loc, outside ? Predicate::lt : Predicate::ge, column, shifted(*mask.low));
    found = outside ? OrOp::create(builder, loc, found, low).getResult()
                    : AndOp::create(builder, loc, found, low).getResult();
  }
  if (boolean)
    return found;
  return SelectOp::create(builder, loc, type, found, buildSplat(builder, loc, type, mask.inside),
                          buildSplat(builder, loc, type, mask.outside));
}

/// The dims of which more than one element is stored.
Shape coreOf(const StaticTensor &value) {
  Shape core;
  for (int64_t dim : value.getStored())
    if (dim != 1)
      core.push_back(dim);
  return core;
}

/// The rule of the stored elements, if they follow one. Beyond a few elements, computing beats storing, because iotas
/// and comparisons fuse into their user.
struct Rule {
  std::optional<Progression> progression;
  std::optional<BandMask> band;

  Value build(OpBuilder &builder, Location loc, RankedTensorType type) const {
    return progression ? buildProgression(builder, loc, *progression, type)
           : band      ? buildBand(builder, loc, *band, type)
                       : Value();
  }
};
Rule findRule(const StaticTensor &value) {
  if (value.getStoredCount() <= maxInline)
    return {};
  Shape core = coreOf(value);
  Rule rule{findProgression(value, core), std::nullopt};
  if (!rule.progression)
    rule.band = findBand(value, core);
  return rule;
}

} // namespace

bool needsRecipe(const StaticTensor &value) {
  Rule rule = findRule(value);
  return value.getStoredCount() > maxInline && !rule.progression && !rule.band;
}

/// The stored elements, without the dims that are stored once.
Value GraphImporter::materializeCore(const StaticTensor &value, StringRef name, Location loc) {
  RankedTensorType type = typeOf(value.getType(), coreOf(value));
  if (Value built = findRule(value).build(builder, loc, type))
    return built;
  if (value.getStoredCount() <= maxInCode)
    return ConstantOp::create(builder, loc, toAttribute(value, type));
  return readTable(toAttribute(value, type), name, loc);
}

Value GraphImporter::readTable(DenseElementsAttr elements, StringRef name, Location loc) {
  Value &read = tables[elements];
  if (read)
    return read;
  name = name.take_until([](char c) { return c == recipeMark; });
  std::string symbol = ("constant." + name).str();
  for (unsigned i = 1; module->lookupSymbol(symbol); ++i)
    symbol = ("constant." + name + "." + Twine(i)).str();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(step);
  auto type = cast<RankedTensorType>(elements.getType());
  VariableOp::create(builder, loc, StringRef(symbol), VariableKind::constant, FlatSymbolRefAttr(), type, TypeAttr(),
                     ShardingAttr(), ArrayAttr(), elements, StringAttr(), DictionaryAttr());
  builder.setInsertionPointToStart(&step.getBlock());
  return read = ReadOp::create(builder, loc, type, symbol);
}

/// A value, or its stored elements, as a value of `shape`, to which the known one stretches.
static Value stretchCore(OpBuilder &builder, Location loc, Value core, const StaticTensor &value,
                         ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(core.getType());
  if (type.getShape() == shape)
    return core;
  bool whole = type.getShape() == value.getShape();
  SmallVector<int64_t> dims;
  for (auto [i, stored] : llvm::enumerate(value.getStored()))
    if (whole || stored != 1)
      dims.push_back(int64_t(shape.size()) - value.getRank() + int64_t(i));
  return buildBroadcast(builder, loc, core, dims, shape);
}

Value GraphImporter::materialize(const StaticTensor &value, StringRef name, Location loc) {
  return stretchCore(builder, loc, materializeCore(value, name, loc), value, value.getShape());
}

Value GraphImporter::materialize(const GraphValue &value, ArrayRef<int64_t> shape, StringRef name, Location loc) {
  if (value.known->getStoredCount() <= maxInline)
    return materialize(value.known->expanded(shape), name, loc);
  auto [found, added] = made.try_emplace(value.known.get(), Made{value.known, {}});
  if (added) {
    const StaticTensor &known = *value.known;
    RankedTensorType type = typeOf(known.getType(), coreOf(known));
    Value built = findRule(known).build(builder, loc, type);
    bool table = !built && known.getStoredCount() > maxInCode;
    if (table)
      built = computeAgain(value);
    if (!built)
      built = table ? readTable(toAttribute(known, type), name, loc) : materializeCore(known, name, loc);
    made[value.known.get()].value = built; // others were added meanwhile
  }
  return stretchCore(builder, loc, made[value.known.get()].value, *value.known, shape);
}

//===-- Tables that cost less to compute than to keep ----------------------------------------===//

/// Cost of ops in operations: their own model's count, plus the memory that they move. A table that they read stays
/// stored.
static double costOf(ArrayRef<Operation *> ops) {
  double cost = 0;
  for (Operation *op : ops) {
    OpCost own = getCost(op);
    cost += double(own.flops) + (own.fusable ? 0 : double(own.bytes));
    for (Value operand : op->getOperands())
      if (operand.getDefiningOp<ReadOp>())
        cost += operationsPerByte * double(getByteSize(operand.getType()));
  }
  return cost;
}

Value GraphImporter::computeAgain(const GraphValue &value) {
  if (!value.recipe || value.recipe->rejected)
    return {};
  Block &block = step.getBlock();
  Operation *before = block.empty() ? nullptr : &block.back();
  Value built = runRecipe(*value.recipe);
  SmallVector<Operation *> ops;
  for (Operation *op = before ? before->getNextNode() : &block.front(); op; op = op->getNextNode())
    ops.push_back(op);
  RankedTensorType core = typeOf(value.known->getType(), coreOf(*value.known));
  if (built && costOf(ops) < operationsPerByte * double(getByteSize(core)))
    return built;
  // Tables built inside these ops are erased with them.
  SmallPtrSet<Operation *, 16> erased(ops.begin(), ops.end());
  made.remove_if(
      [&](auto &entry) { return entry.second.value && erased.contains(entry.second.value.getDefiningOp()); });
  for (Operation *op : llvm::reverse(ops))
    op->erase();
  value.recipe->rejected = true;
  return {};
}

Value GraphImporter::runRecipe(Recipe &recipe) {
  auto row = table.find(recipe.node.opType);
  if (row == table.end())
    return {};
  ScopedDiagnosticHandler quiet(context, [](Diagnostic &) { return success(); });
  for (auto [name, input] : llvm::zip(recipe.node.inputs, recipe.inputs))
    if (!name.empty())
      values[name] = input;
  int64_t outerOpset = std::exchange(opset, recipe.opset);
  NodeImporter importer(*this, recipe.node, recipe.loc);
  LogicalResult done = row->second(importer);
  opset = outerOpset;
  GraphValue result = values.lookup(recipe.node.outputs[0]);
  for (const std::string &name : llvm::concat<const std::string>(recipe.node.inputs, recipe.node.outputs))
    values.erase(name);
  return succeeded(done) ? result.computed : Value();
}

std::shared_ptr<Recipe> GraphImporter::recipeFor(const onnx::Node &node, const StaticTensor &result, Location loc) {
  if (result.getStoredCount() <= maxInline || onnx::isUnsigned(result.getType()) || !table.contains(node.opType))
    return nullptr;
  auto recipe = std::make_shared<Recipe>(Recipe{node, {}, opset, loc});
  // Names that no value of the model has; a table is named by the part before the mark.
  std::string mark = recipeMark + std::to_string(recipes++);
  for (std::string &input : recipe->node.inputs) {
    recipe->inputs.push_back(values.lookup(input));
    if (recipe->inputs.back().known && onnx::isUnsigned(recipe->inputs.back().known->getType()))
      return nullptr;
    if (!input.empty())
      input += mark;
  }
  recipe->node.outputs = {node.outputs[0] + mark};
  return recipe;
}

} // namespace par
