// Warnings about keys of a plan that change nothing.
#include "par/Plan/Language/Schema.h"
#include "par/Plan/Model/Optimizers.h"
#include "par/Plan/Names/NameTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

namespace {

/// Warns of keys that change nothing, each at its line; a wrong one is an error elsewhere. Keys that every written
/// plan has are no news where they are what they are without a word: a plan that Par wrote warns of nothing.
class UnusedKeys {
public:
  UnusedKeys(const Plan &plan, const NameTable &names, PlanErrors &errors)
      : plan(plan), names(names), errors(errors), trained(resolveTrained(plan, names, known)) {}
  void check();

private:
  template <class T>
  void warn(const WithOrigin<T> &value, const Twine &key, const Twine &why) {
    if (value.given())
      warn(value.origin, key, why);
  }
  template <class T, class Value>
  void warnUnless(const Value &fallback, const WithOrigin<T> &value, const Twine &key, const Twine &why) {
    if (*value != fallback)
      warn(value, key, why);
  }
  void warn(const Origin &origin, const Twine &key, const Twine &why) {
    errors.warning(origin, PlanMessage::changesNothing, key.str(), why.str());
  }
  bool keepsStates(unsigned parameter) const;
  void checkZero();
  void checkOffload();
  void checkRecompute();
  void checkOneRank();
  void checkOneStage();
  void checkPrecision();
  void checkTraining(const PlanTrain &train);
  void checkRate(const PlanLearningRate &lr);
  void checkLoss(const PlanLoss &loss);

  const Plan &plan;
  const NameTable &names;
  PlanErrors &errors;
  PlanErrors known; ///< of patterns, which others report
  std::vector<bool> trained;
};

} // namespace

/// The default of a key that is a size.
static uint64_t defaultBytes(StringRef path) {
  auto key = find_if(planKeys(), [&](const PlanKey &key) { return key.path == path; });
  return key == planKeys().end() ? 0 : parseSize(key->fallback).value_or(0);
}

void UnusedKeys::checkZero() {
  const PlanZero &zero = plan.zero;
  if (*zero.level == 0) {
    warn(zero.over, "zero.over", "zero is 0");
    warn(zero.gather, "zero.gather", "zero is 0");
    warn(zero.minSize, "zero.min_size", "zero is 0");
    return;
  }
  std::string key = "zero: " + std::to_string(*zero.level);
  if (plan.axesSize(*zero.over) == 1)
    return warn(zero.level, key,
                zero.over->empty() ? "one rank has the whole batch" : "there is one rank on " + join(*zero.over, ", "));
  if (!plan.train && *zero.level < 3)
    return warn(zero.level, key, "it only shards values of training, and the plan has no train");
  auto isSpread = [&](const NameTable::Parameter &parameter) { return product_of(parameter.shape) >= *zero.minSize; };
  if (none_of(names.parameters, isSpread) && !names.parameters.empty())
    warn(zero.level, key, "no parameter has zero.min_size " + std::to_string(*zero.minSize) + " elements or more");
}

/// Whether the optimizer of a parameter keeps something of it between steps.
bool UnusedKeys::keepsStates(unsigned parameter) const {
  if (!trained[parameter])
    return false;
  if (plan.train->averages)
    return true;
  StringRef kind = *plan.train->optimizer.kind;
  PlanErrors ignored;
  for (const PlanGroup &group : plan.train->groups)
    if (group.kind && is_contained(resolveParameters(group.name, names, ignored), parameter))
      kind = **group.kind;
  return kind != "sgd"; // the one that has none
}

void UnusedKeys::checkOffload() {
  const PlanOffload &offload = plan.offload;
  auto all = seq<unsigned>(0, names.parameters.size());
  if (offload.states && none_of(all, [&](unsigned index) { return keepsStates(index); }))
    warn(offload.origin, "offload: [states]", plan.train ? "the optimizer keeps no states" : "the plan has no train");
  if (offload.saved && !plan.train)
    warn(offload.origin, "offload: [saved]", "the plan has no train");
  for (const PatternWithOrigin &pattern : offload.patterns)
    if (pattern.pattern.form() == NamePattern::State &&
        none_of(resolveParameters(pattern, names, known), [&](unsigned index) { return keepsStates(index); }))
      warn(pattern.origin, "offload: [" + pattern.pattern.text() + "]", "the optimizer keeps no states of it");
}

void UnusedKeys::checkRecompute() {
  const PlanRecompute &recompute = plan.recompute;
  if (*recompute.kind == PlanRecompute::None || *recompute.kind == PlanRecompute::Auto)
    return;
  if (!plan.train)
    warn(recompute.kind, "recompute", "forward is computed again for backward, and the plan has no train");
}

