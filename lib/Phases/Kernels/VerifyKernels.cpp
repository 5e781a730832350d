#include "Groups.h"
#include "par/Phases/Kernels/Builtin.h"
#include "par/Phases/Kernels/Fill.h"
#include "par/Phases/Kernels/Matmul.h"
#include "par/Phases/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYKERNELSPASS
#include "par/Phases/Kernels/Passes.h.inc"

static LogicalResult verifyTied(KernelOp kernel) {
  if (!kernel.getTied())
    return success();
  ArrayRef<int64_t> tied = *kernel.getTied();
  if (tied.size() != kernel.getResultTypes().size())
    return kernel.emitError() << "ties " << tied.size() << " results, it has " << kernel.getResultTypes().size();
  llvm::SmallDenseSet<int64_t> taken;
  for (auto [index, argument] : llvm::enumerate(tied)) {
    if (argument < -1 || argument >= int64_t(kernel.getArgumentTypes().size()))
      return kernel.emitError() << "ties result " << index << " to argument " << argument << ", it has "
                                << kernel.getArgumentTypes().size();
    if (argument < 0)
      continue;
    if (kernel.getArgumentTypes()[argument] != kernel.getResultTypes()[index] && kernel.getImplementation() != "fill")
      return kernel.emitError() << "ties result " << index << " of type " << kernel.getResultTypes()[index]
                                << " to argument " << argument << " of type " << kernel.getArgumentTypes()[argument];
    if (!taken.insert(argument).second)
      return kernel.emitError() << "ties argument " << argument << " twice";
  }
  return success();
}

static LogicalResult verifyImplementation(KernelOp kernel) {
  StringRef implementation = kernel.getImplementation();
  if (implementation == "generated")
    return success();
  if (implementation == "fill") {
    if (!fillsUp(kernel))
      return kernel.emitError() << "is to fill up a buffer in place, which its body does not";
    return success();
  }
  if (implementation == "library:matmul") {
    if (!describeMatmul(kernel))
      return kernel.emitError() << "is to be a library matmul, but no call computes its body";
    return success();
  }
  if (!implementation.consume_front("builtin:"))
    return kernel.emitError() << "has the unknown implementation \"" << implementation << "\"";
  std::optional<BuiltinCall> call = describeBuiltin(kernel);
  if (!call || StringRef(call->kernel->name) != implementation)
    return kernel.emitError() << "is to be the builtin \"" << implementation << "\", which does not compute its body";
  return success();
}

static LogicalResult verifyBlock(BlockOp block) {
  for (Operation &op : block.getBody().front())
    if (isKernelOp(&op) || isa<ExecOp>(op))
      return op.emitError() << "is left in block @" << block.getSymName() << " after Kernels";
  return success();
}

namespace {
struct VerifyKernelsPass : impl::VerifyKernelsPassBase<VerifyKernelsPass> {
  LogicalResult verify(Operation &op) {
    if (isa<FragmentOp>(op))
      return op.emitError() << "is left after Kernels";
    if (auto kernel = dyn_cast<KernelOp>(op))
      return success(succeeded(verifyTied(kernel)) && succeeded(verifyImplementation(kernel)));
    if (auto program = dyn_cast<ProgramOp>(op))
      for (BlockOp block : program.getOps<BlockOp>())
        if (failed(verifyBlock(block)))
          return failure();
    return success();
  }

  void runOnOperation() override {
    for (Operation &op : *getOperation().getBody())
      if (failed(verify(op)))
        return signalPassFailure();
  }
};
} // namespace

} // namespace par
