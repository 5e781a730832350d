// Copies the state after steps, and finds the boundary that all ranks hold.
#include "GoingOn.h"

#include "CpuTime.h"
#include "MirrorRemarks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace par::core {

void CopyCadence::add(double copyMs, double stepMs) {
  // The third copy is the first whose memory both copies have had before.
  if (++copies >= 3)
    mean += (copyMs - mean) / static_cast<double>(copies - 2);
  stepsMs += stepMs;
}

uint64_t CopyCadence::steps() const {
  constexpr double share = 0.005, most = 64;
  if (!known() || stepsMs <= 0)
    return 1;
  return static_cast<uint64_t>(
      std::clamp(std::ceil(mean * static_cast<double>(copies) / (share * stepsMs)), 1.0, most));
}

std::string CopyCadence::describe() const {
  uint64_t every = steps();
  double percent = 100 * mean * static_cast<double>(copies) / (stepsMs * static_cast<double>(every));
  char text[80];
  snprintf(text, sizeof text, ", in %.2f ms: %.1f %% of their time", mean, percent);
  return (every == 1 ? "after each step" : "every " + std::to_string(every) + " steps") + text;
}

/// The step up to which rank 0 has written all lines, also before it was lost.
static uint64_t saidUpTo(const Printed &printed, uint64_t evalEvery) {
  uint64_t evaluated = evalEvery ? printed.step / evalEvery * evalEvery : 0;
  return evaluated > 0 && printed.evaluated <= evaluated ? evaluated - 1 : printed.step;
}

GoingOn::GoingOn(const Job &job, Session &session)
    : job(job), session(session), control(session.jobControl()), placing(control.placing()), moved(findMoved()),
      kept(session, job.bundle, job.name, memories(), placing.attempt > 0), mirroring(makeMirroring()),
      settled(job, session, kept, placing) {
  if (!moved || !moved->moves() || control.rank() != 0)
    return;
  std::vector<std::byte> notes = moved->notes();
  std::memcpy(&printed(), notes.data(), sizeof(Printed));
}

/// Under --shrink another start may find the state in another layout.
std::optional<MovedState> GoingOn::findMoved() {
  if (!again() || placing.memories.empty() || !job.trains())
    return std::nullopt;
  std::vector<const format::Bundle *> family{&job.bundle};
  for (const Member &member : job.family)
    family.push_back(&member.bundle);
  return std::optional<MovedState>(std::in_place, control, family, job.bundle, job.name);
}

std::optional<Mirroring> GoingOn::makeMirroring() {
  if (!job.options.mirror || !kept.keeps() || control.world() == 1)
    return std::nullopt;
  return std::optional<Mirroring>(std::in_place, control, job.bundle, job.name);
}

std::vector<int> GoingOn::memories() const {
  return !job.trains() ? std::vector<int>() : moved ? moved->memories() : placing.kept;
}

bool GoingOn::holdsAll() {
  if (moved && moved->moves()) {
    moved->moveTo(kept);
    how = moved->remark();
  }
  held.emplace(control, kept, mirroring ? &*mirroring : nullptr, saidUpTo(printed(), job.options.evalEvery));
  return !held->anyLost() && !held->common().empty();
}

std::optional<Boundary> GoingOn::restore(const std::string &save) {
  std::vector<Boundary> boundaries = held->common();
  // Rank 0 may not have written the lines of the newest one, but has those of the one before it. The only one is left
  // out where that costs a few steps, and not where all would begin again.
  if (held->isLost(0) && !boundaries.empty() && (boundaries.size() > 1 || held->haveFew()))
    boundaries.pop_back();
  if (auto boundary = settled.goOn(*held, boundaries))
    return boundary;
  std::string why = "the ranks hold no boundary in common";
  if (moved && !moved->missing().empty()) {
    why = moved->missing();
    if (save.empty())
      throw Failure::at(job.name, Message::stateLost, why).exitsWith(exitDeadRank);
  } else if (auto back = goBack(boundaries, why)) {
    return back;
  } else {
    bool few = held->haveFew();
    bool begins = boundaries.empty() ? few || save.empty() : mirroring && few && save.empty();
    if (begins) {
      kept.beginAgain();
      return std::nullopt;
    }
    if (save.empty())
      throw Failure::at(job.name, Message::stateLost, why).exitsWith(exitDeadRank);
  }
  how = " from " + save + ": " + why;
  if (moved)
    moved->release();
  return fromSave(save);
}

