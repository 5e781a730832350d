#include "par/Dialect/Attention.h"
#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Phases/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_EXPANDMATMULSPASS
#include "par/Phases/Kernels/Passes.h.inc"

/// Whether the composite has no single library call, and its decomposition has matmuls, which a generated kernel would
/// compute element by element.
static bool expands(DecomposableOpInterface composite, bool gpu) {
  if (auto attention = dyn_cast<AttentionOp>(composite.getOperation()))
    return !isOneCall(attention, gpu);
  if (isa<MuonOp>(composite.getOperation()))
    return true;
  auto grad = dyn_cast<AttentionGradOp>(composite.getOperation());
  return grad && !isOneCall(grad, gpu);
}

static void expand(DecomposableOpInterface composite) {
  OpBuilder builder(composite);
  composite->replaceAllUsesWith(composite.decompose(builder));
  composite->erase();
}

namespace {
struct ExpandMatmulsPass : impl::ExpandMatmulsPassBase<ExpandMatmulsPass> {
  using ExpandMatmulsPassBase::ExpandMatmulsPassBase;

  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>())
        for (auto op : llvm::make_early_inc_range(block.getBody().front().getOps<DecomposableOpInterface>()))
          if (expands(op, device == "cuda"))
            expand(op);
  }
};
} // namespace

} // namespace par
