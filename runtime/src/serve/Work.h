// The surroundings of the computing thread, whatever it computes.
#pragma once

#include "Server.h"
#include "api/Caller.h"
#include "par/files/FileWriter.h"
#include "par/messages/Failure.h"

#include <span>

namespace par::serve {

/// --metrics: a line every ten seconds, and the last one.
class Report {
public:
  Report(const std::string &path, const Statistics &statistics);
  void writeIfDue();
  void write();

private:
  const Statistics &statistics;
  std::unique_ptr<core::StreamWriter> file;
  Clock::time_point written = Clock::now();
};

class Work {
public:
  Work(api::Caller &caller, Queue &queue, Server &server, Statistics &statistics, Report &report)
      : queue(queue), statistics(statistics), caller(caller), server(server), report(report) {}

  Queue &queue;
  Statistics &statistics;

  /// A call is done: its answers go out, and warnings of the session to standard error.
  void finishCall();
  /// A call for these requests has failed, and they have their answer. Requests are checked before they are computed:
  /// a fault is the ranks'. Without them, or with two in a row, the server ends.
  void fail(std::span<const PendingRequest> batch, const core::Failure &failure);
  void succeed() { failed = 0; }
  /// The exit code so far.
  int code() const { return exitCode; }

private:
  api::Caller &caller;
  Server &server;
  Report &report;
  int failed = 0, exitCode = 0;
};

} // namespace par::serve
