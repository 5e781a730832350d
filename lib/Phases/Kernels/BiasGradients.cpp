#include "Epilogues.h"
#include "Groups.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace par {

/// One dim that runs over all of these in row-major order of `dims`: its size and its stride; none if no
/// stride says that.
static std::optional<std::pair<int64_t, int64_t>> joinDims(const StridedView &view, ArrayRef<int64_t> dims) {
  int64_t size = 1, stride = 1;
  for (int64_t dim : llvm::reverse(dims)) {
    if (view.sizes[dim] == 1)
      continue;
    if (size == 1)
      stride = view.strides[dim];
    else if (view.strides[dim] != size * stride)
      return std::nullopt;
    size *= view.sizes[dim];
  }
  return std::pair(size, stride);
}

/// cublasLt.h of CUDA 13.0 on sums besides C^T = op(B)^T op(A)^T, whose first operand is our B:
/// CUBLASLT_EPILOGUE_BGRADA: "Bias gradient based on the input matrix A. The bias size corresponds to the number of
/// rows of the matrix D. The reduction happens over the GEMM's "k" dimension."; BGRADB likewise with B and columns; and
/// CUBLASLT_MATMUL_DESC_BIAS_POINTER: "Bias gradient vector elements are the same type as the output elements (Ctype)".
/// The vector is f32 if C is, even with bf16 operands, and unsupported if C is 16 bit. No beta applies to it. The
/// operand is the one in which the vector's elements are contiguous (the library's first not transposed, its second
/// transposed).
std::optional<MatmulEpilogue> describeBiasGradient(KernelOp kernel, const MatmulCall &call) {
  constexpr int64_t wholeRows = 8; // as other epilogues
  auto reduce = kernel.getTerminator()->getOperand(1).getDefiningOp<ReduceOp>();
  if (!reduce || reduce.getKind() != ReduceKind::sum || !call.batch.empty() || !call.resultType.isF32() || call.k == 1)
    return std::nullopt;
  BlockArgument argument;
  std::optional<StridedView> view = traceArgument(reduce.getOperand(), argument);
  if (!view || call.lhs == call.rhs)
    return std::nullopt;
  SmallVector<int64_t> kept, dims = llvm::to_vector(reduce.getDims());
  for (int64_t dim = 0, rank = view->sizes.size(); dim < rank; ++dim)
    if (!llvm::is_contained(dims, dim))
      kept.push_back(dim);
  llvm::sort(dims, [&](int64_t x, int64_t y) { return view->strides[x] > view->strides[y]; });
  auto inner = joinDims(*view, kept), outer = joinDims(*view, dims);
  bool ofB = argument.getArgNumber() == call.rhs, ofA = argument.getArgNumber() == call.lhs;
  int64_t length = ofB ? call.n : call.m, leading = ofB ? call.ldb : call.lda;
  if (!inner || !outer || *inner != std::pair<int64_t, int64_t>(length, 1) || length % wholeRows ||
      *outer != std::pair(call.k, leading) || !(ofB ? !call.transB : ofA && call.transA))
    return std::nullopt;
  MatmulEpilogue epilogue;
  epilogue.name = ofB ? "sum_b" : "sum_a";
  epilogue.auxResult = 1;
  return epilogue;
}

/// The group of a matmul that also sums one of its operands; null if no library call does that.
static std::unique_ptr<Group> withSum(const Group &product, ReduceOp reduce, IsTaken isTaken) {
  // Users of the sum come after the matmul, so the matmul does not depend on them.
  bool late = llvm::all_of(reduce->getUsers(), [&](Operation *user) { return product.anchor->isBeforeInBlock(user); });
  if (!late || product.results.size() != 1)
    return nullptr;
  auto group = std::make_unique<Group>(product);
  for (Operation *op = reduce.getOperand().getDefiningOp();
       op && !llvm::is_contained(group->arguments, op->getResult(0)) && !isTaken(op) && op->getNumOperands() == 1;
       op = op->getOperand(0).getDefiningOp())
    group->clones.insert(op);
  group->ops.push_back(reduce);
  group->results.push_back(reduce);
  group->close(isTaken);
  OpBuilder builder(reduce);
  OwningOpRef<KernelOp> kernel(buildKernel(builder, *group));
  std::optional<MatmulCall> call = describeMatmul(*kernel);
  return call && call->epilogue ? std::move(group) : nullptr;
}

void fuseBiasGradients(BlockOp block, llvm::DenseMap<Operation *, Group *> &groupOf,
                       std::vector<std::unique_ptr<Group>> &groups) {
  auto isTaken = [&](Operation *op) { return groupOf.contains(op); };
  llvm::DenseMap<Value, SmallVector<ReduceOp>> sums; // by the summed value, before reshapes and converts
  for (auto reduce : block.getOps<ReduceOp>()) {
    if (isTaken(reduce))
      continue;
    Value value = reduce.getOperand();
    sums[value].push_back(reduce);
    while (Operation *op = value.getDefiningOp()) {
      if (isTaken(op) || !isFree(op) || !isa<ConvertOp, ReshapeOp>(op))
        break;
      value = op->getOperand(0);
      sums[value].push_back(reduce);
    }
  }
  for (auto &group : groups) {
    if (group->implementation != "library:matmul")
      continue;
    for (Value argument : SmallVector<Value>(group->arguments))
      for (ReduceOp reduce : sums.lookup(argument))
        if (!isTaken(reduce))
          if (auto summing = withSum(*group, reduce, isTaken)) {
            *group = std::move(*summing);
            groupOf[reduce] = group.get();
          }
  }
}

} // namespace par
