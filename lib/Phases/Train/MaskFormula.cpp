// Reads a mask as a formula of affine functions of row and column and evaluates it per row only at the columns where a
// comparison changes.
#include "MaskFormula.h"

#include "par/Dialect/Interfaces/Interpretable.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using par::interp::Tensor;

namespace par {

/// Nodes up to which a formula is read, and stretches up to which it is evaluated.
static constexpr size_t maxNodes = 256, maxStretches = size_t(1) << 22;

/// Maximum magnitude of compared values, so that their zeros can be computed in 64 bits.
static constexpr int64_t largestChange = int64_t(1) << 62;

static Type maskElementOf(Value value) { return getElementTypeOrSelf(value.getType()); }
static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// a + factor * b; none beyond 64 bits.
static std::optional<Affine> addScaled(const Affine &a, const Affine &b, int64_t factor) {
  auto add = [&](int64_t x, int64_t y, int64_t &result) {
    int64_t product;
    return __builtin_mul_overflow(y, factor, &product) || __builtin_add_overflow(x, product, &result);
  };
  Affine sum;
  if (add(a.base, b.base, sum.base) || add(a.row, b.row, sum.row) || add(a.column, b.column, sum.column))
    return std::nullopt;
  return sum;
}

std::pair<__int128, __int128> MaskFormula::rangeOf(const Affine &affine) const {
  __int128 last = __int128(affine.row) * (rows - 1), right = __int128(affine.column) * (columns - 1);
  return {affine.base + std::min<__int128>(last, 0) + std::min<__int128>(right, 0),
          affine.base + std::max<__int128>(last, 0) + std::max<__int128>(right, 0)};
}

/// The largest integer up to which a type holds all.
static __int128 reachOf(Type element) {
  if (auto floats = dyn_cast<FloatType>(element))
    return __int128(1) << floats.getFPMantissaWidth();
  return (__int128(1) << (element.getIntOrFloatBitWidth() - 1)) - 1;
}

MaskFormula::Index MaskFormula::addNumber(Type element, double number) {
  Node node{element};
  node.number = number;
  nodes.push_back(node);
  return nodes.size() - 1;
}

MaskFormula::Index MaskFormula::addAffine(Type element, std::optional<Affine> affine) {
  if (!affine)
    return std::nullopt;
  auto [low, high] = rangeOf(*affine);
  // A constant has been converted to its type already.
  if (!affine->isConstant() && (low < -reachOf(element) || high > reachOf(element)))
    return std::nullopt;
  Node node{element};
  node.affine = affine;
  nodes.push_back(node);
  return nodes.size() - 1;
}

/// A float that is an integer, but for -0, may take part in affine functions.
static std::optional<Affine> asInteger(double number) {
  bool fits = std::fabs(number) <= 0x1p53 && number == std::floor(number) && !(number == 0 && std::signbit(number));
  return fits ? std::optional(Affine{int64_t(number)}) : std::nullopt;
}

/// The element at a place that does not depend on row and column.
MaskFormula::Index MaskFormula::readConstant(ConstantOp constant, const Coordinates &at) {
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  Type element = maskElementOf(constant);
  if (!elements || elements.empty())
    return std::nullopt;
  int64_t place = 0;
  for (auto [size, coordinate] : llvm::zip(typeOf(constant).getShape(), at)) {
    if (!elements.isSplat() && (!coordinate || !coordinate->isConstant()))
      return std::nullopt;
    place = elements.isSplat() ? 0 : place * size + coordinate->base;
  }
  if (isa<IntegerType>(element)) {
    APInt value = *(elements.value_begin<APInt>() + place);
    return addAffine(element, Affine{element.isInteger(1) ? int64_t(value.getZExtValue()) : value.getSExtValue()});
  }
  APFloat value = *(elements.value_begin<APFloat>() + place);
  bool inexact;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  double number = value.convertToDouble();
  std::optional<Affine> integer = asInteger(number);
  return integer ? addAffine(element, integer) : addNumber(element, number);
}

std::optional<Affine> MaskFormula::affineOf(Operation *op, ArrayRef<unsigned> operands) const {
  SmallVector<Affine> of;
  for (unsigned operand : operands) {
    if (!nodes[operand].affine)
      return std::nullopt;
    of.push_back(*nodes[operand].affine);
  }
  if (isa<AddOp>(op))
    return addScaled(of[0], of[1], 1);
  if (isa<SubtractOp>(op))
    return addScaled(of[0], of[1], -1);
  if (isa<NegateOp>(op))
    return addScaled({}, of[0], -1);
  if (isa<MultiplyOp>(op) && (of[0].isConstant() || of[1].isConstant()))
    return of[0].isConstant() ? addScaled({}, of[1], of[0].base) : addScaled({}, of[0], of[1].base);
  if (isa<ConvertOp>(op) && !maskElementOf(op->getResult(0)).isInteger(1))
    return of[0];
  return std::nullopt;
}

std::optional<Affine> MaskFormula::changeOf(Operation *op, ArrayRef<unsigned> operands) const {
  if (llvm::any_of(operands, [&](unsigned operand) { return !nodes[operand].affine; }))
    return std::nullopt;
  std::optional<Affine> change;
  if (isa<CompareOp>(op))
    change = addScaled(*nodes[operands[0]].affine, *nodes[operands[1]].affine, -1);
  else if (isa<ConvertOp>(op) && maskElementOf(op->getResult(0)).isInteger(1))
    change = nodes[operands[0]].affine;
  if (!change)
    return std::nullopt;
  auto [low, high] = rangeOf(*change);
  return low >= -largestChange && high <= largestChange ? change : std::nullopt;
}

/// Applies an elementwise op to `count` elements.
static std::optional<Tensor> apply(Operation *op, ArrayRef<Tensor> operands, int64_t count) {
  Block block;
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, block.addArgument(RankedTensorType::get({count}, maskElementOf(operand)), op->getLoc()));
  Operation *small = op->clone(mapping);
  small->getResult(0).setType(RankedTensorType::get({count}, maskElementOf(op->getResult(0))));
  FailureOr<SmallVector<Tensor>> results = cast<InterpretableOpInterface>(small).interpret(operands);
  small->destroy();
  return succeeded(results) ? std::optional(results->front()) : std::nullopt;
}

