#include "BatchState.h"
#include "par/Dialect/Calls.h"
#include "par/Phases/Split/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_DELAYREADSPASS
#include "par/Phases/Split/Passes.h.inc"

namespace {

/// The reads of one step.
class StaleReads {
public:
  StaleReads(StepOp step, ArrayRef<int64_t> behind) : step(step), behind(behind) {
    for (auto [index, stage] : llvm::enumerate(step->getParentOfType<ModuleOp>().getOps<StageOp>()))
      numbers[stage.getSymNameAttr()] = index;
    for (WriteOp write : step.getBlock().getOps<WriteOp>())
      written.insert(write.getVariableAttr().getAttr());
  }

  LogicalResult run() {
    if (failed(refuseWaits()))
      return failure();
    for (ReadOp read : llvm::to_vector(step.getBlock().getOps<ReadOp>()))
      if (written.contains(read.getVariableAttr().getAttr()) && failed(delay(read)))
        return failure();
    moveStatistics(step);
    return success();
  }

private:
  static bool isInLoop(OpOperand &use) { return isa<LoopOp>(use.getOwner()->getParentOp()); }
  static Attribute stageOf(Value value) { return cast<DistType>(value.getType()).getStage().getAttr(); }

  /// The write of the same variable on the same stage; null if there is none.
  WriteOp findWrite(ReadOp read) {
    for (WriteOp write : step.getBlock().getOps<WriteOp>())
      if (write.getVariableAttr() == read.getVariableAttr() && stageOf(write.getOperand()) == stageOf(read))
        return write;
    return {};
  }

  /// The loop computes with stale parameters; the update starts from the newest. Counters of random draws and moving
  /// statistics are those of the batch itself.
  LogicalResult delay(ReadOp read) {
    if (llvm::none_of(read->getUses(), isInLoop))
      return success();
    WriteOp write = findWrite(read);
    VariableOp variable = step->getParentOfType<ModuleOp>().lookupSymbol<VariableOp>(read.getVariable());
    if (variable.getKind() == VariableKind::counter && write && countAtBegin(read, write))
      return success();
    if (variable.getKind() == VariableKind::buffer && write && movesInForward(read, write))
      return success();
    if (variable.getKind() != VariableKind::parameter && variable.getKind() != VariableKind::copy)
      return read.emitError()
             << "computes microbatches with \"" << variable.getSymName()
             << "\", which each batch changes: batches of an asynchronous schedule overlap, so besides parameters "
                "they may change only counters and statistics that only forward updates; say pipeline.schedule: 1f1b";
    int64_t updates = behind[numbers.lookup(stageOf(read))];
    if (updates == 0)
      return success();
    OpBuilder builder(read);
    builder.setInsertionPointAfter(read);
    auto late = ReadOp::create(builder, read.getLoc(), read.getType(), read.getVariable(), updates, read.getBatch());
    read.getResult().replaceUsesWithIf(late.getResult(), isInLoop);
    return success();
  }

  /// Name of the variable or gradient that a transfer carries, as the begin of an error; may be empty.
  static std::string nameOf(TransferOp transfer) {
    StringRef name;
    if (auto read = transfer.getOperand().getDefiningOp<ReadOp>())
      name = read.getVariable();
    else if (auto loop = transfer.getOperand().getDefiningOp<LoopOp>(); loop && loop.getLabels())
      name = cast<StringAttr>((*loop.getLabels())[cast<OpResult>(transfer.getOperand()).getResultNumber()]).getValue();
    return name.empty() ? "" : ("\"" + name + "\" ").str();
  }

  /// Whether the transfer carries a buffer's new value from forward: `delay` has checked that already.
  bool isOfBuffer(TransferOp transfer) {
    return llvm::any_of(transfer->getUsers(), [&](Operation *user) {
      auto write = dyn_cast<WriteOp>(user);
      auto module = step->getParentOfType<ModuleOp>();
      return write && module.lookupSymbol<VariableOp>(write.getVariable()).getKind() == VariableKind::buffer;
    });
  }

  /// Refuses values for which stages would have to wait: numbers combined over all stages and, unless all stages have
  /// the same staleness, parameters of several stages.
  LogicalResult refuseWaits() {
    bool alike = llvm::all_equal(behind);
    WalkResult waits = step.walk([&](Operation *op) -> WalkResult {
      auto transfer = dyn_cast<TransferOp>(op);
      if (transfer && !isa<LoopOp>(op->getParentOp()) && !alike && !isOfBuffer(transfer))
        return op->emitError()
               << nameOf(transfer)
               << "crosses stages between two batches: a parameter of several stages "
                  "(tied weights) must have the same staleness on each; say pipeline.vertical_sync: true, or "
                  "schedule: pipedream-2bw";
      if (isa<StageAllReduceOp>(op))
        return op->emitError() << "combines numbers of all stages, which an asynchronous schedule does not wait for";
      return success();
    });
    return failure(waits.wasInterrupted());
  }

  StepOp step;
  ArrayRef<int64_t> behind;
  llvm::DenseMap<Attribute, unsigned> numbers;
  llvm::DenseSet<Attribute> written;
};

struct DelayReadsPass : impl::DelayReadsPassBase<DelayReadsPass> {
  using DelayReadsPassBase::DelayReadsPassBase;

  void runOnOperation() override {
    auto stages = getOperation().getOps<StageOp>();
    size_t count = std::distance(stages.begin(), stages.end());
    if (behind.size() != count || calls < 1) {
      getOperation().emitError() << "behind has " << behind.size() << " numbers for " << count
                                 << " stages, and calls is " << calls.getValue();
      return signalPassFailure();
    }
    for (StepOp step : getOperation().getOps<StepOp>()) {
      if (step.getBlock().getOps<WriteOp>().empty())
        continue;
      step->setAttr(callsAttr, IntegerAttr::get(IntegerType::get(&getContext(), 64), calls));
      if (failed(StaleReads(step, SmallVector<int64_t>(behind.begin(), behind.end())).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace par
