#include "AlignedRows.h"
#include "Groups.h"
#include "par/Kernels/Passes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ALIGNROWSPASS
#include "par/Kernels/Passes.h.inc"

static bool isNarrow(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isBF16() || element.isF16();
}

static ArrayRef<int64_t> shapeOf(Value value) { return getTensorType(value.getType()).getShape(); }

int64_t alignedRow(int64_t size) {
  int64_t unit = size >= 512 ? 64 : size >= 64 ? 8 : 1;
  return size % 8 ? (size + unit - 1) / unit * unit : size;
}

bool dropsPadding(Operation *op) {
  auto slice = dyn_cast_if_present<SliceOp>(op);
  if (!slice || !isNarrow(slice.getType()) || shapeOf(slice).empty())
    return false;
  ArrayRef<int64_t> rows = shapeOf(slice), padded = shapeOf(slice.getOperand());
  return rows.drop_back() == padded.drop_back() && rows.back() != padded.back() &&
         alignedRow(rows.back()) == padded.back() && llvm::all_of(slice.getStarts(), [](int64_t at) { return at == 0; }) &&
         llvm::all_of(slice.getStrides(), [](int64_t step) { return step == 1; });
}

bool padsRows(PadOp pad) {
  auto zero = dyn_cast<FloatAttr>(pad.getValue());
  auto isNone = [](int64_t added) { return added == 0; };
  return zero && zero.getValue().isPosZero() && !pad.getHigh().empty() && pad.getHigh().back() > 0 &&
         llvm::all_of(pad.getLow(), isNone) && llvm::all_of(pad.getHigh().drop_back(), isNone);
}

namespace {

/// What stands for a value, with one dim longer.
struct Padded {
  Value value;
  bool zeros = false; ///< what is behind the value's elements
};

/// Finds the narrow values of a program that products read or write in rows that are not aligned, and keeps them in
/// longer rows where nobody has to copy them for that.
class RowAligner {
public:
  explicit RowAligner(ProgramOp program) : program(program), builder(program) {}

  void run();

private:
  /// All that is loaded from a temporary buffer and stored to it.
  struct Kept {
    BufferOp buffer;
    SmallVector<Value> values;
  };

  void forEachProduct(function_ref<void(DotOp)> visit);
  void collectBuffers();
  void collect(Value value);
  void collectBuffer(StringRef name);
  void prune();
  bool isRow(Value value, int64_t dim) const { return rows.contains(value) && dim + 1 == int64_t(shapeOf(value).size()); }
  bool keepsPadded(StringRef buffer) const;
  bool mayReadPadded(Operation *user, Value row) const;
  bool mayPad(Value value, int64_t dim);
  bool findPadding(Value value, int64_t dim);
  void findContractions();
  void findReductions();
  bool isOfRows(Value value);

  void rewrite();
  Padded pad(Value value, int64_t dim);
  Padded makePadded(Operation *op, int64_t dim);
  bool padOperands(Operation *op, int64_t dim, MutableArrayRef<Value> operands);
  Value padWith(double number, Value value, int64_t dim);
  void padReduction(ReduceOp reduce);
  void replaceUses(Value row);

  ProgramOp program;
  OpBuilder builder;
  llvm::SetVector<Value> rows;
  llvm::StringMap<Kept> buffers;
  // What is found before anything is changed.
  llvm::DenseMap<std::pair<Value, int64_t>, bool> known;
  llvm::DenseSet<Operation *> weights; ///< what rounds them
  struct Contraction {
    DotOp dot;
    int64_t lhs, rhs;
  };
  SmallVector<Contraction> contractions;
  SmallVector<ReduceOp> reductions;
  llvm::DenseMap<Value, bool> ofRows;

  llvm::DenseMap<std::pair<Value, int64_t>, Padded> made;
};

} // namespace

static int64_t lastDim(Value value) { return int64_t(shapeOf(value).size()) - 1; }

/// Narrow rows that are not aligned, and could be.
static bool isUnaligned(Value value) {
  return isNarrow(value.getType()) && !shapeOf(value).empty() && alignedRow(shapeOf(value).back()) != shapeOf(value).back();
}

/// The type with one dim as long as rows are kept.
static RankedTensorType paddedType(Type type, int64_t dim) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = alignedRow(shape[dim]);
  return tensor.clone(shape);
}

