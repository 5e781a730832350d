#include "par/Memory/Arena.h"
#include "par/Memory/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYMEMORYPASS
#include "par/Memory/Passes.h.inc"

namespace {
struct VerifyMemoryPass : impl::VerifyMemoryPassBase<VerifyMemoryPass> {
  LogicalResult verifyProgram(ProgramOp program) {
    for (BufferOp buffer : program.getOps<BufferOp>())
      if (!buffer.getAt())
        return buffer.emitError() << "has no offsets after Memory";
    WalkResult result = program.walk([](Operation *op) -> WalkResult {
      if (isa<LoadOp, BlockOp>(op))
        return WalkResult::advance();
      for (Value value : op->getResults())
        if (!value.hasOneUse() || !isa<StoreOp>(*value.getUsers().begin()))
          return op->emitError() << "gives a value that is not stored at once after Memory";
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      if (failed(verifyProgram(program)))
        return signalPassFailure();
  }
};
} // namespace

void buildMemoryPipeline(OpPassManager &manager, const MemoryOptions &options) {
  manager.addPass(createAssignBuffersPass());
  PackMemoryPassOptions pack;
  pack.limit = options.limit;
  manager.addPass(createPackMemoryPass(pack));
  manager.addPass(createVerifyMemoryPass());
}

} // namespace par
