#include "par/Dialect/Par.h"
#include "par/Phases/Kernels/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_INLINEFRAGMENTSPASS
#include "par/Phases/Kernels/Passes.h.inc"

static LogicalResult inlineExec(ExecOp exec, SymbolTable &symbols) {
  auto fragment = symbols.lookup<FragmentOp>(exec.getFragment());
  if (!fragment || !fragment.getLocal())
    return exec.emitError() << "runs @" << exec.getFragment() << ", which is no local fragment";
  if (fragment.getArgumentTypes() != ArrayRef<Type>(SmallVector<Type>(exec.getOperandTypes())) ||
      fragment.getResultTypes() != ArrayRef<Type>(SmallVector<Type>(exec.getResultTypes()))) {
    InFlightDiagnostic error = exec.emitError() << "does not have its fragment's type";
    error.attachNote(fragment.getLoc()) << "the fragment has type " << fragment.getFunctionType();
    return error;
  }
  OpBuilder builder(exec);
  IRMapping mapping;
  mapping.map(fragment.getBody().getArguments(), exec.getOperands());
  for (Operation &op : fragment.getBlock().without_terminator())
    builder.clone(op, mapping);
  for (auto [result, value] : llvm::zip(exec.getResults(), fragment.getTerminator()->getOperands()))
    result.replaceAllUsesWith(mapping.lookupOrDefault(value));
  exec.erase();
  return success();
}

/// A transpose that moves only dims of size 1 is a reshape.
static void reshapeUnitTransposes(BlockOp block) {
  for (auto transpose : llvm::make_early_inc_range(block.getOps<TransposeOp>())) {
    ArrayRef<int64_t> shape = getTensorType(transpose.getOperand().getType()).getShape();
    SmallVector<int64_t> moved =
        llvm::filter_to_vector(transpose.getPermutation(), [&](int64_t dim) { return shape[dim] != 1; });
    if (!llvm::is_sorted(moved))
      continue;
    OpBuilder builder(transpose);
    transpose.replaceAllUsesWith(
        buildReshape(builder, transpose.getLoc(), transpose.getOperand(), transpose.getType().getShape()));
    transpose.erase();
  }
}

/// Lets every op fold itself away, merges equal ones and drops the unused.
static void simplify(BlockOp block) {
  OpBuilder builder(block);
  for (Operation &op : llvm::make_early_inc_range(block.getBody().front())) {
    if (op.getNumResults() == 0 || op.hasTrait<OpTrait::ConstantLike>())
      continue;
    builder.setInsertionPoint(&op);
    SmallVector<Value> values;
    if (succeeded(builder.tryFold(&op, values)) && values.size() == op.getNumResults()) {
      op.replaceAllUsesWith(values);
      op.erase();
    }
  }
  IRRewriter rewriter(block.getContext());
  DominanceInfo dominance;
  eliminateCommonSubExpressions(rewriter, dominance, block);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

namespace {
struct InlineFragmentsPass : impl::InlineFragmentsPassBase<InlineFragmentsPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>()) {
        for (ExecOp exec : llvm::make_early_inc_range(block.getOps<ExecOp>()))
          if (failed(inlineExec(exec, symbols)))
            return signalPassFailure();
        reshapeUnitTransposes(block);
        simplify(block);
      }
    // Whoever still runs one (a step) keeps it.
    llvm::DenseSet<Attribute> used;
    getOperation().walk([&](RunOp run) { used.insert(run.getFragmentAttr().getAttr()); });
    for (FragmentOp fragment : llvm::make_early_inc_range(getOperation().getOps<FragmentOp>()))
      if (!used.contains(fragment.getSymNameAttr()))
        fragment.erase();
  }
};
} // namespace

} // namespace par