/// The operand's dim that a dim of the result is, whole: none if the reshape joins or splits it.
static std::optional<int64_t> findSource(ReshapeOp reshape, int64_t dim) {
  ArrayRef<int64_t> from = shapeOf(reshape.getOperand()), to = shapeOf(reshape);
  int64_t behind = ShapedType::getNumElements(to.drop_front(dim + 1)), other = 1;
  for (int64_t source = int64_t(from.size()) - 1; source >= 0; other *= from[source--])
    if (from[source] == to[dim] && other == behind)
      return source;
  return std::nullopt;
}

/// The operand of a product, and its dim, that a dim of the result is; none for batch dims.
static std::optional<std::pair<unsigned, int64_t>> findFree(DotOp dot, int64_t dim) {
  dim -= dot.getLhsBatching().size();
  SmallVector<int64_t> lhs(dot.getLhsFree()), rhs(dot.getRhsFree());
  if (dim < 0)
    return std::nullopt;
  if (dim < int64_t(lhs.size()))
    return std::pair(0u, lhs[dim]);
  return std::pair(1u, rhs[dim - lhs.size()]);
}

/// The operand's dim that a dim of the result is; none if the operand is repeated along it.
static std::optional<int64_t> findSource(BroadcastInDimOp broadcast, int64_t dim) {
  for (auto [source, target] : llvm::enumerate(broadcast.getDims()))
    if (target == dim && shapeOf(broadcast.getOperand())[source] != 1)
      return source;
  return std::nullopt;
}

/// Few numbers beside those that they are repeated to: padding them costs nothing to speak of.
static bool isSmall(BroadcastInDimOp broadcast) {
  constexpr int64_t few = 8;
  return getTensorType(broadcast.getOperand().getType()).getNumElements() * few <=
         broadcast.getType().getNumElements();
}

/// Costs nothing where it is read, or little: what few numbers are repeated to, perhaps rounded.
static bool isRepeated(Operation *op) {
  auto isFreeValue = [](Value value) { return value.getDefiningOp() && isFree(value.getDefiningOp()); };
  return isFree(op) || (op->hasTrait<OpTrait::Elementwise>() && llvm::all_of(op->getOperands(), isFreeValue));
}

/// A weight in f32 that is rounded for products alone: the kernel that rounds it writes some zeros more.
static bool roundsWeight(ConvertOp convert) {
  return isNarrow(convert.getType()) && convert.getOperand().getType().getElementType().isF32() &&
         convert.getOperand().getDefiningOp<LoadOp>() && llvm::all_of(convert->getUsers(), [](Operation *user) {
           return isa<DotOp>(user) || user->hasTrait<OpTrait::Elementwise>();
         });
}

/// Of bf16 or f16 operands, in the order in which they are computed.
void RowAligner::forEachProduct(function_ref<void(DotOp)> visit) {
  for (BlockOp block : program.getOps<BlockOp>())
    for (auto dot : block.getOps<DotOp>())
      if (isNarrow(dot.getLhs().getType()) && isNarrow(dot.getRhs().getType()))
        visit(dot);
}

void RowAligner::collectBuffers() {
  for (BufferOp buffer : program.getOps<BufferOp>())
    if (buffer.getKind() == BufferKind::temp && !buffer.getOf() && !buffer.getDist())
      buffers[buffer.getSymName()].buffer = buffer;
  program.walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op); load && buffers.contains(load.getBuffer()))
      buffers[load.getBuffer()].values.push_back(load);
    if (auto store = dyn_cast<StoreOp>(op); store && buffers.contains(store.getBuffer()))
      buffers[store.getBuffer()].values.push_back(store.getOperand());
  });
}

void RowAligner::collectBuffer(StringRef name) {
  if (auto kept = buffers.find(name); kept != buffers.end())
    for (Value value : kept->second.values)
      collect(value);
}

