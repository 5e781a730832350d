// A run that goes on after lost ranks were started again (par-run --restart): copies of the state at boundaries between
// steps, and the choice of the boundary at which all ranks go on.
#pragma once

#include "HeldStates.h"
#include "Progress.h"
#include "RunSaves.h"
#include "SettledState.h"

#include "save/MovedState.h"

namespace par::core {

/// After how many steps the state is copied again: so seldom that copies take half a hundredth of the time of the
/// steps, at most 64. The steps since the last copy are what another start runs again.
class CopyCadence {
public:
  /// A copy and a step of this many milliseconds.
  void add(double copyMs, double stepMs);
  /// Every step until the third copy: the first ones find new memory.
  uint64_t steps() const;
  bool known() const { return copies >= 3; }
  /// "every 4 steps, in 0.31 ms: 0.8 % of their time".
  std::string describe() const;

private:
  double mean = 0, stepsMs = 0; ///< mean: of the copies from the third on
  uint64_t copies = 0;
};

/// Every rank has one, and calls the collective functions at the same places.
class GoingOn {
public:
  GoingOn(const Job &job, Session &session);
  GoingOn(const GoingOn &) = delete;

  /// In memory that outlives the rank, where the job has such.
  Printed &printed() { return kept.notes<Printed>(); }
  /// Whether lost ranks were started again.
  bool again() const { return placing.attempt > 0; }

  /// Collective, at another start: whether restore() will give all ranks all that training changes from their own
  /// memory, so that only the rest needs initial values.
  bool holdsAll();
  /// Collective, after holdsAll() and the initial values: the newest boundary that all ranks hold, whose
  /// state the session then has. A rank whose memory is lost has its parts from others that hold them; where none does,
  /// all go back to `save`, the newest one. Nothing where a rank was lost before all had a boundary: the run begins
  /// again. Throws Failure where the state is lost and there is no save.
  std::optional<Boundary> restore(const std::string &save);
  /// The way in which the state came back, for the user; "" for each rank from its own memory.
  const std::string &remark() const { return how; }
  /// Collective, after each call of `train` with all that belongs to it: copies the state if that is due, which every
  /// rank tells from the summaries. `last` is the call's last one. Returns a line for the user, once.
  std::string afterStep(const Boundary &boundary, const StepSummary &last, const SaidOfSaves &begun, bool saving);
  /// Collective, at the same places: ends the attempt in good order if it has fewer ranks than the job was started with
  /// and others have come again. The next one goes on from this boundary.
  void growIfPossible(const Boundary &boundary);
  /// After a step that was abandoned: copies the state of the boundary before it, where that is still there.
  void keepSettled() noexcept { settled.keep(); }
  /// Processor time of the last copy, 0 before the first.
  double copyMs() const { return lastCopyMs; }
  /// Whether a copy is on its way between this rank and a neighbour.
  bool mirrors() const { return mirroring && mirroring->busy(); }
  /// Collective, after the last step: a line about what mirrors have cost; "" without.
  std::string costOfMirrors();

private:
  std::optional<MovedState> findMoved();
  std::optional<Mirroring> makeMirroring();
  std::vector<int> memories() const;
  std::string copyIfDue(const Boundary &boundary, const StepSummary &last, bool saveBegins, bool saving);
  std::optional<Boundary> goBack(std::vector<Boundary> boundaries, std::string &why);
  void copy(const Boundary &boundary);
  std::string remarkOfCopies();
  Boundary fromSave(const std::string &save);

  const Job &job;
  Session &session;
  comm::Control &control;
  comm::Placing placing;
  std::optional<MovedState> moved; ///< of another start that may have other ranks
  KeptState kept;
  std::optional<HeldStates> held; ///< as holdsAll() has found
  std::string how;
  double lastCopyMs = 0, allCopyMs = 0;
  std::optional<Mirroring> mirroring; ///< under --mirror
  SettledState settled;
  CopyCadence cadence;
  uint64_t due = 0;    ///< the step after which the next copy is made
  uint64_t copied = 0; ///< the step after which the last one was made
  bool isNew = false;  ///< the last copy is in no summary yet
};

} // namespace par::core
