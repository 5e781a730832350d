// Training step by step, whoever gives the rows: par-run from its files, a session from its caller.
#pragma once

#include "Progress.h"
#include "RunSaves.h"

namespace par::core {

/// Every rank has one, and calls make() at the same places.
class TrainSteps {
public:
  /// `position` is the run's, which make() moves on.
  TrainSteps(const Job &job, Session &session, Progress &progress, Trace &trace, RunSaves &saves, RunPosition &position)
      : job(job), manifest(job.bundle.manifest), session(session), control(session.jobControl()), progress(progress),
        trace(trace), saves(saves), position(position) {}

  /// Collective. One call of `train` on the rows `now`, its reports, checks of its numbers, and the save that is due.
  /// Every rank gets the same summary of each of its optimizer steps. `next`: see Session::run().
  std::vector<StepSummary> make(const StepRows &now, const StepRows &next);
  /// The rate of the step after `step` updates.
  double rateOf(uint64_t step) const;

private:
  std::vector<StepSummary> step(const StepRows &now, const StepRows &next);
  uint64_t peakBytes();
  void run(const StepRows &now, const StepRows &next);
  StepRows rowsOf(uint64_t step) const;
  std::string ignoredLabels(uint64_t step) const;
  void sayIgnored(uint64_t step);
  [[noreturn]] void failLossScale(const StepSummary &summary) const;
  [[noreturn]] void failNonFinite(const StepSummary &summary, const std::vector<std::string> &firsts) const;

  const Job &job;
  const format::Manifest &manifest;
  Session &session;
  comm::Control &control;
  Progress &progress;
  Trace &trace;
  RunSaves &saves;
  RunPosition &position;
  StepRows rows; ///< of the last call
  uint64_t stepsSeen = 0, resident = 0;
  double lastLoss = std::nan("");
  bool saidIgnored = false; ///< that no label of a batch counts
};

/// Says which file brought a NaN, if one did.
std::string nanInWeights(const Job &job);

} // namespace par::core
