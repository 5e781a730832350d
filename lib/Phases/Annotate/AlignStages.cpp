// Entries share their weights, so a node is on one stage in all of them.
#include "StagePlacement.h"

#include "par/Base/Provenance.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ALIGNSTAGESPASS
#include "par/Phases/Annotate/Passes.h.inc"

namespace {

/// The last stage of each node of a step, by its path.
llvm::StringMap<int64_t> stagesOfNodes(StepOp step) {
  llvm::StringMap<int64_t> nodes;
  step.walk([&](Operation *op) {
    std::optional<Provenance> from = getProvenance(op->getLoc());
    if (std::optional<int64_t> stage = getStage(op); stage && from) {
      int64_t &last = nodes[from->path];
      last = std::max(last, *stage);
    }
  });
  return nodes;
}

bool isCut(StepOp step) {
  return step.walk([](Operation *op) { return getStage(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

struct AlignStagesPass : impl::AlignStagesPassBase<AlignStagesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<StepOp> steps(module.getOps<StepOp>());
    if (steps.empty())
      return;
    llvm::StringMap<int64_t> nodes = stagesOfNodes(steps.front());
    auto numStages = static_cast<int64_t>(llvm::range_size(module.getOps<StageOp>()));
    for (StepOp step : llvm::drop_begin(steps)) {
      if (isCut(step))
        continue;
      StagePlacement placement(step, module);
      for (Operation *op : placement.ops())
        if (std::optional<Provenance> from = getProvenance(op->getLoc()))
          if (auto found = nodes.find(from->path); found != nodes.end())
            placement.hint(op, found->second);
      placement.assign(numStages);
    }
  }
};

} // namespace

} // namespace par
