#include "MakeBundle.h"

#include "par/Onnx/Model.h"
#include "par/Phases/Import/Import.h"
#include "par/Phases/Split/Passes.h"

#include "par/format/Sha256.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace par {

/// How --text feeds the step: the first integer input of rank 2 takes tokens; labels that the compiler
/// attached are the next ones, labels that the model shifts itself the same.
static std::optional<format::TextFeed> findTextFeed(ModuleOp module, const Plan &plan) {
  auto steps = module.getOps<StepOp>();
  if (steps.empty() || !(*steps.begin()).getInputs())
    return std::nullopt;
  StepOp step = *steps.begin();
  format::TextFeed feed;
  for (auto [name, type] : llvm::zip(*step.getInputs(), step.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    if (!tensor.getElementType().isInteger(64) || tensor.getRank() != 2)
      continue;
    std::string input = cast<StringAttr>(name).str();
    bool labels = plan.train && input == *plan.train->loss.labels;
    std::string &slot = labels ? feed.labels : feed.tokens;
    if (slot.empty()) // segments, positions and masks follow the tokens
      slot = input;
  }
  if (feed.tokens.empty())
    return std::nullopt;
  if (feed.labels.empty())
    return feed;
  bool attached = !plan.train->loss.kind->empty();
  bool shifts = attached ? *plan.train->loss.shift > 0 : shiftsLabels(module, feed.labels);
  feed.mode = shifts ? format::TextFeed::Same : attached ? format::TextFeed::Next : format::TextFeed::Unknown;
  return feed;
}

StepFacts collectFacts(ModuleOp module, const Plan &plan) {
  StepFacts facts{collectInputLimits(module), findTextFeed(module, plan), {}, {}, 0};
  for (StepOp step : module.getOps<StepOp>())
    if (auto dims = step->getAttrOfType<DictionaryAttr>(outputBatchDims))
      for (NamedAttribute dim : dims)
        facts.outputBatchDims[dim.getName().str()] = cast<IntegerAttr>(dim.getValue()).getInt();
  for (StepOp step : module.getOps<StepOp>())
    if (auto names = step->getAttrOfType<ArrayAttr>(unsignedNames))
      for (StringAttr name : names.getAsRange<StringAttr>())
        facts.unsignedValues.insert(name.str());
  return facts;
}

/// The phases of PyTorch's OneCycleLR, in its arithmetic.
static std::vector<format::LrPhase> oneCycle(const PlanLearningRate &lr) {
  double steps = double(*lr.steps), top = *lr.pctStart * steps;
  double first = *lr.peak / *lr.divFactor, last = first / *lr.finalDivFactor;
  if (!*lr.threePhase)
    return {{top - 1, first, *lr.peak}, {steps - 1, *lr.peak, last}};
  return {{top - 1, first, *lr.peak}, {2 * *lr.pctStart * steps - 2, *lr.peak, first}, {steps - 1, first, last}};
}

static format::LrSchedule lrSchedule(const PlanLearningRate &lr) {
  format::LrSchedule schedule;
  schedule.decay = llvm::StringSwitch<format::LrSchedule::Decay>(*lr.decay)
                       .Case("cosine", format::LrSchedule::Cosine)
                       .Case("linear", format::LrSchedule::Linear)
                       .Case("rsqrt", format::LrSchedule::Rsqrt)
                       .Case("step", format::LrSchedule::Step)
                       .Case("one_cycle", format::LrSchedule::OneCycle)
                       .Default(format::LrSchedule::Constant);
  schedule.peak = *lr.peak;
  schedule.floor = *lr.floor;
  schedule.warmup = *lr.warmup;
  schedule.steps = *lr.steps;
  if (schedule.decay == format::LrSchedule::Step) {
    schedule.gamma = *lr.gamma;
    schedule.stepSize = *lr.stepSize;
    schedule.milestones.assign(lr.milestones->begin(), lr.milestones->end());
  } else if (schedule.decay == format::LrSchedule::OneCycle) {
    schedule.warmup = 0;
    schedule.floor = 0;
    schedule.isLinear = *lr.anneal == "linear";
    schedule.phases = oneCycle(lr);
  }
  return schedule;
}

BundleOptions bundleOptions(const Compiled &compiled) {
  const ModelPlan &model = compiled.planned.plan;
  const Plan &plan = model.plan;
  BundleOptions options;
  // The path as it was named: where par-run looks first.
  options.model = {compiled.planned.graph->path, compiled.file->size, compiled.file->sha256};
  options.plan = plan.toText(/*origins=*/true);
  // Ranks compare the plan and the model that it was completed for.
  options.planHash = format::sha256(plan.hashText() + options.model.sha256);
  if (plan.train)
    options.lr = lrSchedule(plan.train->optimizer.lr);
  options.text = compiled.facts.text;
  options.inputLimits = compiled.facts.inputLimits;
  options.unsignedValues = compiled.facts.unsignedValues;
  options.outputBatchDims = compiled.facts.outputBatchDims;
  options.stageAxis = plan.stageAxis();
  options.batch = **plan.batch.size;
  options.seed = *plan.seed;
  options.copies = compiled.planned.tiedCopies;
  // The plan's name of a weight that the exporter computed is no name of PyTorch's, unless it is that of the transposed
  // one.
  for (const NameTable::Parameter &parameter : model.names.parameters) {
    if (!parameter.aliases.empty() && !parameter.renamed)
      options.aliases[parameter.name] = parameter.aliases;
    if (!parameter.transposed.empty())
      options.transposed[parameter.name] = parameter.transposed;
  }
  return options;
}

} // namespace par
