// The saves of a run: when they are made, and what is said of them.
#pragma once

#include "Progress.h"

#include "par/messages/Failure.h"
#include "par/save/CheckpointWriter.h"

namespace par::core {

/// Every rank has one, and calls the collective functions at the same places.
class RunSaves {
public:
  RunSaves(const Job &job, Session &session, Progress &progress)
      : job(job), control(session.jobControl()), progress(progress),
        writer(session, session.rank() == 0 ? job.saves.get() : nullptr, job.options.save, job.options.keep) {
    writer.goOnWhenFull(!control.placing().kept.empty());
  }

  /// The run goes on from this save.
  void goOnFrom(const std::string &save) { newest = save; }
  /// Collective, at another start: takes up the folder, whose newest save is last() then. Returns the newest one before
  /// the last step, "" where there is none: all lines up to such a step stand.
  std::string takeUp();
  /// Collective. Begins the save of the boundary at which the run goes on, if that is due and not whole.
  void makeAgain(const RunPosition &position);
  /// Whether a save that was begun is not whole; the same on every rank.
  bool pending() const { return writer.pending(); }
  /// The newest whole save, "" where there is none.
  const std::string &last() const { return newest; }
  /// Whether this rank is writing; ranks tell each other with each step.
  bool busy() const { return writer.busy(); }

  /// Collective, after each step, the last one of `calls` calls. `othersBusy`: whether a rank was busy.
  SaidOfSaves afterStep(const RunPosition &position, bool othersBusy);
  /// Collective. Saves the state now and returns where.
  std::string save(const RunPosition &position);
  /// Collective. Makes the save whole that is being written.
  void finish();

  /// Whether the last call of `train` made a step whose number `every` divides.
  bool passed(const RunPosition &position, uint64_t every) const;
  /// For the message of a job that fails.
  std::string whereToGoOn() const;
  /// Writes a file; where that fails, the user of a job that saves is told where to go on from.
  template <typename F>
  void writes(F &&write) const {
    try {
      write();
    } catch (Failure &failure) {
      if (job.options.save.empty())
        throw;
      throw std::move(failure).note(whereToGoOn());
    }
  }

private:
  void keep(const std::string &whole);
  std::string begin(const RunPosition &position);
  void warnOfFull();

  const Job &job;
  comm::Control &control;
  Progress &progress;
  CheckpointWriter writer;
  std::string newest;
  bool saidRemark = false; ///< the writer's
};

} // namespace par::core
