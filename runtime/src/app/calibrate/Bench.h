// The device of one rank as a measuring bench: entries are played on the session's arena and on scratch memory after
// it.
#pragma once

#include "MadeEntry.h"
#include "RandomRows.h"
#include "par/session/Session.h"

#include <memory>

namespace par::core {

/// The median; 0 of none.
double median(std::vector<double> values);

class Bench {
public:
  Bench(Session &session, const format::Bundle &bundle, uint64_t scratchBytes);

  Session &session;
  const format::Bundle &bundle;
  const format::Program &program;
  const std::vector<comm::Members> table;
  const uint32_t queue; ///< of local work

  /// Address of a byte of the scratch memory.
  std::byte *scratch(uint64_t at = 0) const;
  /// A new entry of local steps or communication. It lives as long as the bench: a device keeps what it makes of one.
  MadeEntry &newEntry();
  /// Seconds of one run.
  double play(const ExpandedEntry &entry);
  /// Begins and ends of its steps, where they cost nothing.
  bool hasStamps() const { return bundle.manifest.device == "cpu"; }
  const std::vector<Stamp> &stamps() const { return session.stamps(); }

private:
  RandomRows rows;
  RowOrder order;
  std::deque<MadeEntry> made;
};

/// ns of one of many equal steps, one after the other, of one rank: `add` appends a step. The median from begin to
/// begin where steps have stamps: a process that takes the core away meanwhile does not count. Else two numbers of
/// steps are timed and their difference counts, so that begin and end of a run do not. Takes about `seconds`.
double timeOfStep(Bench &bench, const std::function<void(MadeEntry &)> &add, double seconds);

/// The same of steps in which several ranks take part, `takesPart` of them. Collective over all ranks of the job, each
/// of which has the answer.
double timeOfSharedStep(Bench &bench, const std::function<void(MadeEntry &)> &add, bool takesPart, double seconds);

} // namespace par::core