Tensor MaskFormula::sample(const Node &leaf, ArrayRef<Stretch> stretches) const {
  Tensor elements(RankedTensorType::get({int64_t(stretches.size())}, leaf.element));
  for (auto [i, stretch] : llvm::enumerate(stretches)) {
    int64_t integer =
        leaf.affine ? leaf.affine->base + leaf.affine->row * stretch.row + leaf.affine->column * stretch.begin : 0;
    if (elements.isFloat())
      elements.mutableFloats()[i] = leaf.affine ? double(integer) : *leaf.number;
    else
      elements.mutableInts()[i] = integer;
  }
  return elements;
}

std::optional<Tensor> MaskFormula::settle(Operation *op, ArrayRef<unsigned> operands, const Affine &change) const {
  auto [low, high] = rangeOf(change);
  if (low < 0 && high > 0)
    return std::nullopt;
  // The corners with the smallest and the largest change.
  int64_t last = rows - 1, right = columns - 1;
  Stretch least{change.row < 0 ? last : 0, change.column < 0 ? right : 0, 0};
  Stretch largest{last - least.row, right - least.begin, 0};
  SmallVector<Tensor> of;
  for (unsigned operand : operands)
    of.push_back(sample(nodes[operand], {least, largest}));
  std::optional<Tensor> both = apply(op, of, 2);
  if (!both || (both->isFloat() ? both->floats()[0] != both->floats()[1] : both->ints()[0] != both->ints()[1]))
    return std::nullopt;
  return both;
}

