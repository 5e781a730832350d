#include "OpenSpace.h"
#include "SaidPlan.h"
#include "Shardings.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

static constexpr StringRef axes[] = {"pp", "dp", "tp"};

/// Plans of a search have axes of these names, and one mesh for all stages. Empty: the plan has.
static std::string describeForeign(const Plan &plan, bool hasMesh, int64_t ranks) {
  if (plan.pipeline.meshes.given())
    return "a search takes one mesh for all stages; leave out pipeline.meshes";
  if (!hasMesh)
    return "";
  for (const auto &[name, size] : plan.mesh)
    if (!is_contained(axes, name))
      return "a search takes meshes of the axes pp, dp and tp, found \"" + name + "\"; rename it or leave out mesh";
  if (ranksOf(plan.mesh) != ranks)
    return "the mesh has " + std::to_string(ranksOf(plan.mesh)) + " ranks and the search is for " +
           std::to_string(ranks) + "; leave out mesh, or ask for as many";
  return "";
}

/// Whether the plan leaves open how many samples a step has.
static bool isBatchOpen(const Plan &plan, const NameTable &names) {
  if (plan.batch.size.given() || plan.dims.empty())
    return false;
  const auto &[symbol, size] = plan.dims.back();
  return size.origin.kind == Origin::Auto && is_contained(names.symbols, symbol);
}

static bool isRecipeOpen(const Plan &plan) { return plan.recipes.empty() && plan.shard.empty(); }

static OpenKeys openKeysOf(const Plan &plan, bool hasMesh) {
  OpenKeys open;
  open.mesh = !hasMesh;
  open.recipe = isRecipeOpen(plan);
  open.microbatches = !plan.batch.microbatches.given() && !plan.batch.microbatchSize.given();
  open.zero = !plan.zero.level.given();
  open.offload = plan.train && plan.offload.empty();
  open.schedule = !plan.pipeline.schedule.given();
  open.recompute = plan.train && !plan.recompute.kind.given();
  open.order = open.mesh && !plan.meshOrder.kind.given();
  return open;
}

static Candidate fixedOf(const Plan &plan) {
  Candidate fixed;
  fixed.data = plan.axisSize("dp");
  fixed.tensor = plan.axisSize("tp");
  fixed.stages = plan.axisSize("pp");
  fixed.chunks = std::max<int64_t>(1, *plan.pipeline.stages / fixed.stages);
  fixed.schedule = *plan.pipeline.schedule;
  fixed.zero = *plan.zero.level;
  fixed.microbatches = plan.batch.microbatches.given() ? plan.batch.microbatches->value_or(1) : 0;
  fixed.samples = plan.batch.microbatchSize.given() ? plan.batch.microbatchSize->value_or(1) : 0;
  return fixed;
}

/// Fills what collectives of replicas depend on.
static void describeWeights(const PlannedModel &base, Space &space) {
  const Plan &plan = base.plan.plan;
  PlanErrors reported; // planModel has reported them
  std::vector<bool> trained = resolveTrained(plan, base.plan.names, reported);
  space.weightBytes = space.reducesNarrow ? 2 : 4;
  for (auto [parameter, isTrained] : zip(base.plan.names.parameters, trained)) {
    int64_t elements = 1;
    for (int64_t dim : parameter.shape)
      elements *= dim;
    space.trained += isTrained;
    if (isTrained && elements >= *plan.zero.minSize)
      space.weights.push_back(elements);
    else if (isTrained)
      space.smallElements += elements;
    if (isTrained && parameter.shape.size() < 2)
      space.vectorElements += elements;
    if (isTrained && parameter.hasNarrowType())
      space.weightBytes = 2;
  }
  constexpr int64_t largest = int64_t(1) << 30; // that `auto` tries
  space.bucket = plan.collectives.choosesBucket ? largest : static_cast<int64_t>(*plan.collectives.bucket);
  space.gathersOnce = *plan.zero.gather == "step";
}

std::optional<OpenSpace> openSpace(const std::shared_ptr<const Model> &model, const PlanText &text, int64_t ranks,
                                   DiagnosticSink sink) {
  auto refuse = [&](const std::string &message) {
    CompileDiagnostic finding;
    finding.file = model->graph.path;
    finding.message = message;
    sink(finding);
    return std::nullopt;
  };
  SaidPlan reading;
  std::optional<Plan> said = readSaidPlan(text, reading);
  if (std::string foreign = said ? describeForeign(*said, reading.hasMesh, ranks) : ""; !foreign.empty())
    return refuse(foreign);
  PlanText alone = text;
  append_range(alone.settings, reading.assumption);
  if (said && reading.hasMesh && isRecipeOpen(*said)) // no rule shards over the tensor axis yet
    alone.settings.push_back(
        ("mesh={pp: " + Twine(said->axisSize("pp")) + ", dp: " + Twine(said->axisSize("dp")) + ", tp: 1}").str());
  auto errorsOnly = [&](CompileDiagnostic finding) {
    if (finding.warning) // keys that have no effect on one rank may have one on several
      return;
    if (!reading.hasMesh && StringRef(finding.message).contains("the mesh has no axis"))
      finding.notes.push_back("a search makes meshes of the axes pp, dp and tp; name one of these, or say mesh");
    sink(finding);
  };
  std::optional<PlannedModel> base = planModel(model, alone, {}, errorsOnly);
  if (!base)
    return std::nullopt;
  const Plan &plan = base->plan.plan;
  if (isBatchOpen(plan, model->names))
    return refuse("a search needs the samples of a step, which the model leaves open: --set batch=256");
  OpenSpace out;
  out.hardware = base->hardware;
  out.limit = base->recomputeLimit() ? base->recomputeLimit() : base->memoryLimit(); // as a compilation has it
  Space &space = out.space;
  space.open = openKeysOf(*said, reading.hasMesh);
  space.fixed = fixedOf(*said);
  space.stages = reading.stages;
  space.namesAxes = reading.namesAxes;
  space.ranks = ranks;
  space.batch = **plan.batch.size;
  space.trains = plan.train.has_value();
  space.keepsAll = *plan.recompute.kind == PlanRecompute::None;
  space.keepsInputs = plan.recompute.recomputesLayers();
  space.rounds = space.trains && *plan.precision.compute != "f32";
  space.reducesNarrow = space.trains && *plan.precision.reduce != "f32";
  space.hostRanks = out.hardware.hasHosts() ? out.hardware.ranks : 0;
  space.overlaps = *plan.collectives.overlap;
  space.narrow = *plan.precision.compute != "f32";
  if (space.trains)
    describeWeights(*base, space);
  if (space.open.recipe && ranks > 1)
    space.shardings = findShardings(model, alone, out.hardware, space);
  return out;
}

} // namespace par
