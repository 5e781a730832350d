// Pads rows of bf16 and f16 values that matmuls on a GPU read or write to multiples of 16 bytes. The values are chosen
// in PaddedRows.cpp; here their producers are rebuilt longer, with zeros or a reduction's neutral element in the
// padding.
#include "PaddedRows.h"
#include "Values.h"
#include "par/Phases/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_PADROWSPASS
#include "par/Phases/Kernels/Passes.h.inc"

namespace {

/// A value padded along one dim.
struct Padded {
  Value value;
  bool zeros = false; ///< whether the padding is zero
};

/// Pads the values of a plan.
class RowPadder {
public:
  RowPadder(ProgramOp program, RowPlan plan) : program(program), builder(program), plan(std::move(plan)) {}

  void run();

private:
  Padded pad(Value value, int64_t dim);
  Padded makePadded(Operation *op, int64_t dim);
  bool padOperands(Operation *op, int64_t dim, MutableArrayRef<Value> operands);
  Value padWith(double number, Value value, int64_t dim);
  void padWeights(StringRef buffer, int64_t dim);
  void padReduction(ReduceOp reduce);
  void replaceUses(Value row);

  ProgramOp program;
  OpBuilder builder;
  RowPlan plan;
  llvm::DenseMap<std::pair<Value, int64_t>, Padded> made;
};

} // namespace

/// The type with one dim as long as rows are kept.
static RankedTensorType paddedType(Type type, int64_t dim) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = alignedRow(shape[dim]);
  return tensor.clone(shape);
}

Padded RowPadder::pad(Value value, int64_t dim) {
  if (auto load = value.getDefiningOp<LoadOp>())
    if (auto buffer = plan.weightBuffers.find(load.getBuffer());
        buffer != plan.weightBuffers.end() && buffer->second == dim)
      padWeights(load.getBuffer(), dim);
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

/// Pads the operands from which the op computes its result; true if zeros in them give zeros in it.
bool RowPadder::padOperands(Operation *op, int64_t dim, MutableArrayRef<Value> operands) {
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
    return source && (plan.longer.lookup({operands[0], *source}) ? padOperand(0, *source) : addZeros(*source));
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return padOperand(0, *findSource(reshape, dim));
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return padOperand(0, transpose.getPermutation()[dim]);
  if (plan.weights.contains(op))
    return addZeros(dim);
  bool zeros = isa<ConvertOp>(op);
  for (unsigned operand = 0; operand < operands.size(); ++operand)
    zeros &= padOperand(operand, dim);
  return zeros;
}

Padded RowPadder::makePadded(Operation *op, int64_t dim) {
  RankedTensorType type = paddedType(op->getResult(0).getType(), dim);
  SmallVector<Value> operands(op->getOperands());
  bool behind = isa<CrossEntropyGradOp>(op) || plan.copied.contains(op);
  bool zeros = !behind && !isa<LoadOp>(op) && padOperands(op, dim, operands);
  builder.setInsertionPointAfter(op);
  if (behind)
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

/// The value padded with that number.
Value RowPadder::padWith(double number, Value value, int64_t dim) {
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

/// Pads rounded weights with zeros. Users of the unpadded weight read a slice.
void RowPadder::padWeights(StringRef name, int64_t dim) {
  plan.weightBuffers.erase(name);
  auto buffer = cast<BufferOp>(SymbolTable::lookupSymbolIn(program, name));
  buffer.setType(paddedType(buffer.getType(), dim));
  for (BlockOp block : program.getOps<BlockOp>())
    for (Operation &op : llvm::make_early_inc_range(block.getBody().front())) {
      if (auto store = dyn_cast<StoreOp>(op); store && store.getBuffer() == name)
        store.setOperand(pad(store.getOperand(), dim).value);
      auto load = dyn_cast<LoadOp>(op);
      if (!load || load.getBuffer() != name)
        continue;
      builder.setInsertionPointAfter(load);
      auto padded = cast<LoadOp>(builder.clone(op));
      padded.getResult().setType(paddedType(load.getType(), dim));
      Value slice = dropPadding(builder, load.getLoc(), padded, load);
      load.getResult().replaceAllUsesWith(slice);
      made[{load, dim}] = made[{slice, dim}] = {padded, true};
    }
}

/// A reduction along rows reads the identity of the reduction as padding. A reduction of columns has more results,
/// which are unused.
void RowPadder::padReduction(ReduceOp reduce) {
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
  reduce.replaceAllUsesWith(dropPadding(builder, reduce.getLoc(), wide->getResult(0), reduce).getResult());
}

/// Replaces uses of the row by a slice of the padded value.
void RowPadder::replaceUses(Value row) {
  Value padded = pad(row, lastDim(row)).value;
  for (OpOperand &use : llvm::make_early_inc_range(row.getUses())) {
    Operation *user = use.getOwner();
    if (user == padded.getDefiningOp())
      continue;
    builder.setInsertionPoint(user);
    use.set(isa<StoreOp>(user) ? padded : dropPadding(builder, user->getLoc(), padded, row));
  }
}

void RowPadder::run() {
  for (auto [dot, l, r] : plan.contractions)
    dot->setOperands({padWith(0, dot.getLhs(), l), padWith(0, dot.getRhs(), r)});
  for (ReduceOp reduce : plan.reductions)
    padReduction(reduce);
  for (Value row : plan.rows)
    pad(row, lastDim(row));
  for (Value row : plan.rows)
    replaceUses(row);
  for (BufferOp buffer : plan.buffers)
    buffer.setType(paddedType(buffer.getType(), buffer.getTensorType().getRank() - 1));
  for (BlockOp block : program.getOps<BlockOp>())
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
}

namespace {
struct PadRowsPass : impl::PadRowsPassBase<PadRowsPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      if (RowPlan plan = planRows(program); !plan.rows.empty())
        RowPadder(program, std::move(plan)).run();
  }
};
} // namespace

} // namespace par
