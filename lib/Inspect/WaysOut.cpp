// Tries each setting separately. If none is enough, tries all that save memory together. Each try is a compilation from
// the first phase that the setting changes.
#include "par/Inspect/WaysOut.h"

#include "par/Inspect/Memory.h"

#include "par/Simulator/Simulator.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace par {

/// Settings that the plan does not have and could.
static std::vector<Way> listWays(const Plan &plan) {
  std::vector<Way> ways;
  if (!plan.train)
    return ways;
  for (int64_t level = *plan.zero.level + 1; plan.axesSize(*plan.zero.over) > 1 && level <= 3; ++level)
    if (level != 2 || **plan.batch.microbatches > 1) // gradients are summed nowhere else
      ways.push_back({"zero.level=" + std::to_string(level), "zero: " + std::to_string(level), {}});
  if (!plan.recompute.hasBudget())
    ways.push_back({"recompute=auto", "recompute: auto", {}});
  int64_t microbatches = **plan.batch.microbatches,
          halves = 2 * microbatches * plan.axesSize(*plan.batch.over) / plan.turns();
  if (plan.batch.size->has_value() && **plan.batch.size % halves == 0 && !plan.batch.microbatchSize.given())
    ways.push_back({"batch.microbatches=" + std::to_string(2 * microbatches),
                    "batch.microbatches: " + std::to_string(2 * microbatches),
                    {}});
  if (plan.offload.empty())
    ways.push_back({"offload=[states]", "offload: [states]", {}});
  return ways;
}

/// Nothing of a compilation that failed.
static std::optional<Measures> measure(const Compiled &compiled) {
  if (!compiled.bundle)
    return std::nullopt;
  Measures measures;
  for (const RoleMemory &role : measureMemory(*compiled.bundle))
    measures.peak = std::max(measures.peak, role.peak);
  llvm::Expected<Simulation> simulation =
      simulate(*compiled.bundle, compiled.planned.entry(), compiled.planned.hardware.onThisHost());
  if (!simulation) {
    llvm::consumeError(simulation.takeError());
    return std::nullopt;
  }
  measures.stepNs = simulation->step;
  return measures;
}

namespace {

/// Compiles the model with settings on top of the plan.
class Trials {
public:
  Trials(const std::shared_ptr<const Model> &model, const PlanText &text, const CompilerOptions &options,
         const Compiled &earlier)
      : model(model), text(text), options(options), earlier(earlier) {}

  std::optional<Measures> measureWith(ArrayRef<Way> ways) const {
    PlanText trial = text;
    for (const Way &way : ways)
      trial.settings.push_back(way.setting);
    std::optional<PlannedModel> planned = planModel(model, trial, {}, [](const CompileDiagnostic &) {});
    CompileObserver silent;
    return planned ? measure(compile(std::move(*planned), options, silent, &earlier)) : std::nullopt;
  }

private:
  const std::shared_ptr<const Model> &model;
  const PlanText &text;
  const CompilerOptions &options;
  const Compiled &earlier;
};

} // namespace

std::optional<WaysOut> findWaysOut(const std::shared_ptr<const Model> &model, const PlanText &text,
                                   const CompilerOptions &options, const Compiled &compiled, uint64_t limit) {
  std::optional<Measures> now = measure(compiled);
  if (!now)
    return std::nullopt;
  Trials trials(model, text, options, compiled);
  WaysOut out{*now, {}, {}, {}};
  for (Way &way : listWays(compiled.planned.plan.plan)) {
    std::optional<Measures> found = trials.measureWith(way);
    if (!found || found->peak >= now->peak)
      continue;
    way.measures = *found;
    // A later level of zero, which come first, does more than the one before.
    if (!out.helpful.empty() && StringRef(way.setting).starts_with("zero"))
      out.helpful.pop_back();
    out.helpful.push_back(way);
    if (found->peak <= limit)
      out.fitting.push_back(way);
  }
  if (out.fitting.empty() && !out.helpful.empty())
    out.together = trials.measureWith(out.helpful);
  return out;
}

} // namespace par
