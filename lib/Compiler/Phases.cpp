// The phases of a compilation with the options that the plan gives their passes: a phase's pipeline knows no plan, and
// what it is told is all that its result depends on beside the module.
#include "par/Compiler/Phases.h"
#include "PriceCuts.h"
#include "par/Phases/Decompose/Passes.h"

#include "par/Phases/Collectives/Passes.h"
#include "par/Phases/Kernels/Passes.h"
#include "par/Phases/Memory/Passes.h"
#include "par/Phases/Partition/Passes.h"
#include "par/Phases/Propagate/Passes.h"
#include "par/Phases/Recompute/Passes.h"
#include "par/Phases/Schedule/Passes.h"
#include "par/Phases/Split/Passes.h"
#include "par/Phases/Train/Passes.h"
#include "par/Plan/Model/Masters.h"

using namespace mlir;

namespace par {

ArrayRef<StringRef> phaseNames() {
  static constexpr StringRef names[] = {"import",    "annotate",  "train",    "split",   "propagate",   "partition",
                                        "recompute", "decompose", "schedule", "kernels", "collectives", "memory"};
  return names;
}

/// Adds the plan's sharding rules for single gradients and states, and the priorities of parameters.
static void addLayoutRules(const ModelPlan &model, PlanErrors &known, PropagateOptions &options) {
  for (const ResolvedShard &rule : resolveShards(model.plan, model.names, known)) {
    bool ofParameter = rule.kind == ResolvedShard::Parameter;
    if (!ofParameter && rule.kind != ResolvedShard::Gradient && rule.kind != ResolvedShard::State)
      continue;
    std::string text = model.names.parameters[rule.index].name + "=";
    if (ofParameter && rule.priority)
      options.priorities.push_back(text + std::to_string(**rule.priority));
    if (ofParameter)
      continue;
    for (const auto &[dim, axes] : rule.dims)
      text += std::to_string(dim) + ":" + llvm::join(refineAxes(model.plan, *axes), "+") + ";";
    if (rule.partial)
      text += "partial:" + llvm::join(refineAxes(model.plan, **rule.partial), "+") + ";";
    if (rule.priority)
      text += "priority:" + std::to_string(**rule.priority) + ";";
    text += *rule.closed ? "closed" : "";
    (rule.kind == ResolvedShard::Gradient ? options.gradientRules : options.stateRules).push_back(text);
  }
}

/// Options of the offload pass: the values that the plan keeps in host memory. With a limit that Recompute is to reach,
/// it has chosen among saved values.
static OffloadPassOptions offloadOptions(const ModelPlan &model, bool chooses, PlanErrors &known) {
  const PlanOffload &offload = model.plan.offload;
  OffloadPassOptions options;
  options.states = offload.states;
  options.parameters = offload.params;
  options.saved = offload.saved && !chooses;
  for (const PatternWithOrigin &pattern : offload.patterns)
    for (unsigned index : resolveParameters(pattern, model.names, known))
      (pattern.pattern.form() == NamePattern::State ? options.statesOf : options.parametersOf)
          .push_back(model.names.parameters[index].name);
  return options;
}

/// How microbatches of all replicas are added in one order, if the plan asks for that.
static std::optional<OrderMicrobatchesPassOptions> orderOf(const Plan &plan) {
  if (*plan.collectives.sums != "microbatches")
    return std::nullopt;
  OrderMicrobatchesPassOptions order;
  order.over = refineAxes(plan, *plan.batch.over);
  order.place = plan.collectives.sums.origin.place();
  return order;
}

static Phase collectivesPhase(const Plan &plan) {
  // A GPU overlaps a collective with matmuls, and a second group of kernels makes up for a small matmul. A CPU rank has
  // one core, which either computes or communicates.
  unsigned window = *plan.target.device == "cuda" ? 2 : 1;
  CollectivesOptions options{static_cast<int64_t>(*plan.collectives.bucket),
                             *plan.collectives.overlap,
                             window,
                             *plan.collectives.algorithm == "hierarchical",
                             *plan.target.hardware,
                             plan.collectives.algorithm.origin.place()};
  return {"collectives", [options](OpPassManager &manager) { buildCollectivesPipeline(manager, options); }};
}

std::vector<Phase> buildPhases(const ModelPlan &model, std::optional<uint64_t> memory, RecomputeOutcomes &recomputes,
                               bool packsGreedily) {
  const Plan &plan = model.plan;
  std::vector<Phase> phases;
  phases.push_back({"annotate", [&model, pricer = makeCutPricer(model, memory)](OpPassManager &manager) {
                      buildAnnotatePipeline(manager, model, pricer);
                    }});
  PlanErrors reported; // the driver has checked the patterns
  // An inference bundle has nothing to derive; its attentions are fused as those of training are.
  TrainOptions options = trainOptions(plan, model.names, reported);
  bool masters = shardsMasters(plan, options.rounds.has_value());
  phases.push_back({"train", [options, trains = plan.train.has_value()](OpPassManager &manager) {
                      trains ? buildTrainPipeline(manager, options) : buildPrecisionPipeline(manager, options);
                    }});
  SplitOptions split;
  split.microbatches = plan.rounds();
  // A sixteenth of memory: rounded weights save a few percent of a step, a larger batch more.
  if (memory)
    split.keptBytes = static_cast<int64_t>(*memory / 16);
  if (masters)
    split.masters = *plan.zero.minSize;
  split.behind = plan.updatesBehind();
  split.calls = plan.calls();
  phases.push_back({"split", [split](OpPassManager &manager) { buildSplitPipeline(manager, split); }});
  PropagateOptions propagate;
  propagate.batchAxes = refineAxes(plan, *plan.batch.over);
  auto shard = [&](int64_t level) {
    return *plan.zero.level >= level ? refineAxes(plan, *plan.zero.over) : SmallVector<std::string>();
  };
  propagate.stateAxes = shard(1);
  propagate.gradientAxes = shard(2);
  propagate.parameterAxes = shard(gathersMastersAtUse(plan, options.rounds.has_value()) ? 1 : 3);
  propagate.minSize = *plan.zero.minSize;
  propagate.gatherOnce = *plan.zero.gather == "step";
  propagate.masters = masters;
  addLayoutRules(model, reported, propagate);
  phases.push_back({"propagate", [propagate](OpPassManager &manager) { buildPropagatePipeline(manager, propagate); }});
  PartitionOptions partition{*plan.target.hardware,   *plan.precision.accumulate, *plan.precision.reduce,
                             propagate.parameterAxes, propagate.gatherOnce,       *plan.precision.compute != "f32"};
  if (*plan.pipeline.scatterGather && *plan.pipeline.stages > 1)
    partition.scatter = plan.pipeline.scatterGather.origin.place();
  phases.push_back({"partition", [partition](OpPassManager &manager) { buildPartitionPipeline(manager, partition); }});
  phases.push_back({"recompute", [&plan, &recomputes](OpPassManager &manager) {
                      buildRecomputePipeline(manager, plan, &recomputes);
                    }});
  BuildProgramsPassOptions schedule;
  schedule.schedule = *plan.pipeline.schedule;
  schedule.hardware = *plan.target.hardware;
  DecomposeCollectivesPassOptions decompose{*plan.collectives.decompose, *plan.target.hardware};
  if (!*plan.collectives.overlap && decompose.chunks == 0)
    decompose.chunks = 1; // nothing would run beside them
  phases.push_back({"decompose", [decompose](OpPassManager &manager) { buildDecomposePipeline(manager, decompose); }});
  phases.push_back({"schedule", [schedule](OpPassManager &manager) { buildSchedulePipeline(manager, schedule); }});
  phases.push_back({"kernels", [device = *plan.target.device, order = orderOf(plan)](OpPassManager &manager) {
                      buildKernelsPipeline(manager, device, order);
                    }});
  phases.push_back(collectivesPhase(plan));
  // The limit is checked on the finished bundle, whose error has a table of the memory's use.
  MemoryOptions arenas;
  arenas.greedy = packsGreedily;
  if (!plan.offload.empty())
    arenas.offload = offloadOptions(model, plan.train && plan.recompute.isBounded(memory.has_value()), reported);
  if (arenas.offload && masters)
    arenas.offload->masterAxes.assign(propagate.stateAxes.begin(), propagate.stateAxes.end());
  phases.push_back({"memory", [arenas](OpPassManager &manager) { buildMemoryPipeline(manager, arenas); }});
  return phases;
}

} // namespace par
