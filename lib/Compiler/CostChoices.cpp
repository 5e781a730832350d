#include "CostChoices.h"

#include "RankOrder.h"

#include "par/Simulator/Simulator.h"

namespace par {

CompilerOptions trialOptions(const CompilerOptions &options) {
  CompilerOptions trial;
  trial.hostCode = options.hostCode;
  trial.keepKernelIR = options.keepKernelIR;
  trial.cache = options.cache;
  return trial;
}

std::optional<int64_t> playStep(const PlannedModel &planned, const format::Bundle &bundle) {
  Hardware hardware = planned.hardware;
  hardware.cores = 0;
  llvm::Expected<Simulation> simulation = simulate(bundle, planned.entry(), hardware);
  if (simulation)
    return simulation->step / simulation->calls;
  llvm::consumeError(simulation.takeError());
  return std::nullopt;
}

static Compiled settleRankOrder(Compiled &out, const CompilerOptions &options, const Compiled *earlier) {
  PlanMeshOrder &order = out.planned.plan.plan.meshOrder;
  order = firstRankOrder(out.planned);
  CompileObserver silent;
  Compiled trial = compile(out.planned, trialOptions(options), silent, earlier);
  if (trial.bundle)
    out.order = chooseRankOrder(trial);
  if (out.order)
    order = rankOrder(out.planned.plan.plan, out.order->order);
  return trial;
}

static Compiled settleBucket(Compiled &out, const CompilerOptions &options, const Compiled *earlier) {
  PlanCollectives &collectives = out.planned.plan.plan.collectives;
  collectives.choosesBucket = false;
  collectives.bucket.origin = Origin::automatic();
  CompilerOptions keeping = trialOptions(options);
  keeping.keep = bucketPhases();
  CompileObserver silent;
  Compiled trial = compile(out.planned, keeping, silent, earlier);
  if (trial.bundle)
    out.bucket = chooseBucket(trial, options);
  if (out.bucket)
    collectives.bucket.value = out.bucket->size;
  trial.modules.clear(); // the observer of the compilation for good sees every phase
  return trial;
}

std::optional<Compiled> settleChoices(Compiled &out, const CompilerOptions &options, CompileObserver &observer,
                                      const Compiled *earlier) {
  std::optional<Compiled> trial;
  const bool &choosesBucket = out.planned.plan.plan.collectives.choosesBucket;
  if (*out.planned.plan.plan.meshOrder.kind == PlanMeshOrder::Auto) {
    observer.begins("order", out, nullptr);
    bool alsoBucket = choosesBucket;
    out.planned.plan.plan.collectives.choosesBucket = false; // the trial has the default
    trial.emplace(settleRankOrder(out, options, earlier));
    out.planned.plan.plan.collectives.choosesBucket = alsoBucket;
    (void)observer.ended("order", out);
  }
  if (choosesBucket) {
    observer.begins("bucket", out, nullptr);
    Compiled last = settleBucket(out, options, trial ? &*trial : earlier);
    trial.reset(); // what `last` took of it, it holds itself
    trial.emplace(std::move(last));
    (void)observer.ended("bucket", out);
  }
  return trial;
}

} // namespace par
