// The options of Train from a completed plan: settings of groups, later ones over earlier ones, and formats.
#include "par/Phases/Train/Passes.h"
#include "par/Plan/Model/Masters.h"
#include "par/Plan/Model/Optimizers.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;

namespace par {

namespace {

/// The merged settings of groups, later groups over earlier ones, key by key.
class GroupSettings {
public:
  GroupSettings(const PlanOptimizer &optimizer, PlanErrors &errors) : optimizer(optimizer), errors(errors) {}

  /// The settings of one parameter from all groups that match it.
  struct Own {
    std::optional<double> lrScale, weightDecay;
    std::optional<WithOrigin<std::string>> kind;
    const WithOrigin<bool> *sparse = nullptr;
    llvm::MapVector<llvm::StringRef, const PlanGroup::Setting *> settings; ///< by attribute
  };
  void add(const PlanGroup &group, Own &own);
  /// The settings of a parameter, if it has any.
  std::optional<TrainOptions::Parameter> settle(const NameTable::Parameter &named, const Own &own);

private:
  const PlanOptimizer &optimizer;
  PlanErrors &errors;
  llvm::SmallPtrSet<const PlanGroup::Setting *, 4> refused; ///< reported once for all parameters
};

} // namespace

void GroupSettings::add(const PlanGroup &group, Own &own) {
  double peak = *optimizer.lr.peak;
  if (group.weightDecay)
    own.weightDecay = **group.weightDecay;
  if (group.lrScale)
    own.lrScale = **group.lrScale;
  if (group.lr && peak == 0)
    errors.error(group.lr->origin, PlanMessage::wrongValue, "train.optimizer.lr.peak",
                 "a positive number if a group has its own lr", "0");
  else if (group.lr)
    own.lrScale = **group.lr / peak;
  if (group.sparse)
    own.sparse = &*group.sparse;
  if (group.kind)
    own.kind = *group.kind;
  for (const PlanGroup::Setting &setting : group.settings)
    own.settings[setting.setting->attribute] = &setting;
}

/// Factor on Muon's rate of a matrix that the file holds transposed: the rate goes by PyTorch's rows and columns.
static double rateOfTransposed(const NameTable::Parameter &named) {
  bool isTransposed = named.renamed && !named.transposed.empty() && named.shape.size() == 2;
  if (!isTransposed || named.shape[0] <= 0 || named.shape[1] <= 0)
    return 1;
  return std::sqrt(double(named.shape[1]) / double(named.shape[0]));
}

std::optional<TrainOptions::Parameter> GroupSettings::settle(const NameTable::Parameter &named, const Own &own) {
  const std::string &name = named.name;
  TrainOptions::Parameter parameter{name, own.lrScale, own.weightDecay, {}, own.sparse && **own.sparse, {}};
  llvm::StringRef word = own.kind ? **own.kind : *optimizer.kind;
  const OptimizerKind *kind = findOptimizerKind(word);
  if (word != *optimizer.kind && kind) {
    parameter.kind = word.str();
    parameter.weightDecay = own.weightDecay.value_or(kind->weightDecay);
  }
  for (auto &[attribute, said] : own.settings) {
    auto isIt = [&](const OptimizerSetting &setting) { return attribute == setting.attribute; };
    if (kind && llvm::any_of(kind->settings, isIt))
      parameter.settings.emplace_back(attribute, *said->value);
    else if (refused.insert(said).second)
      errors.error(said->value.origin, PlanMessage::groupsOption, said->setting->key,
                   ownersOfSetting(said->setting->key), name, word);
  }
  if (double factor = word == "muon" ? rateOfTransposed(named) : 1; factor != 1) {
    parameter.lrScale = own.lrScale.value_or(1) * factor;
    parameter.weightDecay =
        parameter.weightDecay.value_or(*optimizer.weightDecay) / factor; // which the rate multiplies
  }
  if (!parameter.lrScale && !parameter.weightDecay && parameter.kind.empty() && !parameter.sparse &&
      parameter.settings.empty())
    return std::nullopt;
  return parameter;
}

/// Errors if the plan gives gradients of rows a layout.
static void refuseLayouts(const Plan &plan, const NameTable &names, ArrayRef<const WithOrigin<bool> *> sparse,
                          PlanErrors &errors) {
  if (llvm::none_of(sparse, [](const WithOrigin<bool> *said) { return said && **said; }))
    return;
  for (auto [parameter, said] : llvm::zip(names.parameters, sparse)) {
    int64_t elements = ShapedType::getNumElements(parameter.shape);
    if (said && **said && *plan.zero.level > 0 && elements >= *plan.zero.minSize)
      errors.error(said->origin, PlanMessage::sparseSpread, parameter.name, *plan.zero.level, elements);
  }
  for (const ResolvedShard &rule : resolveShards(plan, names, errors))
    if (rule.kind == ResolvedShard::Gradient && sparse[rule.index] && **sparse[rule.index])
      errors.error(rule.origin, PlanMessage::sparseAccumulated, names.parameters[rule.index].name);
}

/// Errors at the first parameter that muon is to update and that is no matrix.
static void refuseMuon(const PlanOptimizer &optimizer, const NameTable &names, ArrayRef<GroupSettings::Own> own,
                       const std::vector<bool> &trained, PlanErrors &errors) {
  for (auto [parameter, said, isTrained] : llvm::zip(names.parameters, own, trained)) {
    const WithOrigin<std::string> &kind = said.kind ? *said.kind : optimizer.kind;
    if (!isTrained || *kind != "muon" || (parameter.shape.size() == 2 && !(said.sparse && **said.sparse)))
      continue;
    auto sizes = llvm::map_range(parameter.shape, [](int64_t size) { return std::to_string(size); });
    std::string shape = "[" + llvm::join(sizes, ", ") + "]";
    return errors.error(kind.origin, PlanMessage::muonOfOther, parameter.name,
                        parameter.shape.size() == 2 ? "sparse" : shape);
  }
}

/// The parameters that stay f32. One of another type in the model's file is computed as in the model.
static void keepParameters(const Plan &plan, const NameTable &names, TrainOptions &options, PlanErrors &errors) {
  for (const PatternWithOrigin &pattern : plan.precision.keep)
    for (unsigned index : resolveParameters(pattern, names, errors)) {
      const NameTable::Parameter &parameter = names.parameters[index];
      if (parameter.type != "f32")
        errors.error(pattern.origin, PlanMessage::keepOfOther, parameter.name, parameter.type);
      options.keep.push_back(parameter.name);
    }
}

TrainOptions trainOptions(const Plan &plan, const NameTable &names, PlanErrors &errors) {
  TrainOptions options;
  options.compute = *plan.precision.compute;
  options.device = *plan.target.device;
  options.fusesAttention = *plan.attention != "unfused";
  options.states = *plan.precision.states;
  options.lossScale = *plan.precision.lossScale;
  options.lossScaleGrowth = *plan.precision.growth;
  keepParameters(plan, names, options, errors);
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
  options.skipsNan = *plan.train->skipsNan;
  if (const std::optional<PlanAverages> &averages = plan.train->averages) {
    options.averageDecay = *averages->decay;
    options.averageWarmup = *averages->warmup;
    options.averageEvaluated = *averages->evaluated;
  }
  options.norm = plan.updatesBehind().empty(); // the norm would make stages wait for the gradients of others

  GroupSettings groups(optimizer, errors);
  std::vector<GroupSettings::Own> own(names.parameters.size());
  std::vector<bool> trained = resolveTrained(plan, names, errors);
  for (const PlanGroup &group : plan.train->groups) {
    std::vector<unsigned> met = resolveParameters(group.name, names, errors);
    for (unsigned index : met)
      groups.add(group, own[index]);
    if (!met.empty() && llvm::none_of(met, [&](unsigned index) { return trained[index]; }))
      errors.warning(group.name.origin, PlanMessage::groupTrainsNothing, group.name.pattern.text(),
                     names.parameters[met.front()].name);
  }
  refuseLayouts(plan, names, llvm::map_to_vector(own, [](const auto &each) { return each.sparse; }), errors);
  for (size_t i = 0; i < own.size(); ++i)
    options.widens |= trained[i] && names.parameters[i].hasNarrowType();
  bool rounds = options.compute != "f32" || options.widens;
  if (zeroRounds(plan, rounds) || (rounds && *plan.zero.level == 3))
    options.rounds = *plan.zero.minSize;
  refuseMuon(optimizer, names, own, trained, errors);
  for (size_t i = 0; i < own.size(); ++i)
    if (trained[i])
      if (std::optional<TrainOptions::Parameter> said = groups.settle(names.parameters[i], own[i]))
        options.parameters.push_back(*said);
  return options;
}

} // namespace par
