#include "Trials.h"

#include "par/Compiler/Trial.h"
#include "par/Inspect/Memory.h"

#include "llvm/ADT/STLExtras.h"

#include <thread>

using namespace llvm;

namespace par {

namespace {

/// Ends a compilation after its phase.
class StoppedBy : public CompileObserver {
public:
  explicit StoppedBy(const std::atomic<bool> *stops) : stops(stops) {}
  bool ended(StringRef, const Compiled &) override { return !stops || !*stops; }

private:
  const std::atomic<bool> *stops;
};

} // namespace

std::optional<PlayedTrial> Trials::play(const Space &space, const Candidate &candidate, const std::atomic<bool> *stops,
                                        ArrayRef<std::string> more) const {
  PlanText trial = text;
  for (const std::string &setting : space.settingsOf(candidate))
    trial.settings.push_back(setting);
  append_range(trial.settings, more);
  std::vector<CompileDiagnostic> findings;
  std::optional<PlannedModel> planned =
      planModel(model, trial, {}, [&](const CompileDiagnostic &finding) { findings.push_back(finding); });
  if (!planned)
    return std::nullopt;
  StoppedBy observer(stops);
  Compiled compiled = compileTrial(std::move(*planned), observer);
  if (!compiled.bundle)
    return std::nullopt;
  compiled.findings.insert(compiled.findings.begin(), findings.begin(), findings.end());
  Hardware alone = hardware;
  alone.cores = 0; // no decision depends on the machine that compiles
  Expected<Simulation> simulation = simulate(*compiled.bundle, compiled.planned.entry(), alone);
  if (!simulation) {
    consumeError(simulation.takeError());
    return std::nullopt;
  }
  Estimate played;
  played.stepNs = simulation->step / simulation->calls;
  for (const RoleMemory &role : measureMemory(*compiled.bundle))
    played.peak = std::max<int64_t>(played.peak, role.peak);
  played.recomputes =
      any_of(compiled.recomputes, [](const StageRecompute &stage) { return stage.savedBytes < stage.allBytes; });
  played.fits = !limit || played.peak <= static_cast<int64_t>(*limit);
  return PlayedTrial{std::move(compiled), std::move(*simulation), played};
}

void EarlyTrial::start(const Candidate &candidate) {
  if (isOf(candidate) || std::thread::hardware_concurrency() < 2)
    return;
  stop();
  of = candidate;
  running = std::async(std::launch::async, [this, candidate] { return trials.play(space, candidate, &stops); });
}

void EarlyTrial::stop() {
  stops = true;
  if (running.valid())
    running.wait();
  running = {};
  of.reset();
  stops = false;
}

} // namespace par