MaskFormula::Index MaskFormula::addOp(Operation *op, ArrayRef<unsigned> operands) {
  Type element = maskElementOf(op->getResult(0));
  if (auto select = dyn_cast<SelectOp>(op); select && nodes[operands[0]].isConstant())
    return operands[nodes[operands[0]].affine->base != 0 ? 1 : 2];
  bool constant = llvm::all_of(operands, [&](unsigned operand) { return nodes[operand].isConstant(); });
  if (!constant)
    if (Index affine = addAffine(element, affineOf(op, operands)))
      return affine;
  std::optional<Affine> change = constant ? Affine{} : changeOf(op, operands);
  if (!change && llvm::any_of(operands, [&](unsigned operand) {
        return nodes[operand].affine && !nodes[operand].affine->isConstant();
      }))
    return std::nullopt;
  if (change) {
    if (std::optional<Tensor> settled = settle(op, operands, *change)) {
      if (!settled->isFloat())
        return addAffine(element, Affine{settled->ints()[0]});
      std::optional<Affine> integer = asInteger(settled->floats()[0]);
      return integer ? addAffine(element, integer) : addNumber(element, settled->floats()[0]);
    }
    if (constant)
      return std::nullopt; // NaN
    if (!llvm::is_contained(changes, *change))
      changes.push_back(*change);
  }
  Node node{element};
  node.op = op;
  node.operands.assign(operands.begin(), operands.end());
  nodes.push_back(node);
  return nodes.size() - 1;
}

MaskFormula::Index MaskFormula::readElementwise(Operation *op, const Coordinates &at) {
  if (!op->hasTrait<OpTrait::Elementwise>() || !isa<InterpretableOpInterface>(op) || op->getNumResults() != 1)
    return std::nullopt;
  SmallVector<unsigned> operands;
  for (Value operand : op->getOperands()) {
    Index index = typeOf(operand).getRank() == int64_t(at.size()) ? read(operand, at) : std::nullopt;
    if (!index)
      return std::nullopt;
    operands.push_back(*index);
  }
  return addOp(op, operands);
}

/// Coordinates of the operand of a reshape that only adds and removes dims of size 1.
static bool followReshape(ReshapeOp reshape, ArrayRef<std::optional<Affine>> at,
                          SmallVectorImpl<std::optional<Affine>> &from) {
  ArrayRef<int64_t> shape = reshape.getType().getShape();
  size_t i = 0;
  for (int64_t size : reshape.getOperand().getType().getShape()) {
    if (size == 1) {
      from.push_back(Affine{});
      continue;
    }
    while (i < shape.size() && shape[i] == 1)
      ++i;
    if (i == shape.size() || shape[i] != size)
      return false;
    from.push_back(at[i++]);
  }
  return true;
}

/// Coordinates in the operand of an op that moves elements; false for other ops.
static bool followLayoutOp(Operation *op, ArrayRef<std::optional<Affine>> at,
                           SmallVectorImpl<std::optional<Affine>> &from) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](BroadcastInDimOp repeat) {
        for (auto [dim, size] : llvm::zip(repeat.getDims(), repeat.getOperand().getType().getShape()))
          from.push_back(size == 1 ? Affine{} : at[dim]);
        return true;
      })
      .Case([&](TransposeOp transpose) {
        from.resize(at.size());
        for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
          from[dim] = at[i];
        return true;
      })
      .Case([&](SliceOp slice) {
        for (auto [start, stride, coordinate] : llvm::zip(slice.getStarts(), slice.getStrides(), at)) {
          from.push_back(coordinate ? addScaled({start}, *coordinate, stride) : std::nullopt);
          if (coordinate && !from.back())
            return false;
        }
        return true;
      })
      .Case([&](ReshapeOp reshape) { return followReshape(reshape, at, from); })
      .Default(false);
}

MaskFormula::Index MaskFormula::readOp(Operation *op, const Coordinates &at) {
  if (auto constant = dyn_cast<ConstantOp>(op))
    return readConstant(constant, at);
  if (auto iota = dyn_cast<IotaOp>(op))
    return addAffine(maskElementOf(iota), at[iota.getDim()]);
  Coordinates from;
  return followLayoutOp(op, at, from) ? read(op->getOperand(0), from) : readElementwise(op, at);
}

