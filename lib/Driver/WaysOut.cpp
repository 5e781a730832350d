// A plan above the memory limit: what it could say instead, found by compiling it so. Each setting is tried by itself;
// where none is enough, all that make a rank hold less are tried together. As many as these compiles are what the
// answer costs.
#include "Compilation.h"
#include "Diagnostics.h"
#include "MemoryTable.h"

#include "par/Plan/Language/ForeignNames.h"

#include "llvm/Support/Format.h"

using namespace mlir;

namespace par {

std::optional<Compilation::Measures> Compilation::measureBundle(const format::Bundle &bundle) {
  Measures measures;
  for (const RoleMemory &role : measureMemory(bundle))
    measures.peak = std::max(measures.peak, role.peak);
  llvm::Expected<Simulation> simulation = simulate(bundle, entry(), hardware->onThisHost());
  if (!simulation) {
    llvm::consumeError(simulation.takeError());
    return std::nullopt;
  }
  measures.stepNs = simulation->step;
  return measures;
}

std::optional<Compilation::Measures> Compilation::measure() {
  if (!readModel() || !readPlanFor())
    return std::nullopt;
  makeContext();
  PhaseDiagnostics diagnostics(context.get(), options.model, sink);
  if (!import())
    return std::nullopt;
  facts = collectFacts(*module, model.plan);
  for (const Phase &phase : buildPhases(model, memoryLimit()))
    if (!runPhase(phase))
      return std::nullopt;
  std::optional<format::Bundle> bundle = makeBundle();
  return bundle ? measureBundle(*bundle) : std::nullopt;
}

namespace {
/// A setting that makes a rank hold less, as --set takes it and as a plan says it.
struct Way {
  std::string setting, spelled;
};
} // namespace

/// What the plan does not say yet, and could.
static std::vector<Way> listWays(const Plan &plan, const NameTable &names) {
  std::vector<Way> ways;
  if (!plan.train)
    return ways;
  for (int64_t level = *plan.zero.level + 1; plan.axesSize(*plan.zero.over) > 1 && level <= 3; ++level)
    if (level != 2 || **plan.batch.microbatches > 1) // gradients are summed nowhere else
      ways.push_back({"zero.level=" + std::to_string(level), "zero: " + std::to_string(level)});
  std::string layers = repeatedModule(names), each = "{each: " + layers + "}";
  if (*plan.recompute.kind == PlanRecompute::None && !layers.empty())
    ways.push_back({"recompute=" + each, "recompute: " + each});
  else if (*plan.recompute.kind != PlanRecompute::Full)
    ways.push_back({"recompute=full", "recompute: full"});
  int64_t microbatches = **plan.batch.microbatches,
          halves = 2 * microbatches * plan.axesSize(*plan.batch.over) / plan.turns();
  if (plan.batch.size->has_value() && **plan.batch.size % halves == 0 && !plan.batch.microbatchSize.given())
    ways.push_back({"batch.microbatches=" + std::to_string(2 * microbatches),
                    "batch.microbatches: " + std::to_string(2 * microbatches)});
  if (plan.offload.empty())
    ways.push_back({"offload=[states]", "offload: [states]"});
  return ways;
}

/// "zero: 1 brings it to 49.9 GiB at +0.4 % time".
static std::string describeWay(StringRef ways, const Compilation::Measures &found, int64_t stepNs) {
  std::string text;
  double longer = 100.0 * double(found.stepNs - stepNs) / double(stepNs);
  llvm::raw_string_ostream(text) << ways << " to " << humanBytes(double(found.peak))
                                 << llvm::format(" at %+.1f %% time", longer);
  return text;
}

std::vector<std::string> Compilation::findWaysOut(const format::Bundle &bundle, uint64_t limit) {
  std::optional<Measures> now = measureBundle(bundle);
  if (!now)
    return {};
  auto measureWith = [&](ArrayRef<Way> ways) {
    CompileOptions trial = options;
    trial.check = trial.quiet = true;
    trial.checkPhases = trial.timing = false;
    trial.whereabouts = nullptr;
    for (const Way &way : ways)
      trial.settings.push_back(way.setting);
    return Compilation(trial, llvm::nulls(), [](const Finding &) {}).measure();
  };
  std::vector<std::string> fitting;
  std::vector<Way> helpful;
  for (const Way &way : listWays(model.plan, model.names)) {
    std::optional<Measures> found = measureWith(way);
    if (!found || found->peak >= now->peak)
      continue;
    // Of zero's levels, which come first, the one that does most.
    if (!helpful.empty() && StringRef(way.setting).starts_with("zero"))
      helpful.pop_back();
    helpful.push_back(way);
    if (found->peak <= limit)
      fitting.push_back(describeWay(way.spelled + " brings it", *found, now->stepNs));
  }
  if (!fitting.empty())
    return {llvm::join(fitting, "; ")};
  std::vector<std::string> names;
  for (const Way &way : helpful)
    names.push_back(way.spelled);
  std::optional<Measures> all = measureWith(helpful);
  if (helpful.empty() || !all)
    return {
        "no zero, recompute, offload or smaller microbatches makes it less; it takes more ranks on an axis that shards "
        "parameters or activations, or a smaller model"};
  std::string text = describeWay(llvm::join(names, ", ") + " together bring it", *all, now->stepNs);
  return {all->peak <= limit ? text : text + ", still above the limit; it takes more ranks too"};
}

} // namespace par