/// Goes on from the newest of these boundaries that ranks which are lost can be given; `why` says why not from any.
std::optional<Boundary> GoingOn::goBack(std::vector<Boundary> boundaries, std::string &why) {
  for (; !boundaries.empty(); boundaries.pop_back()) {
    uint64_t step = boundaries.back().step;
    if (why = held->completeLost(job.bundle, boundaries.back(), how); !why.empty())
      continue;
    kept.restore(step, step);
    // Mirrors that no neighbour holds are made first: nothing else would be left of a rank that is lost.
    if (mirroring)
      mirroring->begin(step, kept.copyOf(step), held->mirrored(step));
    return held->own(boundaries.back());
  }
  return std::nullopt;
}

Boundary GoingOn::fromSave(const std::string &save) {
  Checkpoint checkpoint = openCheckpoint(save);
  checkState(job.bundle.manifest, checkpoint.store);
  session.restore(checkpoint.store);
  Boundary boundary;
  boundary.step = checkpoint.position.step, boundary.rows = checkpoint.position.rows;
  boundary.skipped = checkpoint.position.skipped;
  return boundary;
}

std::string GoingOn::afterStep(const Boundary &boundary, const StepSummary &last, const SaidOfSaves &begun,
                               bool saving) {
  if (!kept.keeps())
    return "";
  // All ranks have ended the last copy when one of them has made a step since.
  bool allCopied = copied > 0 && boundary.step > copied;
  std::string said = copyIfDue(boundary, last, !begun.saving.empty(), saving);
  // A save that is being written is made again by another start at its own boundary only.
  settled.note(allCopied && begun.saving.empty() && !saving ? std::optional(boundary) : std::nullopt);
  return said;
}

std::string GoingOn::copyIfDue(const Boundary &boundary, const StepSummary &last, bool saveBegins, bool saving) {
  if (std::exchange(isNew, false))
    cadence.add(last.copyMs, last.ms);
  if (mirroring)
    mirroring->check();
  // While a save is written the copy of its boundary stays: another start goes on there and makes the save again.
  bool waits = saving || boundary.step < due || (mirroring && last.mirroring);
  if (!saveBegins && waits)
    return "";
  // The copy goes over the one of which all mirrors are whole.
  if (mirroring && last.mirroring)
    mirroring->finish();
  copy(boundary);
  due = boundary.step + (mirroring ? *job.options.mirror : cadence.steps());
  isNew = true;
  return remarkOfCopies();
}

void GoingOn::copy(const Boundary &boundary) {
  double began = cpuMs(CLOCK_THREAD_CPUTIME_ID);
  kept.copy(boundary);
  lastCopyMs = cpuMs(CLOCK_THREAD_CPUTIME_ID) - began;
  allCopyMs += lastCopyMs;
  copied = boundary.step;
  if (mirroring)
    mirroring->begin(boundary.step, kept.copyOf(boundary.step));
}

/// A line, once.
std::string GoingOn::remarkOfCopies() {
  if ((!mirroring && !cadence.known()) || std::exchange(printed().cadence, true))
    return "";
  if (mirroring)
    return remarkOfMirrors(job.bundle, mirroring->plan(), placing.hostOf, *job.options.mirror);
  uint64_t own = kept.copiedBytes(), all = kept.bytes();
  std::string what = own == all ? "state (" + humanBytes(all) + ")"
                                : "share (" + humanBytes(own) + ") of a state of " + humanBytes(all);
  return "restart: each rank copies its " + what + ", " + cadence.describe();
}

std::string GoingOn::costOfMirrors() {
  if (!mirroring)
    return "";
  mirroring->finish();
  return costsOfMirrors(control, mirroring->cost(), allCopyMs);
}

void GoingOn::growIfPossible(const Boundary &boundary) {
  bool fewer = kept.keeps() && control.world() < placing.started;
  if (!fewer || control.broadcast("grows", control.rank() == 0 && placing.mayGrow() ? "1" : "") != "1")
    return;
  // All go on: the copy needs no mirror.
  if (mirroring)
    mirroring->finish();
  if (copied != boundary.step)
    kept.copy(boundary);
  control.barrier("regroup");
  placing.regroup();
}

} // namespace par::core