/// With all that lies in the same rows: what is kept in one buffer, another view of it, what is computed from it one by one.
void RowAligner::collect(Value value) {
  if (!isUnaligned(value) || !rows.insert(value))
    return;
  Operation *source = value.getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadOp>(source))
    collectBuffer(load.getBuffer());
  else if (auto reshape = dyn_cast_or_null<ReshapeOp>(source); reshape && findSource(reshape, lastDim(value)))
    collect(reshape.getOperand());
  else if (auto gradient = dyn_cast_or_null<CrossEntropyGradOp>(source))
    collect(gradient.getLogits());
  for (Operation *user : value.getUsers()) {
    auto reshape = dyn_cast<ReshapeOp>(user);
    auto gradient = dyn_cast<CrossEntropyGradOp>(user);
    if (auto store = dyn_cast<StoreOp>(user))
      collectBuffer(store.getBuffer());
    else if ((reshape && findSource(reshape, lastDim(reshape)) == lastDim(value)) ||
             (gradient && gradient.getLogits() == value) || user->hasTrait<OpTrait::Elementwise>())
      collect(user->getResult(0));
  }
}

bool RowAligner::keepsPadded(StringRef buffer) const {
  auto kept = buffers.find(buffer);
  return kept != buffers.end() && llvm::all_of(kept->second.values, [&](Value value) { return rows.contains(value); });
}

/// Whether an op that reads the row can read it without its padding where it lies.
bool RowAligner::mayReadPadded(Operation *user, Value row) const {
  if (auto store = dyn_cast<StoreOp>(user))
    return keepsPadded(store.getBuffer());
  if (isa<CrossEntropyGradOp, ReshapeOp>(user))
    return rows.contains(user->getResult(0)) && user->getOperand(isa<ReshapeOp>(user) ? 0 : 1) == row;
  if (auto convert = dyn_cast<ConvertOp>(user); convert && !isNarrow(convert.getType()))
    return llvm::all_of(convert->getUsers(), [](Operation *reader) {
      return isa<ReduceOp, TakeOp>(reader) || reader->hasTrait<OpTrait::Elementwise>() || !isTensorOp(reader);
    });
  return isa<DotOp, CrossEntropyOp, ReduceOp, TakeOp>(user) || user->hasTrait<OpTrait::Elementwise>();
}

bool RowAligner::mayPad(Value value, int64_t dim) {
  auto [found, fresh] = known.try_emplace({value, dim}, false);
  if (!fresh)
    return found->second;
  return known[{value, dim}] = findPadding(value, dim);
}

/// Whether what computes the value can as well compute it with that dim longer.
bool RowAligner::findPadding(Value value, int64_t dim) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto convert = dyn_cast<ConvertOp>(op); convert && roundsWeight(convert)) {
    weights.insert(op);
    return true;
  }
  if (isUnaligned(value) && dim == lastDim(value) && !rows.contains(value) && !isRepeated(op))
    return false; // others read it as it is: it would be made twice
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](LoadOp load) { return isRow(value, dim) && keepsPadded(load.getBuffer()); })
      .Case([&](CrossEntropyGradOp gradient) { return isRow(value, dim) && rows.contains(gradient.getLogits()); })
      .Case([&](DotOp dot) {
        auto free = findFree(dot, dim);
        return free && isRow(value, dim) && mayPad(dot->getOperand(free->first), free->second);
      })
      .Case([&](ConstantOp constant) { return isa<SplatElementsAttr>(constant.getValue()); })
      .Case([&](IotaOp) { return true; })
      .Case([&](BroadcastInDimOp broadcast) {
        std::optional<int64_t> source = findSource(broadcast, dim);
        return !source || mayPad(broadcast.getOperand(), *source) || isSmall(broadcast);
      })
      .Case([&](ReshapeOp reshape) {
        std::optional<int64_t> source = findSource(reshape, dim);
        return source && mayPad(reshape.getOperand(), *source);
      })
      .Case([&](TransposeOp transpose) { return mayPad(transpose.getOperand(), transpose.getPermutation()[dim]); })
      .Default([&](Operation *op) {
        return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 &&
               llvm::all_of(op->getOperands(), [&](Value operand) { return mayPad(operand, dim); });
      });
}

/// Leaves the rows that can be padded, each if the others that it depends on are.
void RowAligner::prune() {
  auto mayStay = [&](Value row) {
    return mayPad(row, lastDim(row)) &&
           llvm::all_of(row.getUsers(), [&](Operation *user) { return mayReadPadded(user, row); });
  };
  for (bool changed = true; changed;) {
    known.clear();
    changed = rows.remove_if([&](Value row) { return !mayStay(row); });
  }
}

