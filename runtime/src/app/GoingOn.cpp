// Copies the state after steps, and finds the boundary that all ranks hold.
#include "GoingOn.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace par::core {

namespace {

int descriptorOf(const comm::Placing &placing, uint32_t rank) {
  return rank < placing.kept.size() ? placing.kept[rank] : -1;
}

std::vector<Boundary> decodeAll(std::string text) {
  std::vector<Boundary> all;
  while (!text.empty())
    all.push_back(Boundary::decode(text));
  return all;
}

const Boundary *findStep(const std::vector<Boundary> &held, uint64_t step) {
  auto found = std::find_if(held.begin(), held.end(), [&](const Boundary &one) { return one.step == step; });
  return found == held.end() ? nullptr : &*found;
}

} // namespace

void CopyCadence::add(double copyMs, double stepMs) {
  // The third copy is the first whose memory both copies have had before.
  if (++copies >= 3)
    least = copies == 3 ? copyMs : std::min(least, copyMs);
  stepsMs += stepMs;
}

uint64_t CopyCadence::steps() const {
  constexpr double share = 0.01, most = 64;
  if (!known() || stepsMs <= 0)
    return 1;
  return static_cast<uint64_t>(
      std::clamp(std::ceil(least * static_cast<double>(copies) / (share * stepsMs)), 1.0, most));
}

std::string CopyCadence::describe() const {
  uint64_t every = steps();
  double percent = 100 * least * static_cast<double>(copies) / (stepsMs * static_cast<double>(every));
  char text[80];
  snprintf(text, sizeof text, " in %.2f ms: %.1f %% of their time", least, percent);
  return (every == 1 ? "after each step" : "every " + std::to_string(every) + " steps") + text;
}

GoingOn::GoingOn(const Job &job, Session &session)
    : control(session.jobControl()), placing(control.placing()),
      kept(session, job.bundle, job.name, job.trains() ? descriptorOf(placing, control.rank()) : -1,
           placing.attempt > 0) {}

std::optional<Boundary> GoingOn::restore() {
  std::string mine;
  for (const Boundary &boundary : kept.boundaries())
    mine += boundary.encode();
  std::vector<std::vector<Boundary>> held;
  for (const std::string &text : control.allGather("kept", mine))
    held.push_back(decodeAll(text));
  const std::vector<Boundary> &own = held[control.rank()];
  for (size_t i = own.size(); i-- > 0;)
    if (std::all_of(held.begin(), held.end(), [&](const auto &of) { return findStep(of, own[i].step); })) {
      kept.restore(own[i].step);
      return own[i];
    }
  return std::nullopt;
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
  auto began = std::chrono::steady_clock::now();
  kept.copy(boundary);
  lastCopyMs = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  due = boundary.step + cadence.steps();
  isNew = true;
  if (!cadence.known() || std::exchange(printed().cadence, true))
    return "";
  return "restart: each rank copies its state (" + inMiB(kept.bytes()) + ") " + cadence.describe();
}

} // namespace par::core