MaskFormula::Index MaskFormula::read(Value value, const Coordinates &at) {
  Operation *op = value.getDefiningOp();
  if (!op || !isTensorOp(op) || nodes.size() >= maxNodes)
    return std::nullopt;
  auto [place, isNew] = known.try_emplace({value.getAsOpaquePointer(), at});
  if (!isNew)
    return place->second;
  return place->second = readOp(op, at); // places in a map stay
}

std::optional<MaskFormula> MaskFormula::read(Value mask) {
  ArrayRef<int64_t> shape = typeOf(mask).getShape();
  if (shape.size() < 2 || llvm::is_contained(shape, 0))
    return std::nullopt;
  MaskFormula formula(shape[shape.size() - 2], shape.back());
  Coordinates at;
  for (int64_t size : shape.drop_back(2))
    at.push_back(size == 1 ? std::optional(Affine{}) : std::nullopt);
  at.push_back(Affine{0, 1, 0});
  at.push_back(Affine{0, 0, 1});
  Index root = formula.read(mask, at);
  // A mask that is an affine function itself has no stretches.
  if (!root || (formula.nodes[*root].affine && !formula.nodes[*root].isConstant()))
    return std::nullopt;
  formula.nodes.push_back(formula.nodes[*root]); // the last one is the mask
  formula.known.clear();
  return formula;
}

std::vector<intptr_t> MaskFormula::key() const {
  std::vector<intptr_t> key{intptr_t(rows), intptr_t(columns)};
  auto addPointer = [&](const void *pointer) { key.push_back(reinterpret_cast<intptr_t>(pointer)); };
  for (const Node &node : nodes) {
    addPointer(node.element.getAsOpaquePointer());
    key.push_back(node.affine ? -1 : node.number ? -2 : node.operands.size());
    if (node.affine)
      key.insert(key.end(), {node.affine->base, node.affine->row, node.affine->column});
    if (node.number)
      key.push_back(llvm::bit_cast<int64_t>(*node.number));
    if (!node.op)
      continue;
    addPointer(node.op->getName().getAsOpaquePointer());
    NamedAttrList attributes(node.op->getAttrDictionary());
    attributes.erase("stage");
    addPointer(attributes.getDictionary(node.op->getContext()).getAsOpaquePointer());
    key.insert(key.end(), node.operands.begin(), node.operands.end());
  }
  return key;
}

std::optional<SmallVector<Stretch>> MaskFormula::cut() const {
  SmallVector<Stretch> stretches;
  SmallVector<int64_t> begins;
  for (int64_t row = 0; row < rows; ++row) {
    begins.assign({0});
    for (const Affine &change : changes) {
      if (change.column == 0)
        continue;
      // The zero is at -value / column: a stretch begins there, if that is a column, and another after it.
      int64_t value = change.base + change.row * row;
      for (int64_t begin :
           {llvm::divideCeilSigned(-value, change.column), llvm::divideFloorSigned(-value, change.column) + 1})
        if (begin > 0 && begin < columns)
          begins.push_back(begin);
    }
    llvm::sort(begins);
    begins.erase(llvm::unique(begins), begins.end());
    if (stretches.size() + begins.size() > maxStretches)
      return std::nullopt;
    for (auto [i, begin] : llvm::enumerate(begins))
      stretches.push_back({row, begin, i + 1 < begins.size() ? begins[i + 1] : columns});
  }
  return stretches;
}

std::optional<MaskRows> MaskFormula::evaluate() const {
  std::optional<SmallVector<Stretch>> stretches = cut();
  if (!stretches)
    return std::nullopt;
  int64_t count = stretches->size();
  std::vector<Tensor> elements;
  for (const Node &node : nodes) {
    if (!node.op) {
      elements.push_back(sample(node, *stretches));
      continue;
    }
    SmallVector<Tensor> operands;
    for (unsigned operand : node.operands)
      operands.push_back(elements[operand]);
    std::optional<Tensor> result = apply(node.op, operands, count);
    if (!result)
      return std::nullopt;
    elements.push_back(*result);
  }
  return MaskRows{std::move(*stretches), elements.back()};
}

} // namespace par
