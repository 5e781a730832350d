#include "Work.h"
#include "par/format/Colors.h"

#include <iostream>

namespace par::serve {

Report::Report(const std::string &path, const Statistics &statistics) : statistics(statistics) {
  if (!path.empty())
    file = std::make_unique<core::StreamWriter>(path);
}

void Report::writeIfDue() {
  if (file && Clock::now() - written > std::chrono::seconds(10))
    write();
}

void Report::write() {
  written = Clock::now();
  if (file)
    file->write(statistics.json() + "\n");
}

void Work::finishCall() {
  server.wake();
  while (std::optional<std::string> line = caller.nextEvent())
    std::cerr << format::colored(*line) << std::endl;
  report.writeIfDue();
}

void Work::fail(std::span<const PendingRequest> batch, const core::Failure &failure) {
  for (const PendingRequest &request : batch) {
    request->answer.error = failure.what();
    request->isDone = true;
    statistics.addError();
  }
  if (exitCode == 0)
    std::cerr << format::colored(failure.what()) << std::endl;
  if (failure.exitCode() == core::exitDeadRank || ++failed == 2) {
    exitCode = failure.exitCode();
    server.stop();
  }
}

} // namespace par::serve