/// Finds the products that are made of longer rows, for both operands have them: they add zeros.
void RowAligner::findContractions() {
  forEachProduct([&](DotOp dot) {
    Value lhs = dot.getLhs(), rhs = dot.getRhs();
    if (rows.contains(dot.getResult())) // one of its operands has a longer dim already
      return;
    for (auto [l, r] : llvm::zip(dot.getLhsContracting(), dot.getRhsContracting())) {
      bool left = isRow(lhs, l), right = isRow(rhs, r);
      // What has longer rows along another dim is read without their padding.
      bool others = (rows.contains(lhs) && !left) || (rows.contains(rhs) && !right);
      if ((left || right) && !others && mayPad(lhs, l) && mayPad(rhs, r))
        contractions.push_back({dot, l, r});
    }
  });
}

/// Whether the value is computed from a row, element by element.
bool RowAligner::isOfRows(Value value) {
  auto [found, fresh] = ofRows.try_emplace(value, rows.contains(value));
  Operation *op = value.getDefiningOp();
  if (!fresh || found->second || !op || !op->hasTrait<OpTrait::Elementwise>())
    return found->second;
  return ofRows[value] = llvm::any_of(op->getOperands(), [&](Value operand) { return isOfRows(operand); });
}

/// Finds the reductions in f32 that read whole longer rows, 16 bytes at once as products do.
void RowAligner::findReductions() {
  for (BlockOp block : program.getOps<BlockOp>())
    for (auto reduce : block.getOps<ReduceOp>()) {
      Value operand = reduce.getOperand();
      bool known = reduce.getKind() == ReduceKind::sum || reduce.getKind() == ReduceKind::max;
      if (known && getElementTypeOrSelf(operand.getType()).isF32() && isOfRows(operand) &&
          mayPad(operand, lastDim(operand)))
        reductions.push_back(reduce);
    }
}

Padded RowAligner::pad(Value value, int64_t dim) {
  if (auto found = made.find({value, dim}); found != made.end())
    return found->second;
  Padded padded = makePadded(value.getDefiningOp(), dim);
  made[{value, dim}] = padded;
  return padded;
}

static Value buildZeros(OpBuilder &builder, Value value, int64_t dim) {
  SmallVector<int64_t> low(shapeOf(value).size(), 0), high = low;
  high[dim] = alignedRow(shapeOf(value)[dim]) - shapeOf(value)[dim];
  auto zero = cast<TypedAttr>(builder.getZeroAttr(getElementTypeOrSelf(value.getType())));
  return PadOp::create(builder, value.getLoc(), value, low, high, zero);
}

/// Pads what the op computes its result from; true if zeros make zeros of it.
bool RowAligner::padOperands(Operation *op, int64_t dim, MutableArrayRef<Value> operands) {
  auto padOperand = [&](unsigned operand, int64_t source) {
    Padded padded = pad(operands[operand], source);
    operands[operand] = padded.value;
    return padded.zeros;
  };
  auto addZeros = [&](int64_t source) {
    builder.setInsertionPoint(op);
    operands[0] = buildZeros(builder, operands[0], source);
    return true;
  };
  if (auto dot = dyn_cast<DotOp>(op)) {
    auto [operand, source] = *findFree(dot, dim);
    return padOperand(operand, source);
  }
  if (auto broadcast = dyn_cast<BroadcastInDimOp>(op)) {
    std::optional<int64_t> source = findSource(broadcast, dim);
    return source && (mayPad(operands[0], *source) ? padOperand(0, *source) : addZeros(*source));
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return padOperand(0, *findSource(reshape, dim));
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return padOperand(0, transpose.getPermutation()[dim]);
  if (weights.contains(op))
    return addZeros(dim);
  bool zeros = isa<ConvertOp>(op);
  for (unsigned operand = 0; operand < operands.size(); ++operand)
    zeros &= padOperand(operand, dim);
  return zeros;
}

Padded RowAligner::makePadded(Operation *op, int64_t dim) {
  RankedTensorType type = paddedType(op->getResult(0).getType(), dim);
  SmallVector<Value> operands(op->getOperands());
  bool zeros = !isa<CrossEntropyGradOp, LoadOp>(op) && padOperands(op, dim, operands);
  builder.setInsertionPointAfter(op);
  if (isa<CrossEntropyGradOp>(op))
    return {buildZeros(builder, op->getResult(0), dim), true};
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto splat = cast<SplatElementsAttr>(constant.getValue());
    return {ConstantOp::create(builder, op->getLoc(), SplatElementsAttr::get(type, splat.getSplatValue<Attribute>()))};
  }
  Operation *clone = builder.clone(*op);
  clone->setOperands(operands);
  clone->getResult(0).setType(type);
  return {clone->getResult(0), zeros};
}

