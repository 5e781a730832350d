// Tries each setting separately. If none is enough, tries all that save memory together, and then more microbatches.
// Each try is a compilation from the first phase that the setting changes.
#include "par/Inspect/WaysOut.h"

#include "par/Inspect/Memory.h"

#include "par/Simulator/Simulator.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace par {

constexpr StringRef microbatchesKey = "batch.microbatches";

static Way moreMicrobatches(int64_t count) {
  std::string number = std::to_string(count);
  return {(microbatchesKey + "=" + number).str(), (microbatchesKey + ": " + number).str(), {}};
}

/// Whether so many microbatches divide the batch, and the plan does not say their size.
static bool canHaveMicrobatches(const Plan &plan, int64_t count) {
  int64_t parts = count * plan.axesSize(*plan.batch.over) / plan.turns();
  return plan.batch.size->has_value() && **plan.batch.size % parts == 0 && !plan.batch.microbatchSize.given();
}

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
  if (int64_t twice = 2 * **plan.batch.microbatches; canHaveMicrobatches(plan, twice))
    ways.push_back(moreMicrobatches(twice));
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

/// The fewest microbatches, a power of two times `count`, by which a peak is within the limit: half as large ones have
/// shown which bytes shrink with them. Nothing if the other bytes are too many. `saved` by other settings at once.
static std::optional<int64_t> estimateMicrobatches(int64_t count, uint64_t peak, uint64_t half, uint64_t saved,
                                                   uint64_t limit) {
  uint64_t shrinks = std::min(2 * (peak - half), peak), stays = peak - shrinks;
  stays -= std::min(stays, saved);
  if (stays >= limit)
    return std::nullopt;
  return count * static_cast<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(shrinks, limit - stays)));
}

/// If twice as many microbatches help and are not enough: tries as many as it takes, by themselves if that can do, or
/// else with all that helps. Settings that fit replace those that did not.
static void tryMoreMicrobatches(const Plan &plan, const Trials &trials, uint64_t limit, WaysOut &out) {
  auto twice = llvm::find_if(out.helpful, [](const Way &way) { return way.setting.starts_with(microbatchesKey); });
  if (twice == out.helpful.end())
    return;
  uint64_t others = 0;
  for (const Way &way : out.helpful)
    others += &way == &*twice ? 0 : out.plan.peak - way.measures.peak;
  for (uint64_t saved : {uint64_t(0), others}) {
    int64_t count = **plan.batch.microbatches;
    auto least = estimateMicrobatches(count, out.plan.peak, twice->measures.peak, saved, limit);
    if (!least)
      continue;
    for (int64_t more = std::max(*least, 4 * count); more <= 2 * *least && canHaveMicrobatches(plan, more); more *= 2) {
      std::vector<Way> ways = saved ? out.helpful : std::vector<Way>();
      llvm::erase_if(ways, [&](const Way &way) { return way.setting == twice->setting; });
      ways.push_back(moreMicrobatches(more));
      std::optional<Measures> found = trials.measureWith(ways);
      if (!found || found->peak > limit)
        continue;
      ways.back().measures = *found;
      if (saved)
        out.helpful = ways, out.together = found;
      else
        out.fitting.push_back(ways.back());
      return;
    }
  }
}

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
  if (out.fitting.empty() && !(out.together && out.together->peak <= limit))
    tryMoreMicrobatches(compiled.planned.plan.plan, trials, limit, out);
  return out;
}

} // namespace par
