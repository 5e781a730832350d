#include "par/Plan/Optimizers.h"
#include "par/Train/Passes.h"

using namespace mlir;

namespace par {

/// Settings of one parameter from one group.
static void addGroup(const PlanGroup &group, double peak, TrainOptions::Parameter &parameter,
                     PlanErrors &errors) {
  if (group.weightDecay)
    parameter.weightDecay = **group.weightDecay;
  if (group.lrScale)
    parameter.lrScale = **group.lrScale;
  if (group.lr && peak == 0)
    errors.error(group.lr->origin, PlanMessage::wrongValue, "train.optimizer.lr.peak",
                 "a positive number where a group has its own lr", "0");
  else if (group.lr)
    parameter.lrScale = **group.lr / peak;
}

TrainOptions trainOptions(const Plan &plan, const NameTable &names, PlanErrors &errors) {
  TrainOptions options;
  options.compute = *plan.precision.compute;
  options.fuseAttention = *plan.target.device == "cuda";
  options.lossScale = *plan.precision.lossScale;
  options.lossScaleGrowth = *plan.precision.growth;
  for (const SaidPattern &pattern : plan.precision.keep)
    for (unsigned index : resolveParameters(pattern, names, errors))
      options.keep.push_back(names.parameters[index].name);
  if (!plan.train)
    return options;
  const PlanOptimizer &optimizer = plan.train->optimizer;
  options.kind = *optimizer.kind;
  options.lr = *optimizer.lr.peak;
  if (const OptimizerKind *kind = findOptimizerKind(options.kind))
    for (const OptimizerSetting &setting : kind->settings)
      options.settings.emplace_back(setting.attribute, settingOf(optimizer, setting));
  options.weightDecay = *optimizer.weightDecay;
  options.clip = *plan.train->clip;
  options.clipsValues = *plan.train->clipsValues;

  std::vector<TrainOptions::Parameter> settings(names.parameters.size());
  for (const PlanGroup &group : plan.train->groups)
    for (unsigned index : resolveParameters(group.name, names, errors))
      addGroup(group, options.lr, settings[index], errors);
  std::vector<bool> trained = resolveTrained(plan, names, errors);
  for (auto [setting, parameter, isTrained] : llvm::zip(settings, names.parameters, trained)) {
    setting.name = parameter.name;
    if (isTrained && (setting.lrScale || setting.weightDecay))
      options.parameters.push_back(setting);
  }
  return options;
}

} // namespace par
