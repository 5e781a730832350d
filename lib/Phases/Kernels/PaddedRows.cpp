// Finds the values whose rows can be padded: from each matmul with unaligned rows it follows the row to its buffer,
// producers and readers, and drops candidates until each one's dependencies are candidates too.
#include "PaddedRows.h"
#include "Groups.h"
#include "Values.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace par {

static bool isHalf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isBF16() || element.isF16();
}

int64_t alignedRow(int64_t size) {
  int64_t unit = size >= 512 ? 64 : size >= 64 ? 8 : 1;
  return size % 8 ? (size + unit - 1) / unit * unit : size;
}

SliceOp dropPadding(OpBuilder &builder, Location loc, Value padded, Value like) {
  SmallVector<int64_t> starts(shapeOf(like).size(), 0), strides(shapeOf(like).size(), 1);
  return SliceOp::create(builder, loc, padded, starts, shapeOf(like), strides);
}

bool isOfFirst(SliceOp slice) {
  return llvm::all_of(slice.getStarts(), [](int64_t at) { return at == 0; }) &&
         llvm::all_of(slice.getStrides(), [](int64_t step) { return step == 1; });
}

bool dropsPadding(Operation *op) {
  auto slice = dyn_cast_if_present<SliceOp>(op);
  if (!slice || !isHalf(slice.getType()) || shapeOf(slice).empty())
    return false;
  ArrayRef<int64_t> rows = shapeOf(slice), padded = shapeOf(slice.getOperand());
  return rows.drop_back() == padded.drop_back() && rows.back() != padded.back() &&
         alignedRow(rows.back()) == padded.back() && isOfFirst(slice);
}

bool padsRows(PadOp pad) {
  auto zero = dyn_cast<FloatAttr>(pad.getValue());
  auto isNone = [](int64_t added) { return added == 0; };
  return zero && zero.getValue().isPosZero() && !pad.getHigh().empty() && pad.getHigh().back() > 0 &&
         llvm::all_of(pad.getLow(), isNone) && llvm::all_of(pad.getHigh().drop_back(), isNone);
}

namespace {

/// Finds bf16 and f16 values that matmuls read or write with unaligned rows, and that can be padded without a copy.
class RowFinder {
public:
  explicit RowFinder(ProgramOp program) : program(program) {}

  RowPlan run();

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
  bool isRow(Value value, int64_t dim) const { return plan.rows.contains(value) && dim == lastDim(value); }
  bool keepsPadded(StringRef buffer) const;
  bool roundsWeight(ConvertOp convert) const;
  bool keepsWeight(StringRef buffer, int64_t dim);
  bool mayReadPadded(Operation *user, Value row) const;
  bool mayPad(Value value, int64_t dim);
  bool findPadding(Value value, int64_t dim);
  void findContractions();
  void findReductions();
  bool isOfRows(Value value);

  ProgramOp program;
  RowPlan plan;
  llvm::StringMap<Kept> buffers;
  llvm::DenseMap<Value, bool> ofRows;
};

} // namespace

/// Whether a value has unaligned rows of bf16 or f16 that could be padded.
static bool isUnaligned(Value value) {
  return isHalf(value.getType()) && !shapeOf(value).empty() &&
         alignedRow(shapeOf(value).back()) != shapeOf(value).back();
}

std::optional<int64_t> findSource(ReshapeOp reshape, int64_t dim) {
  ArrayRef<int64_t> from = shapeOf(reshape.getOperand()), to = shapeOf(reshape);
  int64_t behind = ShapedType::getNumElements(to.drop_front(dim + 1)), other = 1;
  for (int64_t source = int64_t(from.size()) - 1; source >= 0; other *= from[source--])
    if (from[source] == to[dim] && other == behind)
      return source;
  return std::nullopt;
}

