// The device of one rank as a measuring bench: entries are played on the session's arena and on scratch memory after
// it.
#pragma once

#include "MadeEntry.h"
#include "RandomValues.h"
#include "par/calibrate/Calibrate.h"

#include <memory>

namespace par::calibrate {

/// The median; 0 of none.
double median(std::vector<double> values);

class Bench {
public:
  /// `scratchBytes` of memory after the arena are free for use; they hold random numbers.
  Bench(const Setting &setting, uint64_t scratchBytes);

  const Setting &setting;
  const format::Bundle &bundle;
  const uint32_t rank;
  const format::Program &program;
  const std::vector<comm::Members> table;
  const uint32_t queue; ///< of local work

  /// Address of a byte of the scratch memory.
  std::byte *scratch(uint64_t at = 0) const;
  /// An entry of the program.
  const core::ExpandedEntry &entry(const std::string &name) { return loaded.entry(name); }
  /// A new entry of local steps or communication. It lives as long as the bench: a device keeps what it makes of one.
  MadeEntry &newEntry();
  /// Seconds of one run.
  double play(const core::ExpandedEntry &entry);
  /// Begins and ends of its steps, if they cost nothing.
  bool hasStamps() const { return bundle.manifest.device == "cpu"; }
  const std::vector<core::Stamp> &stamps() const { return setting.device.stamps(); }
  /// Whether all work of a rank is that of the thread that plays, whose own time can be had too.
  bool hasThreadTime() const { return hasStamps() && setting.threads == 1; }
  /// The time of a step from its times by both clocks. Other processes lengthen a long step by the clock on the wall:
  /// its own thread's time counts, less what that clock takes more to read.
  double undisturbed(double wallNs, double threadNs) const;
  static constexpr double longStepNs = 100'000;

private:
  void fillMemory(uint64_t scratchBytes);
  void writeHypers();

  double timeOfNothing(bool byThread);

  core::LoadedProgram loaded;
  double clockNs = 0; ///< what the thread's clock takes more than the one on the wall, a step
  RandomHost host;
  std::deque<MadeEntry> made;
};

/// ns of one of many equal steps, one after the other, of one rank: `add` appends a step. The median from begin to
/// begin if steps have stamps: a process that takes the core away meanwhile does not count. Else two numbers of
/// steps are timed and their difference counts, so that begin and end of a run do not. Takes about `seconds`.
double timeOfStep(Bench &bench, const std::function<void(MadeEntry &)> &add, double seconds);

/// The same of steps in which several ranks take part, `takesPart` of them. Collective over all ranks of the job, each
/// of which has the answer.
double timeOfSharedStep(Bench &bench, const std::function<void(MadeEntry &)> &add, bool takesPart, double seconds);

} // namespace par::calibrate
