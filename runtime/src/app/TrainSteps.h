// Training step by step, whoever gives the rows: par-run from its files, a session from its caller.
#pragma once

#include "StepFaults.h"

#include "save/KeptState.h"

#include <functional>

namespace par::core {

/// Every rank has one, and calls make() at the same places.
class TrainSteps {
public:
  /// `position` is the run's, which make() moves on.
  TrainSteps(const Job &job, Session &session, Progress &progress, Trace &trace, RunSaves &saves, RunPosition &position)
      : job(job), manifest(job.bundle.manifest), session(session), control(session.jobControl()), progress(progress),
        trace(trace), saves(saves), position(position), faults(job, session, progress) {}

  /// Collective. One call of `train` on the rows `now`, its reports, checks of its numbers, and the save that is due.
  /// Every rank gets the same summary of each of its optimizer steps. `next`: see Session::run().
  std::vector<StepSummary> make(const StepRows &now, const StepRows &next);
  /// The save that the last make() began or made.
  const SaidOfSaves &saidOfSaves() const { return said; }
  /// Evaluation and prediction show no loss per step: NaN weights are announced first.
  void warnOfNaN() const { faults.warnOfNaN(); }

  /// The run's place between two calls of make(), and the same at another start of the job.
  Boundary boundary() const;
  void goOnFrom(const Boundary &boundary);
  /// The next report says what the last copy of the state took, by its processor time.
  void tellCopy(double ms) { copyMs = ms; }
  /// Each report says whether this holds then.
  void tellMirror(std::function<bool()> isBusy) { mirrors = std::move(isBusy); }

  /// The rate of the step after `step` updates.
  double rateOf(uint64_t step) const;

private:
  std::vector<StepSummary> step(const StepRows &now, const StepRows &next);
  uint64_t peakBytes();
  void run(const StepRows &now, const StepRows &next);
  StepRows rowsOf(uint64_t step) const;

  const Job &job;
  const format::Manifest &manifest;
  Session &session;
  comm::Control &control;
  Progress &progress;
  Trace &trace;
  RunSaves &saves;
  RunPosition &position;
  StepFaults faults;
  SaidOfSaves said;
  StepRows rows; ///< of the last call
  uint64_t stepsSeen = 0, resident = 0;
  double copyMs = 0;
  std::function<bool()> mirrors;
};

} // namespace par::core
