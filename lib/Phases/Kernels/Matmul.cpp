// Describes a kernel with a dot as a GEMM call: the operands' strides in the dot's iteration space are traced through
// layout ops, dims are merged, and of all choices of m, n and batch dims the one with the largest matrices is taken.
#include "par/Phases/Kernels/Matmul.h"

#include "Epilogues.h"

using namespace mlir;

namespace par {
namespace {

/// One dim of the matmul's iteration space, with its stride in A, B and C (0: the dim is not in it).
struct Dim {
  int64_t size = 1, a = 0, b = 0, c = 0;
};
using Dims = SmallVector<Dim>;

/// The iteration space: dims by their role in the matmul.
struct Space {
  Dims batch, m, n, k;
};

/// A matched kernel body: the dot, views of its operands and result, and the accumulator.
struct Body {
  DotOp dot;
  BlockArgument lhs, rhs;
  std::optional<unsigned> accumulator;
  StridedView a, b, c;
};

} // namespace

/// From bf16 or f16 to f32, or back: a call converts its operands and results.
static bool isConversion(Operation *op) {
  auto convert = dyn_cast_or_null<ConvertOp>(op);
  if (!convert)
    return false;
  Type from = convert.getOperand().getType().getElementType(), to = convert.getType().getElementType();
  auto isLowPrecision = [](Type type) { return type.isBF16() || type.isF16(); };
  return (isLowPrecision(from) && to.isF32()) || (from.isF32() && isLowPrecision(to));
}

static Type elementOf(Value value) { return getTensorType(value.getType()).getElementType(); }

std::optional<StridedView> traceArgument(Value value, BlockArgument &argument) {
  SmallVector<Operation *> path;
  while (Operation *op = value.getDefiningOp()) {
    if (op->getNumOperands() != 1)
      return std::nullopt;
    if (!isConversion(op))
      path.push_back(op);
    else if (!elementOf(op->getResult(0)).isF32())
      return std::nullopt;
    value = op->getOperand(0);
  }
  argument = cast<BlockArgument>(value);
  std::optional<StridedView> view = viewBehind(value, path);
  return view && view->offset == 0 ? view : std::nullopt; // a call's matrices begin where its operands do
}

/// Takes an `add` of the tied argument apart: leaves the other summand in `value`. False if it is something else.
static bool traceAccumulator(AddOp add, KernelOp kernel, const StridedView &result, Body &body, Value &value) {
  for (unsigned side : {0u, 1u}) {
    BlockArgument argument;
    std::optional<StridedView> view = traceArgument(add->getOperand(side), argument);
    if (!view || *view != result || body.accumulator || !kernel.getTied() ||
        (*kernel.getTied())[0] != argument.getArgNumber() || !argument.hasOneUse())
      continue;
    body.accumulator = argument.getArgNumber();
    value = add->getOperand(1 - side);
    return true;
  }
  return false;
}

/// How the kernel computes `value`.
static std::optional<Body> readBody(KernelOp kernel, Value value) {
  Body body;
  Value written = value;
  std::optional<StridedView> view = StridedView::dense(getTensorType(value.getType()).getShape());
  while (!(body.dot = value.getDefiningOp<DotOp>())) {
    Operation *op = value.getDefiningOp();
    if (!op || !view)
      return std::nullopt;
    if (auto add = dyn_cast<AddOp>(op)) {
      if (!traceAccumulator(add, kernel, *view, body, value))
        return std::nullopt;
      continue;
    }
    if (isConversion(op)) {
      if (elementOf(op->getResult(0)).isF32() || body.accumulator) // an accumulator has no convert
        return std::nullopt;
      value = op->getOperand(0);
      continue;
    }
    view = viewBackward(op, *view);
    if (op->getNumOperands() != 1)
      return std::nullopt;
    value = op->getOperand(0);
  }
  if (kernel.getTied() && (*kernel.getTied())[0] >= 0 && !body.accumulator)
    return std::nullopt;
  std::optional<StridedView> a = traceArgument(body.dot.getLhs(), body.lhs);
  std::optional<StridedView> b = traceArgument(body.dot.getRhs(), body.rhs);
  if (!view || !a || !b)
    return std::nullopt;
  for (Value number : {body.dot.getLhs(), body.dot.getRhs(), body.dot.getResult()})
    if (!elementOf(number).isF32())
      return std::nullopt;
  Type operands = elementOf(body.lhs), result = elementOf(written);
  if (operands != elementOf(body.rhs) || (!result.isF32() && result != operands))
    return std::nullopt;
  body.a = *a, body.b = *b, body.c = *view;
  return body;
}

static Space readSpace(const Body &body) {
  Space space;
  DotOp dot = body.dot;
  unsigned out = 0;
  for (auto [l, r] : llvm::zip(dot.getLhsBatching(), dot.getRhsBatching()))
    space.batch.push_back({body.a.sizes[l], body.a.strides[l], body.b.strides[r], body.c.strides[out++]});
  for (int64_t l : dot.getLhsFree())
    space.m.push_back({body.a.sizes[l], body.a.strides[l], 0, body.c.strides[out++]});
  for (int64_t r : dot.getRhsFree())
    space.n.push_back({body.b.sizes[r], 0, body.b.strides[r], body.c.strides[out++]});
  for (auto [l, r] : llvm::zip(dot.getLhsContracting(), dot.getRhsContracting()))
    space.k.push_back({body.a.sizes[l], body.a.strides[l], body.b.strides[r], 0});
  return space;
}

/// Drops dims of size 1 and joins those that lie one inside the other in every operand.
static void mergeDims(Dims &dims) {
  llvm::erase_if(dims, [](const Dim &dim) { return dim.size == 1; });
  llvm::stable_sort(dims,
                    [](const Dim &x, const Dim &y) { return std::tuple(x.c, x.a, x.b) > std::tuple(y.c, y.a, y.b); });
  Dims merged;
  for (const Dim &dim : dims) {
    if (!merged.empty()) {
      Dim &outer = merged.back();
      if (outer.a == dim.a * dim.size && outer.b == dim.b * dim.size && outer.c == dim.c * dim.size) {
        outer = {outer.size * dim.size, dim.a, dim.b, dim.c};
        continue;
      }
    }
    merged.push_back(dim);
  }
  dims = std::move(merged);
}

static void swapOperands(Space &space) {
  std::swap(space.m, space.n);
  for (Dims *dims : {&space.batch, &space.m, &space.n, &space.k})
    for (Dim &dim : *dims)
      std::swap(dim.a, dim.b);
}

/// How a matrix [rows, cols] is stored, given the strides of both: whole rows one after the other, or (`trans`) whole
/// columns. Strides of dims of size 1 do not matter. False if neither.
static bool readMatrix(int64_t rows, int64_t cols, int64_t rowStride, int64_t colStride, bool &trans,
                       int64_t &leading) {
  if (cols == 1 || colStride == 1) {
    leading = rows == 1 ? cols : rowStride;
    trans = false;
    if (leading >= cols)
      return true;
  }
  if (rows == 1 || rowStride == 1) {
    leading = cols == 1 ? rows : colStride;
    trans = true;
    return leading >= rows;
  }
  return false;
}

/// The call with `space.m[row]` and `space.n[col]` as m and n and all other free dims as batch dims.
static std::optional<MatmulCall> tryCall(const Space &space, int row, int col) {
  if (space.k.size() > 1)
    return std::nullopt;
  Dim m = row < 0 ? Dim() : space.m[row], n = col < 0 ? Dim() : space.n[col];
  Dim k = space.k.empty() ? Dim() : space.k[0];
  MatmulCall call;
  call.m = m.size, call.n = n.size, call.k = k.size;
  bool transC;
  if (!readMatrix(m.size, k.size, m.a, k.a, call.transA, call.lda) ||
      !readMatrix(k.size, n.size, k.b, n.b, call.transB, call.ldb) ||
      !readMatrix(m.size, n.size, m.c, n.c, transC, call.ldc) || transC)
    return std::nullopt;
  Dims batch = space.batch;
  for (auto [index, dim] : llvm::enumerate(space.m))
    if (int(index) != row)
      batch.push_back(dim);
  for (auto [index, dim] : llvm::enumerate(space.n))
    if (int(index) != col)
      batch.push_back(dim);
  mergeDims(batch);
  for (const Dim &dim : batch) {
    call.batch.push_back(dim.size);
    call.strideA.push_back(dim.a);
    call.strideB.push_back(dim.b);
    call.strideC.push_back(dim.c);
  }
  return call;
}

/// Chooses the call with the largest matrices.
static std::optional<MatmulCall> chooseCall(const Space &space) {
  std::optional<MatmulCall> best;
  for (int row = space.m.empty() ? -1 : 0; row < int(space.m.size()); ++row)
    for (int col = space.n.empty() ? -1 : 0; col < int(space.n.size()); ++col) {
      std::optional<MatmulCall> call = tryCall(space, row, col);
      if (call && (!best || call->m * call->n > best->m * best->n))
        best = call;
    }
  return best;
}

/// The call that computes `value`, without its users.
static std::optional<MatmulCall> describeDot(KernelOp kernel, Value value) {
  std::optional<Body> body = readBody(kernel, value);
  if (!body)
    return std::nullopt;
  Space space = readSpace(*body);
  for (Dims *dims : {&space.batch, &space.m, &space.n, &space.k})
    mergeDims(*dims);
  std::optional<MatmulCall> call = chooseCall(space);
  unsigned lhs = body->lhs.getArgNumber(), rhs = body->rhs.getArgNumber();
  if (!call) {
    // C^T = B^T A^T may be row-major where C is not.
    swapOperands(space);
    std::swap(lhs, rhs);
    call = chooseCall(space);
  }
  auto isEmpty = [](int64_t size) { return size == 0; };
  if (!call || isEmpty(call->m) || isEmpty(call->n) || isEmpty(call->k) || llvm::any_of(call->batch, isEmpty))
    return std::nullopt; // libraries take none of these
  call->lhs = lhs, call->rhs = rhs;
  call->operandType = elementOf(body->lhs);
  call->resultType = elementOf(value);
  call->accumulator = body->accumulator;
  return call;
}

/// The last value that is only the matmul, after layout ops and a convert.
static Value findMatmul(KernelOp kernel) {
  auto dots = kernel.getBlock().getOps<DotOp>();
  if (!llvm::hasSingleElement(dots))
    return {};
  Value value = (*dots.begin()).getResult();
  while (value.hasOneUse()) {
    Operation *user = *value.getUsers().begin();
    bool rounds = isConversion(user) && !elementOf(user->getResult(0)).isF32();
    if (!rounds && !isa<TransposeOp, ReshapeOp>(user))
      break;
    value = user->getResult(0);
  }
  return value;
}

/// A matmul with an epilogue: rows of C without gaps, as long as the row that is added, all of one type.
static std::optional<MatmulCall> describeFinished(KernelOp kernel) {
  Value product = findMatmul(kernel);
  std::optional<MatmulCall> call = product ? describeDot(kernel, product) : std::nullopt;
  constexpr int64_t wholeRows = 8; // required of the stride of aux by the library
  if (!call || call->accumulator || kernel.getTied() || !call->batch.empty() || call->ldc != call->n ||
      call->n % wholeRows)
    return std::nullopt;
  call->epilogue = describeEpilogue(kernel, product);
  if (!call->epilogue)
    return std::nullopt;
  if (std::optional<unsigned> bias = call->epilogue->bias)
    if (getTensorType(kernel.getArgumentTypes()[*bias]).getNumElements() != call->n)
      return std::nullopt;
  call->resultType = elementOf(kernel.getTerminator()->getOperand(call->epilogue->result));
  auto isOther = [&](Type type) { return getTensorType(type).getElementType() != call->operandType; };
  if (llvm::any_of(kernel.getArgumentTypes(), isOther) || llvm::any_of(kernel.getResultTypes(), isOther))
    return std::nullopt;
  return call;
}

std::optional<MatmulCall> describeMatmul(KernelOp kernel) {
  std::optional<MatmulCall> call;
  ValueRange results = kernel.getTerminator()->getOperands();
  bool sums = results.size() == 2 && results[1].getDefiningOp<ReduceOp>();
  if (results.size() == 1 || sums)
    call = describeDot(kernel, results[0]);
  if (sums && call)
    call->epilogue = describeBiasGradient(kernel, *call);
  if (sums)
    return call && call->epilogue ? call : std::nullopt;
  return call ? call : describeFinished(kernel);
}

} // namespace par
