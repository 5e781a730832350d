// The summary's lines about model, plan, stages, prediction and proof; lists are truncated after three names.
#include "par/Report/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace par {

/// `a.weight, b.weight and 3 more`
static std::string someOf(ArrayRef<std::string> names, StringRef between = ", ") {
  std::string text = llvm::join(names.take_front(3), between);
  return names.size() <= 3 ? text : text + " and " + std::to_string(names.size() - 3) + " more";
}

void printModel(const ModelFacts &model, bool trains, llvm::raw_ostream &os) {
  double millions = double(model.elements) / 1e6;
  os << "model   " << model.name << ": " << model.nodes << " nodes, " << model.parameters << " parameters (";
  if (millions < 1000)
    os << llvm::format(millions < 10 ? "%.2f M" : "%.1f M", millions);
  else
    os << llvm::format("%.2f B", millions / 1000);
  if (trains && model.frozen == 0)
    os << ", all trained";
  else if (trains)
    os << ", " << model.frozen << " of them frozen";
  os << ")";
  if (!model.ties.empty())
    os << ", tied: " << llvm::join(model.ties, ", ");
  if (model.unnamed)
    os << ", " << model.unnamed << " under names of the exporter (--list=params)";
  os << "\n";
}

void printModule(const ModuleFacts &module, llvm::raw_ostream &os) {
  std::vector<std::string> parts = module.notes;
  if (!module.unfrozen.empty())
    parts.insert(parts.begin(), someOf(module.unfrozen) + " frozen, which train.only trains");
  if (!module.frozen.empty())
    parts.insert(parts.begin(), someOf(module.frozen) + " frozen");
  if (!parts.empty())
    os << "module  in PyTorch: " << llvm::join(parts, "; ") << "\n";
}

/// `: pp 2 x dp 2`; with a mesh a stage `: pp 2 + one rank`
static void printMeshes(const PlanFacts &plan, llvm::raw_ostream &os) {
  for (auto [index, mesh] : llvm::enumerate(plan.meshes)) {
    StringRef before = index ? " + " : ": ";
    for (auto [place, axis] : llvm::enumerate(mesh))
      os << (place ? " x " : before) << axis.first << " " << axis.second;
    if (mesh.empty() && plan.meshEachStage)
      os << before << "one rank";
  }
}

static void printPrecision(const PlanFacts &plan, llvm::raw_ostream &os) {
  os << "; " << (plan.trains ? llvm::join(plan.optimizers, " + ") : std::string("inference")) << " " << plan.compute;
  if (!plan.masterTypes.empty())
    os << ", masters f32 of weights in " << llvm::join(plan.masterTypes, " and ");
  if (plan.trains && plan.states != "f32")
    os << ", states " << plan.states;
  if (plan.trains && plan.accumulate != "f32")
    os << ", gradients accumulated in " << plan.accumulate;
  if (plan.trains && plan.reduce != "f32")
    os << ", reduced in " << plan.reduce;
}

void printPlan(const PlanFacts &plan, llvm::raw_ostream &os) {
  os << "plan    " << plan.ranks << (plan.ranks == 1 ? " rank" : " ranks");
  printMeshes(plan, os);
  os << "; " << plan.stages << (plan.stages == 1 ? " stage" : " stages");
  if (plan.stages > 1 && plan.trains)
    os << ", " << plan.schedule;
  if (plan.flushEvery > 1)
    os << ", flushed every " << plan.flushEvery << " batches";
  os << ", " << plan.microbatches << (plan.microbatches == 1 ? " microbatch of " : " microbatches of ")
     << plan.microbatchSize;
  for (const std::string &dim : plan.sampleDims)
    os << " x " << dim;
  if (plan.replicas > 1)
    os << ", dealt round robin to " << plan.replicas << " replicas";
  printPrecision(plan, os);
  if (plan.batchNorm != "microbatch")
    os << "; batch_norm " << plan.batchNorm;
  if (plan.seed != 0)
    os << "; seed " << plan.seed;
  os << "\n";
}

void printRecipes(const RecipeFacts &recipes, llvm::raw_ostream &os) {
  os << "recipe  " << llvm::join(recipes.recipes, ", ") << " cuts " << llvm::format("%.0f", recipes.cutPercent)
     << " % of the parameters; no rule for " << someOf(recipes.whole) << "\n";
}

