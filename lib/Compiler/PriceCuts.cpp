#include "PriceCuts.h"
#include "KernelPrices.h"

#include "par/Compiler/Phases.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace par {

/// The plan of a step whose ops are all on one stage, with nothing computed twice.
static ModelPlan withoutPipeline(const ModelPlan &model) {
  ModelPlan plain = model;
  plain.plan.pipeline.stages.value = 1;
  plain.plan.pipeline.schedule.value = "1f1b";
  plain.plan.recompute.kind.value = PlanRecompute::None;
  plain.plan.offload = {};
  return plain;
}

/// Runs the phases between Annotate and Kernels, and Kernels as far as its groups.
static LogicalResult lower(ModuleOp module, const ModelPlan &plain, std::optional<uint64_t> memory) {
  RecomputeOutcomes none;
  for (const Phase &phase : buildPhases(plain, memory, none)) {
    if (phase.name == "annotate")
      continue;
    PassManager manager(module.getContext());
    manager.enableVerifier(false);
    if (phase.name == "kernels")
      buildGroupingPipeline(manager, *plain.plan.target.device);
    else
      phase.build(manager);
    if (failed(manager.run(module)))
      return failure();
    if (phase.name == "kernels")
      return success();
  }
  return success();
}

static BlockKind kindOf(BlockOp block, StringRef entry) {
  StringRef part = block.getSymName();
  part.consume_front(entry);
  part.consume_front(".");
  return part.starts_with("update")                                   ? BlockKind::Update
         : part.starts_with("backward") || part.starts_with("weight") ? BlockKind::Backward
                                                                      : BlockKind::Forward;
}

/// Adds up the entry that has most to do: of a plan that trains, the training step.
static CutPrices priceProgram(ProgramOp program, KernelPrices &prices, int64_t microbatches) {
  EntryOp chosen;
  for (auto entry : program.getOps<EntryOp>())
    if (!chosen || entry.getBlocks().size() > chosen.getBlocks().size())
      chosen = entry;
  llvm::MapVector<StringAttr, int64_t> runs;
  for (auto block : chosen.getBlocks().getAsRange<FlatSymbolRefAttr>())
    ++runs[block.getAttr()];
  for (auto block : program.getOps<BlockOp>())
    if (auto found = runs.find(block.getSymNameAttr()); found != runs.end())
      prices.add(block, kindOf(block, chosen.getSymName()), found->second, microbatches);
  return prices.take(microbatches);
}

CutPricer makeCutPricer(const ModelPlan &model, std::optional<uint64_t> memory) {
  return [&model, memory](ModuleOp module, const CutGroups &groups) -> FailureOr<CutPrices> {
    llvm::Expected<CostTable> costs = CostTable::find(*model.plan.target.hardware);
    std::string reason = costs ? "" : llvm::toString(costs.takeError());
    ModelPlan plain = withoutPipeline(model);
    bool lowered = false;
    if (costs) {
      ScopedDiagnosticHandler keepFirst(module.getContext(), [&](Diagnostic &diagnostic) {
        if (reason.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
          reason = diagnostic.str();
        return success();
      });
      lowered = succeeded(lower(module, plain, memory));
    }
    auto programs = module.getOps<ProgramOp>();
    if (!lowered || programs.empty()) {
      mlir::emitWarning(module.getLoc()) << "cuts are chosen from the costs of single ops, since the step on one stage "
                                            "does not compile: "
                                         << reason;
      return failure();
    }
    KernelPrices prices(groups, *costs, *plain.plan.target.device);
    return priceProgram(*programs.begin(), prices, plain.plan.rounds());
  };
}

} // namespace par