std::optional<std::pair<unsigned, int64_t>> findFree(DotOp dot, int64_t dim) {
  dim -= dot.getLhsBatching().size();
  SmallVector<int64_t> lhs(dot.getLhsFree()), rhs(dot.getRhsFree());
  if (dim < 0)
    return std::nullopt;
  if (dim < int64_t(lhs.size()))
    return std::pair(0u, lhs[dim]);
  return std::pair(1u, rhs[dim - lhs.size()]);
}

std::optional<int64_t> findSource(BroadcastInDimOp broadcast, int64_t dim) {
  for (auto [source, target] : llvm::enumerate(broadcast.getDims()))
    if (target == dim && shapeOf(broadcast.getOperand())[source] != 1)
      return source;
  return std::nullopt;
}

/// Few numbers beside those that they are repeated to: padding them costs nothing to speak of.
static bool isSmall(BroadcastInDimOp broadcast) {
  constexpr int64_t few = 8;
  return getTensorType(broadcast.getOperand().getType()).getNumElements() * few <= broadcast.getType().getNumElements();
}

/// Costs little or nothing at each use: a broadcast of few numbers, perhaps rounded.
static bool isRepeated(Operation *op) {
  auto isFreeValue = [](Value value) { return value.getDefiningOp() && isFree(value.getDefiningOp()); };
  return isFree(op) || (op->hasTrait<OpTrait::Elementwise>() && llvm::all_of(op->getOperands(), isFreeValue));
}

/// For how many rows the matmul uses the whole value: the elements of its other operand's free and batch dims.
static int64_t rowsOf(DotOp dot, Value value) {
  bool isLhs = dot.getLhs() == value;
  Value other = isLhs ? dot.getRhs() : dot.getLhs();
  int64_t rows = getTensorType(other.getType()).getNumElements();
  for (int64_t dim : isLhs ? dot.getRhsContracting() : dot.getLhsContracting())
    rows /= shapeOf(other)[dim];
  return rows;
}

/// Whether only matmuls of many rows read a weight, maybe a slice of its rows, beside lookups, which read rows in
/// place.
static bool isForManyRows(Value weight) {
  constexpr int64_t many = 512;
  return !weight.use_empty() && llvm::all_of(weight.getUsers(), [&](Operation *user) {
    if (auto dot = dyn_cast<DotOp>(user))
      return rowsOf(dot, weight) >= many;
    if (isa<GatherOp>(user))
      return true;
    bool follows = isa<ReshapeOp>(user) || (user->hasTrait<OpTrait::Elementwise>() && user->getNumResults() == 1);
    return follows && isForManyRows(user->getResult(0));
  });
}

/// A weight without the rows that padded it for an all-gather (50,264 of 8 ranks to 50,257). Its copy takes a twentieth
/// of the time that matmuls of many rows save.
static bool dropsRows(SliceOp slice) {
  ArrayRef<int64_t> from = shapeOf(slice.getOperand()), to = shapeOf(slice);
  return isHalf(slice.getType()) && to.size() == 2 && from[0] != to[0] && from[1] == to[1] && isOfFirst(slice);
}

/// Visits matmuls of bf16 or f16 operands, in the block's order.
void RowFinder::forEachProduct(function_ref<void(DotOp)> visit) {
  for (BlockOp block : program.getOps<BlockOp>())
    for (auto dot : block.getOps<DotOp>())
      if (isHalf(dot.getLhs().getType()) && isHalf(dot.getRhs().getType()))
        visit(dot);
}

