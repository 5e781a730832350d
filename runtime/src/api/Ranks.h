// The ranks of a session, wherever they run.
#pragma once

#include "api/Commands.h"
#include "api/Exchange.h"
#include "par/app/Job.h"

#include <memory>

namespace par::api {

/// Used from one thread at a time.
class Ranks {
public:
  virtual ~Ranks() = default;
  /// The bundle that they run.
  virtual const format::Bundle &bundle() const = 0;
  /// Holds the results after an entry has run.
  virtual const Exchange &exchange() const = 0;
  /// Has all ranks do the command. A fault of the command is in the answer; where the ranks are gone, Failure is
  /// thrown, with their story, and again by every later call.
  virtual Answer perform(const Command &command) = 0;
  /// The answer of the start.
  virtual Answer start() = 0;
  /// Makes a save whole that is being written, and ends the ranks.
  virtual void end() = 0;
};

/// One rank, in this process.
std::unique_ptr<Ranks> rankHere(const core::RunOptions &options);

} // namespace par::api
