#include "Phases.h"

#include "par/Driver/Compile.h"
#include "par/Partition/Passes.h"
#include "par/Propagate/Passes.h"
#include "par/Split/Passes.h"
#include "par/Train/Passes.h"

using namespace mlir;

namespace par {

ArrayRef<StringRef> phaseNames() {
  static constexpr StringRef names[] = {"import", "annotate", "train", "split", "propagate", "partition"};
  return names;
}

/// What groups say about single parameters: of two groups the later one wins, key by key.
static void addGroups(const ModelPlan &model, TrainOptions &options) {
  const PlanTrain &train = *model.plan.train;
  llvm::MapVector<unsigned, TrainOptions::Parameter> parameters;
  PlanErrors known; // the driver has checked the patterns
  for (const PlanGroup &group : train.groups)
    for (unsigned index : resolveParameters(group.name, model.names, known)) {
      TrainOptions::Parameter &parameter = parameters[index];
      parameter.name = model.names.parameters[index].name;
      if (group.lr)
        parameter.lrScale = **group.lr / *train.optimizer.lr.peak;
      if (group.lrScale)
        parameter.lrScale = **group.lrScale;
      if (group.weightDecay)
        parameter.weightDecay = **group.weightDecay;
    }
  for (auto &[index, parameter] : parameters)
    options.parameters.push_back(std::move(parameter));
}

static TrainOptions trainOptions(const ModelPlan &model) {
  const PlanTrain &train = *model.plan.train;
  TrainOptions options;
  options.kind = *train.optimizer.kind;
  options.lr = *train.optimizer.lr.peak;
  options.momentum = *train.optimizer.momentum;
  options.nesterov = *train.optimizer.nesterov;
  options.beta1 = *train.optimizer.beta1;
  options.beta2 = *train.optimizer.beta2;
  options.epsilon = *train.optimizer.eps;
  options.weightDecay = *train.optimizer.weightDecay;
  options.clip = *train.clip;
  addGroups(model, options);
  return options;
}

std::vector<Phase> buildPhases(const ModelPlan &model) {
  const Plan &plan = model.plan;
  std::vector<Phase> phases;
  phases.push_back({"annotate", [&model](OpPassManager &manager) { buildAnnotatePipeline(manager, model); }});
  // An inference bundle has nothing to derive.
  if (plan.train)
    phases.push_back({"train", [options = trainOptions(model)](OpPassManager &manager) {
                        buildTrainPipeline(manager, options);
                      }});
  SplitOptions split;
  split.microbatches = **plan.batch.microbatches;
  phases.push_back({"split", [split](OpPassManager &manager) { buildSplitPipeline(manager, split); }});
  PropagateOptions propagate;
  propagate.batchAxes = refineAxes(plan, *plan.batch.over);
  phases.push_back({"propagate", [propagate](OpPassManager &manager) { buildPropagatePipeline(manager, propagate); }});
  phases.push_back({"partition", [](OpPassManager &manager) { buildPartitionPipeline(manager); }});
  return phases;
}

} // namespace par