void RowFinder::collectBuffers() {
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

void RowFinder::collectBuffer(StringRef name) {
  if (auto kept = buffers.find(name); kept != buffers.end())
    for (Value value : kept->second.values)
      collect(value);
}

/// Collects the value and all values with the same rows: values in the same buffer, views, elementwise results.
void RowFinder::collect(Value value) {
  if (!isUnaligned(value) || !plan.rows.insert(value))
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

bool RowFinder::keepsPadded(StringRef buffer) const {
  auto kept = buffers.find(buffer);
  return kept != buffers.end() &&
         llvm::all_of(kept->second.values, [&](Value value) { return plan.rows.contains(value); });
}

/// An f32 weight that is rounded only for matmuls, here or once for all microbatches: the kernel that rounds it can
/// write the zeros as well.
bool RowFinder::roundsWeight(ConvertOp convert) const {
  return isHalf(convert.getType()) && convert.getOperand().getType().getElementType().isF32() &&
         convert.getOperand().getDefiningOp<LoadOp>() && llvm::all_of(convert->getUsers(), [&](Operation *user) {
           auto store = dyn_cast<StoreOp>(user);
           return isa<DotOp>(user) || user->hasTrait<OpTrait::Elementwise>() ||
                  (store && buffers.contains(store.getBuffer()));
         });
}

/// Whether a buffer can hold rounded or gathered weights padded along that dim: only matmuls read them, maybe a slice
/// of the rows, and lookups of rows that are followed by padding.
bool RowFinder::keepsWeight(StringRef buffer, int64_t dim) {
  auto kept = buffers.find(buffer);
  if (kept == buffers.end())
    return false;
  SmallVector<Operation *> rounded, gathered;
  for (Value value : kept->second.values) {
    Operation *op = value.getDefiningOp();
    auto isReader = [&](Operation *user) {
      return isa<DotOp>(user) || user->hasTrait<OpTrait::Elementwise>() || (dim == 0 && isa<GatherOp>(user));
    };
    if (auto convert = dyn_cast_or_null<ConvertOp>(op); convert && roundsWeight(convert))
      rounded.push_back(op);
    else if (auto slice = dyn_cast_or_null<SliceOp>(op);
             slice && dim == 0 && dropsRows(slice) && llvm::hasSingleElement(op->getUsers()))
      gathered.push_back(op);
    else if (!isa_and_nonnull<LoadOp>(op) || !llvm::all_of(value.getUsers(), isReader))
      return false;
  }
  auto isLoad = [](Value value) { return value.getDefiningOp<LoadOp>(); };
  if (!gathered.empty() && !llvm::all_of(llvm::make_filter_range(kept->second.values, isLoad), isForManyRows))
    return false;
  if (plan.weightBuffers.try_emplace(buffer, dim).first->second != dim)
    return false;
  plan.weights.insert(rounded.begin(), rounded.end());
  plan.copied.insert(gathered.begin(), gathered.end());
  return true;
}

/// Whether an op that reads the row can read it without its padding where it lies.
bool RowFinder::mayReadPadded(Operation *user, Value row) const {
  if (auto store = dyn_cast<StoreOp>(user))
    return keepsPadded(store.getBuffer());
  if (isa<CrossEntropyGradOp, ReshapeOp>(user))
    return plan.rows.contains(user->getResult(0)) && user->getOperand(isa<ReshapeOp>(user) ? 0 : 1) == row;
  if (auto convert = dyn_cast<ConvertOp>(user); convert && !isHalf(convert.getType()))
    return llvm::all_of(convert->getUsers(), [](Operation *reader) {
      return isa<ReduceOp, TakeOp>(reader) || reader->hasTrait<OpTrait::Elementwise>() || !isTensorOp(reader);
    });
  return isa<DotOp, CrossEntropyOp, ReduceOp, TakeOp>(user) || user->hasTrait<OpTrait::Elementwise>();
}

bool RowFinder::mayPad(Value value, int64_t dim) {
  auto [found, fresh] = plan.longer.try_emplace({value, dim}, false);
  if (!fresh)
    return found->second;
  return plan.longer[{value, dim}] = findPadding(value, dim);
}

/// Whether the op that computes the value can compute it padded along that dim.
bool RowFinder::findPadding(Value value, int64_t dim) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto convert = dyn_cast<ConvertOp>(op); convert && roundsWeight(convert)) {
    plan.weights.insert(op);
    return true;
  }
  if (isUnaligned(value) && dim == lastDim(value) && !plan.rows.contains(value) && !isRepeated(op))
    return false; // others read it as it is: it would be made twice
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](LoadOp load) {
        return dim == lastDim(value) ? isRow(value, dim) && keepsPadded(load.getBuffer())
                                     : keepsWeight(load.getBuffer(), dim);
      })
      .Case([&](SliceOp slice) {
        bool copies = dim == 0 && dropsRows(slice) && isForManyRows(slice);
        if (copies)
          plan.copied.insert(slice);
        return copies;
      })
      .Case([&](CrossEntropyGradOp gradient) { return isRow(value, dim) && plan.rows.contains(gradient.getLogits()); })
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
      .Case([&](TransposeOp transpose) {
        if (mayPad(transpose.getOperand(), transpose.getPermutation()[dim]))
          return true;
        // A weight gathered along another dim is copied anyway.
        bool copies = isHalf(value.getType()) && isForManyRows(value);
        if (copies)
          plan.copied.insert(transpose);
        return copies;
      })
      .Default([&](Operation *op) {
        return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 &&
               llvm::all_of(op->getOperands(), [&](Value operand) { return mayPad(operand, dim); });
      });
}

