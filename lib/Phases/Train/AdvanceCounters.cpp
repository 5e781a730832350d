#include "par/Dialect/Term.h"
#include "par/Phases/Train/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ADVANCECOUNTERSPASS
#include "par/Phases/Train/Passes.h.inc"

/// The step's first read of every counter that it does not write; further reads become that one.
static SmallVector<ReadOp> findReads(ModuleOp module, StepOp step) {
  llvm::StringSet<> written;
  for (auto write : step.getBlock().getOps<WriteOp>())
    written.insert(write.getVariable());
  llvm::MapVector<StringAttr, ReadOp> reads;
  for (auto read : llvm::make_early_inc_range(step.getBlock().getOps<ReadOp>())) {
    auto variable = module.lookupSymbol<VariableOp>(read.getVariable());
    if (!variable || variable.getKind() != VariableKind::counter || written.contains(read.getVariable()))
      continue;
    ReadOp &first = reads[variable.getSymNameAttr()];
    if (first) {
      read.replaceAllUsesWith(first.getResult());
      read.erase();
    } else {
      first = read;
    }
  }
  return llvm::map_to_vector(reads, [](auto &entry) { return entry.second; });
}

/// Every use sees the number of this step, from 1, which is written back.
static void advance(ReadOp read) {
  OpBuilder builder(read->getContext());
  builder.setInsertionPointAfter(read);
  Term before(builder, read.getLoc(), read);
  Term count = before + 1.0;
  read.getResult().replaceAllUsesExcept(count, Value(count).getDefiningOp());
  builder.setInsertionPoint(read->getBlock()->getTerminator());
  WriteOp::create(builder, read.getLoc(), count, read.getVariable());
}

namespace {
struct AdvanceCountersPass : impl::AdvanceCountersPassBase<AdvanceCountersPass> {
  void runOnOperation() override {
    for (auto step : getOperation().getOps<StepOp>())
      for (ReadOp read : findReads(getOperation(), step)) {
        if (step.getSymName() == "train") {
          advance(read);
          continue;
        }
        OpBuilder builder(read);
        Value zero = buildSplat(builder, read.getLoc(), cast<RankedTensorType>(read.getResult().getType()), 0);
        read.replaceAllUsesWith(zero);
        read.erase();
      }
  }
};
} // namespace

} // namespace par
