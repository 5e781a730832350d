// Copies the state after steps, and finds the boundary that all ranks hold.
#include "GoingOn.h"

#include "CpuTime.h"
#include "save/Replicas.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

namespace par::core {

namespace {

const Boundary *findStep(const std::vector<Boundary> &held, uint64_t step) {
  auto found = std::find_if(held.begin(), held.end(), [&](const Boundary &one) { return one.step == step; });
  return found == held.end() ? nullptr : &*found;
}

} // namespace

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

GoingOn::GoingOn(const Job &job, Session &session)
    : job(job), session(session), control(session.jobControl()), placing(control.placing()), moved(findMoved()),
      kept(session, job.bundle, job.name, memories(), placing.attempt > 0) {
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

std::vector<int> GoingOn::memories() const {
  return !job.trains() ? std::vector<int>() : moved ? moved->memories() : placing.kept;
}

std::vector<GoingOn::Held> GoingOn::askAll() const {
  std::string mine = kept.lost() ? "1" : "0";
  for (const Boundary &boundary : kept.boundaries())
    mine += boundary.encode();
  std::vector<Held> held;
  for (std::string text : control.allGather("kept", mine)) {
    held.emplace_back();
    held.back().lost = text[0] == '1';
    text.erase(0, 1);
    while (!text.empty())
      held.back().boundaries.push_back(Boundary::decode(text));
  }
  return held;
}

bool GoingOn::holdsAll() {
  if (moved && moved->moves()) {
    moved->moveTo(kept);
    how = moved->remark();
  }
  held = askAll();
  return std::none_of(held.begin(), held.end(), [](const Held &one) { return one.lost; }) && !common().empty();
}

std::optional<Boundary> GoingOn::restore(const std::string &save) {
  std::vector<Boundary> boundaries = common();
  // Rank 0 may not have written the lines of the newest one, but has those of the one before it.
  if (held[0].lost && !boundaries.empty())
    boundaries.pop_back();
  std::string why = "the ranks hold no boundary in common";
  if (moved && !moved->missing().empty()) {
    why = moved->missing();
    if (save.empty())
      throw Failure::at(job.name, Message::stateLost, why).exitsWith(exitDeadRank);
  } else if (boundaries.empty()) {
    bool few = std::all_of(held.begin(), held.end(), [](const Held &one) { return one.boundaries.size() < 2; });
    if (few || save.empty()) {
      kept.beginAgain();
      return std::nullopt;
    }
  } else if (why = completeLost(boundaries.back()); why.empty()) {
    kept.restore(boundaries.back().step);
    const Boundary *own = findStep(held[control.rank()].boundaries, boundaries.back().step);
    return own ? *own : boundaries.back();
  } else if (save.empty()) {
    throw Failure::at(job.name, Message::stateLost, why).exitsWith(exitDeadRank);
  }
  how = " from " + save + ": " + why;
  if (moved)
    moved->release();
  return fromSave(save);
}

/// Boundaries that all ranks hold which are not lost, oldest first.
std::vector<Boundary> GoingOn::common() const {
  auto any = std::find_if(held.begin(), held.end(), [](const Held &one) { return !one.lost; });
  std::vector<Boundary> common = any == held.end() ? std::vector<Boundary>() : any->boundaries;
  for (const Held &one : held)
    std::erase_if(common,
                  [&](const Boundary &boundary) { return !one.lost && !findStep(one.boundaries, boundary.step); });
  return common;
}

/// Gives the ranks that are lost the boundary that the others hold. Returns a sentence where one part of their state is
/// in no other's memory; nothing is sent then.
std::string GoingOn::completeLost(const Boundary &boundary) {
  std::vector<uint32_t> lost, holders;
  for (uint32_t rank = 0; rank < held.size(); ++rank)
    (held[rank].lost ? lost : holders).push_back(rank);
  std::vector<std::vector<Transfer>> ways;
  for (uint32_t rank : lost) {
    if (kept.together())
      return core::format("rank {} is lost with its memory, and with its share of what others hold", rank);
    Transfers transfers = transfersTo(job.bundle, rank, holders);
    if (!transfers.missing.empty())
      return core::format("rank {} is lost with its memory, and no other rank holds its part of \"{}\"", rank,
                          transfers.missing);
    ways.push_back(std::move(transfers.all));
  }
  for (size_t i = 0; i < lost.size(); ++i) {
    sendCopy(control, kept, boundary, lost[i], ways[i]);
    std::set<uint32_t> from;
    for (const Transfer &transfer : ways[i])
      from.insert(transfer.from);
    how += core::format("{}rank {} has its state from", i ? ", " : ": ", lost[i]);
    for (uint32_t one : from)
      how += (one == *from.begin() ? " rank " : " and ") + std::to_string(one);
  }
  return "";
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
  if (std::exchange(isNew, false))
    cadence.add(last.copyMs, last.ms);
  // While a save is written the copy of its boundary stays: another start goes on there and makes the save again.
  if (begun.saving.empty() && (saving || boundary.step < due))
    return "";
  double began = cpuMs(CLOCK_THREAD_CPUTIME_ID);
  kept.copy(boundary);
  lastCopyMs = cpuMs(CLOCK_THREAD_CPUTIME_ID) - began;
  due = boundary.step + cadence.steps();
  copied = boundary.step;
  isNew = true;
  if (!cadence.known() || std::exchange(printed().cadence, true))
    return "";
  uint64_t own = kept.copiedBytes(), all = kept.bytes();
  std::string what =
      own == all ? "state (" + inMiB(all) + ")" : "share (" + inMiB(own) + ") of a state of " + inMiB(all);
  return "restart: each rank copies its " + what + ", " + cadence.describe();
}

void GoingOn::growIfPossible(const Boundary &boundary) {
  bool fewer = kept.keeps() && control.world() < placing.started;
  if (!fewer || control.broadcast("grows", control.rank() == 0 && placing.mayGrow() ? "1" : "") != "1")
    return;
  if (copied != boundary.step)
    kept.copy(boundary);
  control.barrier("regroup");
  placing.regroup();
}

} // namespace par::core
