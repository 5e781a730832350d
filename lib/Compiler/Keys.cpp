#include "Keys.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace par {

/// Sections of a plan that no phase reads but through the options of its pipeline.
static constexpr StringRef readByPipelines[] = {"zero", "offload", "recompute", "collectives"};

/// The sections of a plan's text but `without`. A section is a line that is not indented, with the indented lines after
/// it.
static std::string sectionsOf(StringRef text, ArrayRef<StringRef> without) {
  std::string kept;
  bool keeps = true;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    if (!line.empty() && line.front() != ' ')
      keeps = !llvm::is_contained(without, line.take_until([](char c) { return c == ':'; }));
    if (keeps)
      kept += line.str() + "\n";
  }
  return kept;
}

static std::string readByModules(const Plan &plan) {
  return sectionsOf(plan.toText(/*origins=*/true), readByPipelines); // errors and locations say where a value was said
}

std::string keyOfTrialImport(const PlannedModel &planned) {
  static constexpr StringRef later[] = {"ranks", "mesh",    "mesh_order", "batch",       "pipeline", "shard",
                                        "zero",  "offload", "recompute",  "collectives", "precision"};
  const Plan &plan = planned.plan.plan;
  std::string key = sectionsOf(plan.toText(/*origins=*/false), later);
  return key + "batch " + std::to_string(**plan.batch.size) + " dim " + *plan.batch.dim + " rounds " +
         std::to_string(plan.rounds()) + " groups " + std::to_string(planned.importing.batchNormGroups);
}

/// The part of the plan that the cut reads: all of it where Par chooses it by the prices of the whole step.
static std::string readByCuts(const Plan &plan) {
  bool chooses = *plan.pipeline.stages > 1 && *plan.pipeline.cuts == PlanPipeline::AutoCuts;
  return chooses ? plan.toText(/*origins=*/true) : "";
}

std::string keyOf(const Phase &phase) {
  OpPassManager manager(ModuleOp::getOperationName());
  phase.build(manager);
  std::string text;
  llvm::raw_string_ostream os(text);
  manager.printAsTextualPipeline(os);
  return text;
}

std::vector<PhaseKey> keysOf(const PlannedModel &planned, ArrayRef<Phase> phases) {
  const Plan &plan = planned.plan.plan;
  std::vector<PhaseKey> keys{{"import", readByModules(plan)}};
  for (const Phase &phase : phases)
    keys.push_back({phase.name.str(), phase.name == "annotate" ? readByCuts(plan) : keyOf(phase)});
  return keys;
}

} // namespace par