/// Leaves the rows that can be padded, each if the others that it depends on are.
void RowFinder::prune() {
  auto mayStay = [&](Value row) {
    return mayPad(row, lastDim(row)) &&
           llvm::all_of(row.getUsers(), [&](Operation *user) { return mayReadPadded(user, row); });
  };
  for (bool changed = true; changed;) {
    plan.longer.clear();
    plan.weightBuffers.clear();
    changed = plan.rows.remove_if([&](Value row) { return !mayStay(row); });
  }
}

/// Finds the matmuls that contract a padded dim: the padding of both operands adds zeros.
void RowFinder::findContractions() {
  forEachProduct([&](DotOp dot) {
    Value lhs = dot.getLhs(), rhs = dot.getRhs();
    if (plan.rows.contains(dot.getResult())) // one of its operands has a longer dim already
      return;
    for (auto [l, r] : llvm::zip(dot.getLhsContracting(), dot.getRhsContracting())) {
      bool left = isRow(lhs, l), right = isRow(rhs, r);
      // An operand padded along another dim is read without its padding.
      bool others = (plan.rows.contains(lhs) && !left) || (plan.rows.contains(rhs) && !right);
      if ((left || right) && !others && mayPad(lhs, l) && mayPad(rhs, r))
        plan.contractions.push_back({dot, l, r});
    }
  });
}

/// Whether the value is computed from a row, element by element.
bool RowFinder::isOfRows(Value value) {
  auto [found, fresh] = ofRows.try_emplace(value, plan.rows.contains(value));
  Operation *op = value.getDefiningOp();
  if (!fresh || found->second || !op || !op->hasTrait<OpTrait::Elementwise>())
    return found->second;
  return ofRows[value] = llvm::any_of(op->getOperands(), [&](Value operand) { return isOfRows(operand); });
}

/// Finds the f32 reductions that read whole padded rows, 16 bytes at once as matmuls do.
void RowFinder::findReductions() {
  for (BlockOp block : program.getOps<BlockOp>())
    for (auto reduce : block.getOps<ReduceOp>()) {
      Value operand = reduce.getOperand();
      bool known = reduce.getKind() == ReduceKind::sum || reduce.getKind() == ReduceKind::max;
      if (known && getElementTypeOrSelf(operand.getType()).isF32() && isOfRows(operand) &&
          mayPad(operand, lastDim(operand)))
        plan.reductions.push_back(reduce);
    }
}

RowPlan RowFinder::run() {
  collectBuffers();
  forEachProduct([&](DotOp dot) {
    for (Value value : {Value(dot.getLhs()), Value(dot.getRhs()), Value(dot.getResult())})
      collect(value);
  });
  prune();
  findContractions();
  findReductions();
  for (auto &[name, kept] : buffers)
    if (!kept.values.empty() && keepsPadded(name))
      plan.buffers.push_back(kept.buffer);
  return std::move(plan);
}

RowPlan planRows(ProgramOp program) { return RowFinder(program).run(); }

} // namespace par
