// One call of `train`: rates, run, reports of all ranks.
#include "TrainSteps.h"

#include "CpuTime.h"
#include "par/app/LearningRate.h"

#include <algorithm>

namespace par::core {

std::vector<StepSummary> TrainSteps::make(const StepRows &now, const StepRows &next) {
  std::vector<StepSummary> summaries = step(now, next);
  for (const StepSummary &summary : summaries)
    faults.check(summary, rowsOf(summary.step), saves);
  said = saves.afterStep(position, summaries.back().saving);
  for (const StepSummary &summary : summaries)
    saves.writes([&] { progress.step(summary, summary.step == position.step ? said : SaidOfSaves()); });
  return summaries;
}

double TrainSteps::rateOf(uint64_t step) const {
  if (auto set = job.options.set.find("lr"); set != job.options.set.end())
    return set->second;
  if (manifest.lr)
    return learningRate(*manifest.lr, step);
  for (const format::Hyper &hyper : manifest.hypers)
    if (hyper.name == "lr")
      return hyper.value;
  return 0;
}

std::vector<StepSummary> TrainSteps::step(const StepRows &now, const StepRows &next) {
  std::vector<double> rates;
  for (uint64_t call = 0; call < manifest.calls; ++call)
    rates.push_back(rateOf(position.step - position.skipped + call));
  session.setHypers("lr", rates);
  auto began = std::chrono::steady_clock::now();
  double cpuBefore = cpuMs(CLOCK_PROCESS_CPUTIME_ID);
  uint64_t sentBefore = session.sentBytes();
  trace.prepare(session, position.step + 1);
  run(now, next);
  StepReport report;
  double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  // On fewer cores than ranks the copies of all ranks take their turns, as their steps do.
  double cpu = std::max(1e-3, cpuMs(CLOCK_PROCESS_CPUTIME_ID) - cpuBefore);
  report.copyMs = copyMs * std::max(1.0, ms / cpu);
  report.ms = ms / static_cast<double>(manifest.calls);
  report.sentBytes = (session.sentBytes() - sentBefore) / manifest.calls;
  report.peakBytes = peakBytes();
  report.saving = saves.busy();
  report.mirroring = mirrors && mirrors();
  std::vector<std::string> texts;
  for (uint64_t call = 0; call < manifest.calls; ++call) {
    report.metrics = session.results(call);
    texts.push_back(report.encode());
  }
  std::vector<StepSummary> summaries = summarizeCalls(manifest, control.allGather("step", joinReports(texts)));
  for (auto [call, summary] = std::pair(size_t(0), summaries.begin()); summary != summaries.end(); ++summary) {
    summary->step = ++position.step;
    summary->lr = rates[call++];
    position.skipped += summary->skipped();
    position.rows += manifest.batch;
  }
  trace.add(session, position.step, job.bundle.programs[manifest.ranks[session.rank()].role]);
  return summaries;
}

/// Resident bytes of the arena, asked for only in the first two steps and the last: asking visits every page.
uint64_t TrainSteps::peakBytes() {
  if (stepsSeen++ < 2 || position.step + manifest.calls == job.steps)
    resident = session.residentArena();
  return resident;
}

/// One call of `train`; an error says in which step, and from which save to go on.
void TrainSteps::run(const StepRows &now, const StepRows &next) {
  rows = now;
  try {
    session.run("train", now, next);
  } catch (Failure &failure) {
    throw std::move(failure).note(core::format("in step {}; {}", position.step + 1, saves.whereToGoOn()));
  }
}

/// The rows of a step of the last call.
StepRows TrainSteps::rowsOf(uint64_t step) const {
  StepRows own = rows;
  own.position += (step + manifest.calls - position.step - 1) * manifest.batch;
  return own;
}

Boundary TrainSteps::boundary() const {
  return {position.step, position.rows, position.skipped, faults.lastLoss, resident, faults.saidIgnored};
}

void TrainSteps::goOnFrom(const Boundary &boundary) {
  position = {boundary.step, boundary.rows, job.seed, job.shuffled, "", boundary.skipped};
  faults.lastLoss = boundary.lastLoss;
  faults.saidIgnored = boundary.saidIgnored;
  stepsSeen = boundary.resident ? 2 : 0; // a save does not say it
  resident = boundary.resident;
}

} // namespace par::core