void UnusedKeys::checkOneRank() {
  const PlanCollectives &collectives = plan.collectives;
  if (*plan.ranks > 1)
    return;
  warnUnless(defaultBytes("collectives.bucket"), collectives.bucket, "collectives.bucket", "there is one rank");
  warnUnless(true, collectives.overlap, "collectives.overlap", "there is one rank");
  warnUnless(0, collectives.decompose, "collectives.decompose", "there is one rank");
}

void UnusedKeys::checkOneStage() {
  const PlanPipeline &pipeline = plan.pipeline;
  if (*pipeline.replicas == "round_robin" && plan.turns() == 1)
    warn(pipeline.replicas, "pipeline.replicas: round_robin", "there is one replica");
  if (*pipeline.stages > 1)
    return;
  warnUnless("1f1b", pipeline.schedule, "pipeline.schedule", "there is one stage");
  warnUnless(PlanPipeline::AutoCuts, pipeline.cuts, "pipeline.cuts", "there is one stage");
  if (*pipeline.scatterGather)
    warn(pipeline.scatterGather, "pipeline.scatter_gather", "there is one stage");
}

void UnusedKeys::checkPrecision() {
  const PlanPrecision &precision = plan.precision;
  if (*precision.compute == "f32")
    for (const PatternWithOrigin &pattern : precision.keep)
      warn(pattern.origin, "precision.keep." + pattern.pattern.text(), "precision.compute is f32");
  if (!plan.train) {
    constexpr StringRef none = "it is of training, and the plan has no train";
    warn(precision.states, "precision.states", none);
    warn(precision.accumulate, "precision.accumulate", none);
    warn(precision.reduce, "precision.reduce", none);
    warn(precision.lossScale, "precision.loss_scale", none);
  } else if (*precision.reduce != "f32" && plan.axesSize(*plan.batch.over) == 1) {
    warn(precision.reduce, "precision.reduce: " + *precision.reduce,
         "no gradient is summed over ranks, as the batch is on one");
  }
}

void UnusedKeys::checkRate(const PlanLearningRate &lr) {
  StringRef decay = *lr.decay;
  auto unused = [&](const auto &said, StringRef key) {
    warn(said, ("train.optimizer.lr." + key).str(), ("decay is " + decay).str());
  };
  if (decay == "constant" || decay == "rsqrt" || decay == "step")
    unused(lr.steps, "steps");
  if (decay == "constant" || decay == "one_cycle")
    unused(lr.floor, "floor");
  if (decay == "one_cycle")
    unused(lr.warmup, "warmup");
  if (decay != "step") {
    unused(lr.milestones, "milestones");
    unused(lr.stepSize, "step_size");
    unused(lr.gamma, "gamma");
  }
  if (decay == "one_cycle")
    return;
  unused(lr.pctStart, "pct_start");
  unused(lr.anneal, "anneal");
  unused(lr.divFactor, "div_factor");
  unused(lr.finalDivFactor, "final_div_factor");
  unused(lr.threePhase, "three_phase");
}

void UnusedKeys::checkLoss(const PlanLoss &loss) {
  if (!loss.kind->empty() && *loss.kind != "cross_entropy")
    warn(loss.ignore, "train.loss.ignore", "labels that do not count are of cross_entropy, and kind is " + *loss.kind);
}

void UnusedKeys::checkTraining(const PlanTrain &train) {
  checkRate(train.optimizer.lr);
  checkLoss(train.loss);
  for (const PatternWithOrigin &pattern : train.freeze) {
    std::vector<unsigned> met = resolveParameters(pattern, names, known);
    if (!met.empty() && none_of(met, [&](unsigned index) {
          return names.parameters[index].trainable && !names.parameters[index].frozen;
        }))
      warn(pattern.origin, "train.freeze: " + pattern.pattern.text(),
           names.parameters[met.front()].name + " is not trained anyway");
  }
}

void UnusedKeys::check() {
  checkZero();
  checkOffload();
  checkRecompute();
  checkOneRank();
  checkOneStage();
  checkPrecision();
  if (plan.train)
    checkTraining(*plan.train);
  bool attends = any_of(
      names.nodes, [](const NameTable::Node &node) { return node.opType == "Softmax" || node.opType == "Attention"; });
  if (!attends && !names.nodes.empty())
    warn(plan.attention, "attention", "the model has no Softmax or Attention");
  bool normalises =
      any_of(names.nodes, [](const NameTable::Node &node) { return node.opType == "BatchNormalization"; });
  if (!normalises && !names.nodes.empty())
    warn(plan.batchNorm, "batch_norm", "the model has no BatchNormalization");
}

void warnOfUnused(const Plan &plan, const NameTable &names, PlanErrors &errors) {
  UnusedKeys(plan, names, errors).check();
}

} // namespace par
