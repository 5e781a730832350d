#include "par/Dialect/Beside.h"
#include "par/Dialect/Space.h"
#include "par/Phases/Memory/Arena.h"
#include "par/Phases/Memory/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYMEMORYPASS
#include "par/Phases/Memory/Passes.h.inc"

namespace {
struct VerifyMemoryPass : impl::VerifyMemoryPassBase<VerifyMemoryPass> {
  /// The last writer, up to the op that is looked at; also without a block, of all.
  llvm::DenseMap<std::pair<Block *, StringAttr>, Operation *> writers;

  /// A result tied to an operand shares its buffer: the code writes there.
  LogicalResult verifyTied(Operation *op, const SymbolTable &names, const SymbolTable &kernels) {
    for (auto [result, operand] : llvm::zip(op->getResults(), getTiedOperands(op, kernels))) {
      BufferOp to = getBuffer(result, names), from = operand >= 0 ? getBuffer(op->getOperand(operand), names) : to;
      if (to != from)
        return op->emitError() << "puts result " << result.getResultNumber() << ", which is tied to operand " << operand
                               << ", into " << to.getSymNameAttr() << "; the operand lies in " << from.getSymNameAttr();
    }
    return success();
  }

  /// Kernels, calls and communication work on the device's memory.
  LogicalResult verifySpace(Operation *op, const SymbolTable &names) {
    if (isa<StoreOp>(op))
      return success();
    SmallVector<Value> values(op->getOperands());
    llvm::append_range(values, op->getResults());
    for (Value value : values)
      if (BufferOp buffer = getBuffer(value, names); buffer && isOnHost(buffer)) {
        InFlightDiagnostic error = op->emitError();
        error << "accesses " << buffer.getSymNameAttr() << ", a buffer in host memory; only copies may access it";
        return error.attachNote(buffer.getLoc()) << "the buffer is here";
      }
    return success();
  }

  /// A collective with a queue was the last to write the operand of a `done`: Bundle finds its event by the buffer.
  LogicalResult verifyDone(DoneOp done, const SymbolTable &names) {
    for (Value value : done.getValues()) {
      BufferOp buffer = getBuffer(value, names);
      Operation *writer = writers.lookup({done->getBlock(), buffer.getSymNameAttr()});
      if (!writer) // -par-defer-dones
        writer = writers.lookup({nullptr, buffer.getSymNameAttr()});
      if (!writer || getQueue(writer).empty())
        return done.emitError() << "waits for " << buffer.getSymNameAttr()
                                << ", which no collective with a queue has written last";
    }
    return success();
  }

  LogicalResult verifyProgram(ProgramOp program, const SymbolTable &kernels) {
    SymbolTable names(program);
    writers.clear();
    for (BufferOp buffer : program.getOps<BufferOp>())
      if (!buffer.getAt())
        return buffer.emitError() << "has no offsets after Memory";
      else if (isOnHost(buffer) && buffer.getKind() != BufferKind::state && buffer.getKind() != BufferKind::temp)
        return buffer.emitError() << "is written by the runtime and lies in the host's memory, which is not supported";
    WalkResult result = program.walk([&](Operation *op) -> WalkResult {
      if (isa<LoadOp, BlockOp>(op))
        return WalkResult::advance();
      if (auto store = dyn_cast<StoreOp>(op))
        for (Block *block : {op->getBlock(), static_cast<Block *>(nullptr)})
          writers[{block, store.getBufferAttr().getAttr()}] = store.getOperand().getDefiningOp();
      for (Value value : op->getResults())
        if (!value.hasOneUse() || !isa<StoreOp>(*value.getUsers().begin()))
          return op->emitError() << "gives a value that is not stored at once after Memory";
      auto done = dyn_cast<DoneOp>(op);
      if (failed(verifySpace(op, names)) || (done && failed(verifyDone(done, names))))
        return WalkResult::interrupt();
      return verifyTied(op, names, kernels);
    });
    return failure(result.wasInterrupted());
  }

  void runOnOperation() override {
    SymbolTable kernels(getOperation());
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      if (failed(verifyProgram(program, kernels)))
        return signalPassFailure();
  }
};
} // namespace

} // namespace par