void printPadding(ArrayRef<PaddedDim> dims, llvm::raw_ostream &os) {
  std::vector<std::string> texts;
  for (const PaddedDim &dim : dims)
    texts.push_back(llvm::formatv("{0}: {1} of dim {2} in {3} shards are kept as {4}, {5} % more", dim.name, dim.size,
                                  dim.dim, dim.shards, dim.kept, (dim.kept - dim.size) * 100 / dim.size));
  if (!texts.empty())
    os << "padding " << someOf(texts, "; ") << "\n";
}

/// "4 parameters: h.0.fc.weight and 3 more"
static std::string describe(const PatternMatch::Kind &kind) {
  size_t count = kind.names.size();
  std::string text = llvm::formatv("{0} {1}{2}: {3}", count, kind.kind, count == 1 ? "" : "s", kind.names.front());
  return count == 1 ? text : text + llvm::formatv(" and {0} more", count - 1).str();
}

void printMatches(ArrayRef<PatternMatch> matches, llvm::raw_ostream &os) {
  for (const PatternMatch &match : matches)
    os << "matches " << match.origin << ": " << match.pattern << ": "
       << (match.kinds.empty() ? "nothing" : llvm::join(llvm::map_range(match.kinds, describe), ", ")) << "\n";
}

void printStages(ArrayRef<StageShare> stages, llvm::raw_ostream &os) {
  if (stages.empty())
    return;
  double all = 0;
  for (const StageShare &stage : stages)
    all += stage.work;
  os << "stages  ";
  for (auto [number, stage] : llvm::enumerate(stages))
    os << (number ? "   " : "") << number << ": " << llvm::join(stage.modules, ", ") << " ("
       << llvm::format("%.0f", all > 0 ? 100 * stage.work / all : 0.0) << " %" << (number ? ")" : " of the work)");
  os << "\n";
}

void printHeads(ArrayRef<UnshardedHeads> heads, llvm::raw_ostream &os) {
  for (const UnshardedHeads &each : heads) {
    os << "heads   " << each.axis << " " << each.degree << " does not divide the " << each.heads << " heads of "
       << each.module << ": attention ";
    if (each.shards == 1)
      os << "runs whole on each of its ranks";
    else
      os << "is sharded over " << each.shards << " and repeated";
    os << ", after gathers; the nearest degree that divides them is " << each.nearest << "\n";
  }
}

std::string formatTime(int64_t ns) {
  double ms = ns * 1e-6;
  if (ms < 1)
    return llvm::formatv("{0} us", (ns + 500) / 1000);
  if (ms < 10'000)
    return llvm::formatv(ms < 10 ? "{0:f1} ms" : "{0:f0} ms", ms);
  return llvm::formatv("{0:f2} s", ms / 1000);
}

void printPrediction(const Prediction &prediction, llvm::raw_ostream &os) {
  auto percent = [](int64_t permille) { return (permille + 5) / 10; };
  os << "predicted step " << formatTime(prediction.stepNs) << ": compute " << percent(prediction.computePermille)
     << " %, bubble " << percent(prediction.bubblePermille) << " %";
  if (const std::optional<ExpectedBubble> &expected = prediction.expected)
    os << llvm::formatv(" ({0}, m = {1}: {2} {3:f1} %)", expected->schedule, expected->microbatches,
                        expected->closedForm ? "closed form" : "its table", expected->percent);
  os << ", exposed communication " << percent(prediction.communicationPermille) << " %";
  if (prediction.cores > 0)
    os << ", waiting for one of " << prediction.cores << " cores " << percent(prediction.corePermille) << " %";
  // Without a measured row all times are the model's, as the hardware file says.
  if (auto [measured, table, peak] = prediction.sourcePermille; measured + table > 0)
    os << "; costs: " << percent(measured) << " % measured, " << percent(table) << " % from rows near, "
       << percent(peak) << " % from peaks";
  os << "\n";
}

void printUtilization(const Utilization &utilization, llvm::raw_ostream &os) {
  auto [unit, scale] = utilization.peakPerSecond >= 1e12 ? std::pair("TFLOP/s", 1e12) : std::pair("GFLOP/s", 1e9);
  os << llvm::formatv("mfu     {0:f2} %: {1:f2} {2} a rank for the model, of {3:f1} that {4} has in {5}\n",
                      utilization.percent(), utilization.perSecond / scale, unit, utilization.peakPerSecond / scale,
                      utilization.hardware, utilization.type);
}

void printProof(const verify::Proof &proof, llvm::raw_ostream &os) {
  os << "proved  " << proof.programs << (proof.programs == 1 ? " program on " : " programs on ") << proof.ranks
     << (proof.ranks == 1 ? " rank: " : " ranks: ") << proof.communications
     << " communications matched, no deadlock, every buffer live when read\n";
}

} // namespace par
