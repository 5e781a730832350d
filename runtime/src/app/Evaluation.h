// Evaluation of a data set: the means of eval's scalar outputs over all of its samples.
#pragma once

#include "BatchMeans.h"
#include "Progress.h"

namespace par::core {

/// One pass over a data set, in order. The last batch is filled up, and what fills it does not count: a batch that
/// holds nothing else is evaluated too, and its share is taken off. So all samples count once, and all labels alike. A
/// loss that is no mean over samples is the mean of whole batches, and the line says so.
class Evaluation {
public:
  /// `afterStep`: of training; 0: under --eval, where a loss that is not finite ends the job.
  Evaluation(const Job &job, Session &session, comm::Control &control, Progress &progress, uint64_t afterStep);
  /// Collective. Returns early where the job has been asked to end.
  void run(const Dataset *dataset);

private:
  bool addBatch(const StepRows &rows, double share = 1, bool whole = true);
  bool addFilled(const StepRows &rows, uint64_t count);
  void report(uint64_t rows, uint64_t given);
  std::string describeBatches() const;

  const Job &job;
  Session &session;
  comm::Control &control;
  Progress &progress;
  const format::Manifest &manifest;
  uint64_t afterStep;
  BatchMeans means;
  uint64_t batches = 0;           ///< whole ones and the one that is filled up
  uint64_t bad = 0, firstBad = 0; ///< whose loss is not finite
  std::string ignored;            ///< of the first batch without a label that counts
};

} // namespace par::core
