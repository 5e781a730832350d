// Looks at each step's loss: one that is no number ends the job, and is traced to the value, file or row that brought
// it.
#pragma once

#include "Progress.h"
#include "RunSaves.h"

namespace par::core {

class StepFaults {
public:
  StepFaults(const Job &job, Session &session, Progress &progress) : job(job), session(session), progress(progress) {}

  /// Collective, for each summary of a call, with the rows of its step. Throws Failure, the same at every rank.
  void check(const StepSummary &summary, const StepRows &rows, RunSaves &saves);
  /// Evaluation and prediction show no loss per step: NaN weights are announced first.
  void warnOfNaN() const;

  double lastLoss = std::nan("");
  bool saidIgnored = false; ///< that no label of a batch counts
  uint64_t skips = 0;       ///< steps in a row that were left out for what is not finite

private:
  std::string ignoredLabels(const StepRows &rows) const;
  std::string nanInWeights() const;
  [[noreturn]] void failLossScale(const StepSummary &summary, const StepRows &rows) const;
  bool goesOn(const StepSummary &summary);
  [[noreturn]] void failNonFinite(const StepSummary &summary, const StepRows &rows, const std::string &saved,
                                  const std::vector<std::string> &firsts) const;

  const Job &job;
  Session &session;
  Progress &progress;
};

} // namespace par::core
