// Describes an attention kernel as a call of the attention builtin: heads are read and written as strided views through
// the transposes, reshapes and concatenations around the op.
#include "AttentionCall.h"

#include "CallBuilder.h"
#include "Values.h"

#include "par/Dialect/Attention.h"
#include "par/kernels/AttentionSizes.h"

using namespace mlir;

namespace par {
namespace {

using Moves = SmallVector<Operation *>;

} // namespace

/// The part of a concatenation that one operand is.
static StridedView viewOfPart(ConcatOp concat, unsigned part, const StridedView &whole) {
  SmallVector<int64_t> starts(whole.sizes.size(), 0), limits(whole.sizes), steps(whole.sizes.size(), 1);
  int64_t dim = concat.getDim();
  for (Value before : concat.getInputs().take_front(part))
    starts[dim] += shapeOf(before)[dim];
  limits[dim] = starts[dim] + shapeOf(concat.getInputs()[part])[dim];
  return whole.sliced(starts, limits, steps);
}

/// Strided view of the heads in the value after the chain of layout ops.
static std::optional<StridedView> viewBefore(Value end, ArrayRef<OpOperand *> uses) {
  std::optional<StridedView> view = StridedView::dense(shapeOf(end));
  for (OpOperand *use : llvm::reverse(uses)) {
    if (!view)
      break;
    if (auto concat = dyn_cast<ConcatOp>(use->getOwner()))
      view = viewOfPart(concat, use->getOperandNumber(), *view);
    else
      view = viewBackward(use->getOwner(), *view);
  }
  return view;
}

/// Rows as the builtins take them; none if a row's elements do not lie side by side, or rows of a narrow format begin
/// where the library's accesses of 16 bytes cannot.
static std::optional<kernels::AttentionRows> readRows(Value buffer, const std::optional<StridedView> &view) {
  const int64_t together = getTensorType(buffer.getType()).getElementTypeBitWidth() == 16 ? 8 : 1;
  if (!view || view->sizes.size() != 4 || (view->strides[3] != 1 && view->sizes[3] != 1) || view->offset % together)
    return std::nullopt;
  int64_t whole = view->sizes[3];
  for (int dim = 0; dim < 3; ++dim)
    if (view->sizes[dim] > 1)
      whole = std::max(whole, view->sizes[dim] * view->strides[dim]);
  uint64_t strides[3];
  for (int dim = 0; dim < 3; ++dim) {
    int64_t stride = view->sizes[dim] == 1 ? whole : view->strides[dim];
    if (stride % together)
      return std::nullopt;
    strides[dim] = uint64_t(stride);
  }
  return kernels::AttentionRows{uint64_t(getTensorType(buffer.getType()).getNumElements()), uint64_t(view->offset),
                                strides[0], strides[1], strides[2]};
}

static std::optional<kernels::AttentionRows> writeRows(Value buffer, const std::optional<StridedView> &view) {
  std::optional<kernels::AttentionRows> rows = readRows(buffer, view);
  if (rows && rows->fill(view->sizes[0], view->sizes[1], view->sizes[2], view->sizes[3]))
    return rows;
  return std::nullopt;
}

Moves findReadMoves(Value heads, llvm::function_ref<bool(Operation *)> isTaken) {
  Moves moves, longest;
  Value source = heads;
  while (Operation *op = source.getDefiningOp()) {
    if (isTaken(op) || !isa<TransposeOp, ReshapeOp, SliceOp>(op))
      break;
    moves.push_back(op);
    source = op->getOperand(0);
    if (readRows(source, viewBehind(source, moves)))
      longest = moves;
  }
  return longest;
}

static Moves ownersOf(ArrayRef<OpOperand *> uses) {
  return llvm::map_to_vector<6>(uses, [](OpOperand *use) { return use->getOwner(); });
}

/// The chain of transposes and reshapes after heads, each the only user of its operand.
static SmallVector<OpOperand *> followMoves(Value &end, llvm::function_ref<bool(Value)> isRead) {
  SmallVector<OpOperand *> uses;
  while (end.hasOneUse() && !isRead(end) && isa<TransposeOp, ReshapeOp>(*end.getUsers().begin())) {
    uses.push_back(&*end.use_begin());
    end = uses.back()->getOwner()->getResult(0);
  }
  return uses;
}

Moves findWriteMoves(Value heads, llvm::function_ref<bool(Value)> isRead) {
  Value end = heads;
  SmallVector<OpOperand *> uses = followMoves(end, isRead);
  while (!uses.empty() && !writeRows(end, viewBefore(end, uses))) {
    uses.pop_back();
    end = uses.empty() ? heads : uses.back()->getOwner()->getResult(0);
  }
  return ownersOf(uses);
}

Moves findJoin(ValueRange heads, llvm::function_ref<bool(Value)> isRead) {
  Moves all;
  llvm::SmallPtrSet<Operation *, 2> joins;
  for (Value one : heads) {
    Value end = one;
    all.append(ownersOf(followMoves(end, isRead)));
    auto concat = end.hasOneUse() && !isRead(end) ? dyn_cast<ConcatOp>(*end.getUsers().begin()) : ConcatOp();
    if (!concat || concat.getInputs().size() != heads.size())
      return {};
    joins.insert(concat);
  }
  if (joins.size() != 1)
    return {};
  all.push_back(*joins.begin());
  return all;
}

TransposeOp findOneTranspose(Value value, Operation *besides) {
  TransposeOp found;
  for (Operation *user : value.getUsers()) {
    if (isa<AttentionOp, AttentionGradOp>(user) || user == besides)
      continue;
    auto transpose = dyn_cast<TransposeOp>(user);
    if (!transpose || found)
      return {};
    found = transpose;
  }
  return found;
}

namespace {

/// Builds the call of one attention from the operands and results of its kernel.
class HeadsCall {
public:
  HeadsCall(KernelOp kernel, StringRef name) : call(kernel, name) {}