/// With that number behind the value's elements.
Value RowAligner::padWith(double number, Value value, int64_t dim) {
  Padded padded = pad(value, dim);
  if (padded.zeros && number == 0)
    return padded.value;
  builder.setInsertionPointAfterValue(padded.value);
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(padded.value.getType()), places = type.clone(builder.getI64Type());
  Value place = IotaOp::create(builder, loc, places, uint64_t(dim));
  Value isValue = CompareOp::create(builder, loc, Predicate::lt, place,
                                    buildSplat(builder, loc, places, double(shapeOf(value)[dim])));
  return SelectOp::create(builder, loc, isValue, padded.value, buildSplat(builder, loc, type, number));
}

/// A reduction along rows reads what changes nothing behind them; one of columns has more of these, which nobody reads.
void RowAligner::padReduction(ReduceOp reduce) {
  Value operand = reduce.getOperand();
  int64_t last = lastDim(operand);
  if (llvm::is_contained(reduce.getDims(), last)) {
    double nothing = reduce.getKind() == ReduceKind::sum ? 0 : -std::numeric_limits<double>::infinity();
    reduce->setOperand(0, padWith(nothing, operand, last));
    return;
  }
  Value padded = pad(operand, last).value;
  builder.setInsertionPointAfter(reduce);
  Operation *wide = builder.clone(*reduce);
  wide->setOperand(0, padded);
  wide->getResult(0).setType(paddedType(reduce.getType(), lastDim(reduce)));
  SmallVector<int64_t> starts(shapeOf(reduce).size(), 0), strides(shapeOf(reduce).size(), 1);
  reduce.replaceAllUsesWith(
      SliceOp::create(builder, reduce.getLoc(), wide->getResult(0), starts, shapeOf(reduce), strides).getResult());
}


/// Lets readers of the row read what stands for it, without the padding.
void RowAligner::replaceUses(Value row) {
  Value padded = pad(row, lastDim(row)).value;
  SmallVector<int64_t> starts(shapeOf(row).size(), 0), strides(shapeOf(row).size(), 1);
  for (OpOperand &use : llvm::make_early_inc_range(row.getUses())) {
    Operation *user = use.getOwner();
    if (user == padded.getDefiningOp())
      continue;
    builder.setInsertionPoint(user);
    use.set(isa<StoreOp>(user) ? padded
                               : SliceOp::create(builder, user->getLoc(), padded, starts, shapeOf(row), strides));
  }
}

void RowAligner::rewrite() {
  for (auto [dot, l, r] : contractions)
    dot->setOperands({padWith(0, dot.getLhs(), l), padWith(0, dot.getRhs(), r)});
  for (ReduceOp reduce : reductions)
    padReduction(reduce);
  for (Value row : rows)
    pad(row, lastDim(row));
  for (Value row : rows)
    replaceUses(row);
  for (auto &[name, kept] : buffers)
    if (!kept.values.empty() && keepsPadded(name))
      kept.buffer.setType(paddedType(kept.buffer.getType(), lastDim(kept.values[0])));
  for (BlockOp block : program.getOps<BlockOp>())
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
}

void RowAligner::run() {
  collectBuffers();
  forEachProduct([&](DotOp dot) {
    for (Value value : {Value(dot.getLhs()), Value(dot.getRhs()), Value(dot.getResult())})
      collect(value);
  });
  prune();
  if (rows.empty())
    return;
  findContractions();
  findReductions();
  rewrite();
}

namespace {
struct AlignRowsPass : impl::AlignRowsPassBase<AlignRowsPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      RowAligner(program).run();
  }
};
} // namespace

} // namespace par
