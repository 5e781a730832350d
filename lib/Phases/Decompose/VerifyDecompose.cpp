#include "par/Dialect/Par.h"
#include "par/Phases/Decompose/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYDECOMPOSEPASS
#include "par/Phases/Decompose/Passes.h.inc"

static bool isOuter(ArrayRef<int64_t> dims) {
  return llvm::all_of(dims, [](int64_t dim) { return dim == 0; });
}

/// Whether a collective with dims works only along dim 0; true for one without dims.
static bool isFlat(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<AllGatherOp, ReduceScatterOp>([](auto collective) { return isOuter(collective.getDims()); })
      .Case([](AllToAllOp exchange) { return isOuter(exchange.getSplitDims()) && isOuter(exchange.getConcatDims()); })
      .Default(true);
}

namespace {
struct VerifyDecomposePass : impl::VerifyDecomposePassBase<VerifyDecomposePass> {
  void runOnOperation() override {
    for (FragmentOp fragment : getOperation().getOps<FragmentOp>())
      for (Operation &op : fragment.getBlock())
        if (!isFlat(&op)) {
          op.emitError() << "works along another dim than 0 in fragment @" << fragment.getSymName()
                         << " after Decompose";
          return signalPassFailure();
        }
  }
};
} // namespace

} // namespace par