  void read(Value heads);
  void write(Value heads);
  /// dq, dk and dv, perhaps all in one result.
  void writeAll(ValueRange heads);
  template <typename Op>
  std::optional<BuiltinCall> finish(Op op);

  CallBuilder call;

private:
  void add(const std::optional<kernels::AttentionRows> &rows);

  /// The value after the layout ops of heads; sets their strided view in it.
  Value placeWritten(Value heads);

  llvm::SmallPtrSet<Operation *, 8> moved;
  SmallVector<int64_t> places;
  bool fits = true;
};

} // namespace

void HeadsCall::add(const std::optional<kernels::AttentionRows> &rows) {
  fits &= rows.has_value();
  if (rows)
    for (uint64_t value : {rows->elements, rows->offset, rows->batch, rows->head, rows->row})
      places.push_back(int64_t(value));
}

void HeadsCall::read(Value heads) {
  Moves moves;
  Value source = heads;
  for (Operation *op = source.getDefiningOp(); op && op->getNumOperands() == 1; op = source.getDefiningOp()) {
    moves.push_back(op);
    source = op->getOperand(0);
  }
  moved.insert(moves.begin(), moves.end());
  call.read(source);
  add(readRows(source, viewBehind(source, moves)));
}

Value HeadsCall::placeWritten(Value heads) {
  SmallVector<OpOperand *> uses;
  Value end = heads;
  while (end.hasOneUse() && !isa<ReturnOp>(*end.getUsers().begin())) {
    uses.push_back(&*end.use_begin());
    end = uses.back()->getOwner()->getResult(0);
    moved.insert(uses.back()->getOwner());
  }
  add(readRows(end, viewBefore(end, uses)));
  return end;
}

void HeadsCall::write(Value heads) { call.write(placeWritten(heads)); }

void HeadsCall::writeAll(ValueRange heads) {
  llvm::SetVector<Value> ends;
  for (Value one : heads)
    ends.insert(placeWritten(one));
  for (Value end : ends)
    call.write(end);
  places.push_back(ends.size() == heads.size());
}

template <typename Op>
std::optional<BuiltinCall> HeadsCall::finish(Op op) {
  Heads heads(op);
  SmallVector<int64_t> dims(4, 1);
  if (Value mask = op.getMask()) {
    call.read(mask);
    dims.assign(shapeOf(mask).begin(), shapeOf(mask).end());
  }
  for (size_t i = 0; i < moved.size(); ++i)
    call.besides();
  if (!fits)
    return std::nullopt;
  call.integers({heads.batch, heads.heads, heads.groups, heads.queries, heads.keys, heads.width, heads.valueWidth,
                 op.getCausal(), op.getMask() != nullptr});
  call.reals({op.getScaleAttr().getValueAsDouble()}).integers(dims).integers(places);
  std::optional<BuiltinCall> found = call.finish();
  return found && found->kernel->fits({found->immediates.data(), found->immediates.size()}) ? found : std::nullopt;
}

/// The form of a builtin for the op's format.
template <typename Op>
static std::string formOf(Op op, StringRef name) {
  Type element = Heads(op).element;
  return (name + (element.isF32() ? "" : element.isBF16() ? "_bf16" : "_f16")).str();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, AttentionOp op) {
  HeadsCall call(kernel, formOf(op, "attention"));
  for (Value operand : {op.getQuery(), op.getKey(), op.getValue()})
    call.read(operand);
  call.write(op.getResult());
  call.call.write(op.getLse());
  return call.finish(op);
}

static std::optional<BuiltinCall> describe(KernelOp kernel, AttentionGradOp op) {
  HeadsCall call(kernel, formOf(op, "attention_backward"));
  for (Value operand : op->getOperands().take_front(5))
    call.read(operand);
  call.call.read(op.getLse());
  call.writeAll(op->getResults());
  return call.finish(op);
}

std::optional<BuiltinCall> describeAttention(KernelOp kernel) {
  for (Operation &op : kernel.getBlock()) {
    if (auto forward = dyn_cast<AttentionOp>(op))
      return isOneCall(forward, /*gpu=*/false) ? describe(kernel, forward) : std::nullopt;
    if (auto backward = dyn_cast<AttentionGradOp>(op))
      return isOneCall(backward, /*gpu=*/false) ? describe(kernel, backward) : std::nullopt;
  }
  return std::nullopt;
}

} // namespace par
