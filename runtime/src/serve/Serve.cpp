// The thread that computes: batches of requests, one call of predict each.
#include "par/serve/Serve.h"

#include "Server.h"
#include "par/app/Job.h"
#include "par/data/InputChecks.h"
#include "par/files/FileWriter.h"
#include "par/format/SignalsHeld.h"
#include "par/messages/Failure.h"

#include <csignal>
#include <filesystem>
#include <iostream>

namespace par::serve {

using core::Failure;
using core::RunOptions;

namespace {

/// --metrics: a line every ten seconds, and the last one.
class Report {
public:
  Report(const std::string &path, const Statistics &statistics) : statistics(statistics) {
    if (!path.empty())
      file = std::make_unique<core::StreamWriter>(path);
  }
  void writeIfDue() {
    if (file && Clock::now() - written > std::chrono::seconds(10))
      write();
  }
  void write() {
    written = Clock::now();
    if (file)
      file->write(statistics.json() + "\n");
  }

private:
  const Statistics &statistics;
  std::unique_ptr<core::StreamWriter> file;
  Clock::time_point written = Clock::now();
};

/// `"x" f32[8, 4]`, all of them; the batch is that of a call.
std::string describeOutputs(const Takes &takes) {
  core::NameList names;
  for (const format::Output *output : takes.outputs)
    names.add("\"" + output->name + "\" " + core::describeArray(output->type, output->shape));
  return names.empty() ? "none" : names.str();
}

/// Arguments of par-run without those that only a server takes.
std::vector<std::string> argumentsOfSession(const std::vector<std::string> &arguments) {
  std::vector<std::string> kept;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &argument = arguments[i];
    std::string name = argument.substr(0, argument.find('='));
    if (name != "--serve" && name != "--max-wait" && name != "--metrics")
      kept.push_back(argument);
    else if (name == argument)
      ++i;
  }
  return kept;
}

/// Runs batches until the queue is closed and empty. Returns the exit code.
class Answering {
public:
  Answering(Served &served, Queue &queue, Server &server, Statistics &statistics, Report &report)
      : served(served), queue(queue), server(server), statistics(statistics), report(report) {}

  int run() {
    for (auto batch = queue.gather(); !batch.empty(); batch = queue.gather()) {
      compute(batch);
      for (const PendingRequest &request : batch)
        request->isDone = true;
      server.wake();
      for (const std::string &line : served.events())
        std::cerr << line << std::endl;
      report.writeIfDue();
    }
    return code;
  }

private:
  void compute(const std::vector<PendingRequest> &batch) {
    std::vector<const Request *> requests;
    uint64_t rows = 0;
    for (const PendingRequest &request : batch) {
      requests.push_back(&request->request);
      rows += request->request.rows;
    }
    try {
      std::vector<std::vector<ResultArray>> results = served.predict(requests);
      for (size_t i = 0; i < batch.size(); ++i)
        batch[i]->answer.results = std::move(results[i]);
      statistics.addCall(rows);
      failed = 0;
    } catch (const Failure &failure) {
      fail(batch, failure);
    }
  }

  /// Requests are checked before they are computed: a fault is the ranks'. Without them, or with two in a row, the
  /// server ends.
  void fail(const std::vector<PendingRequest> &batch, const Failure &failure) {
    for (const PendingRequest &request : batch) {
      request->answer.error = failure.what();
      statistics.addError();
    }
    if (code == 0)
      std::cerr << failure.what() << std::endl;
    if (failure.exitCode() == core::exitDeadRank || ++failed == 2) {
      code = failure.exitCode();
      server.stop();
    }
  }

  Served &served;
  Queue &queue;
  Server &server;
  Statistics &statistics;
  Report &report;
  int failed = 0, code = 0;
};

} // namespace

int serve(const RunOptions &options, const std::vector<std::string> &arguments) {
  std::signal(SIGPIPE, SIG_IGN); // a client that has gone is no reason to end
  // Ends the server in order. All threads inherit it; where the bundle is opened, it waits.
  sigset_t ending;
  sigemptyset(&ending);
  for (int signal : format::endingSignals)
    sigaddset(&ending, signal);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  std::string worker = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "par-rank";
  Served served(core::nameOf(options), argumentsOfSession(arguments), worker);
  for (const std::string &line : served.events())
    std::cerr << line << std::endl;
  const Takes &takes = served.takes();
  Statistics statistics;
  Report report(options.metrics, statistics);
  Queue queue(takes.rows, takes.gathers, std::chrono::microseconds(static_cast<int64_t>(options.maxWait * 1e3)));
  Server server(options.serve, takes, queue, statistics);
  std::ostream &say = options.serve == "-" ? std::cerr : std::cout;
  if (!options.quiet)
    say << "serving " << server.name() << ": inputs " << core::describeInputs(*takes.manifest) << "; outputs "
        << describeOutputs(takes) << "; " << (takes.gathers ? "up to " : "") << takes.rows << " rows a call"
        << std::endl;
  server.start();
  int code = Answering(served, queue, server, statistics, report).run();
  server.finish();
  report.write();
  if (!options.quiet)
    say << statistics.sentence() << std::endl;
  if (code == 0)
    served.end();
  return code;
}

} // namespace par::serve
