// Opens the bundle and computes: batches of requests, one call of predict each, or prompts.
#include "par/serve/Serve.h"
#include "par/format/Colors.h"

#include "Continuing.h"
#include "Prompts.h"
#include "Work.h"
#include "api/Start.h"
#include "par/app/Job.h"
#include "par/data/InputChecks.h"
#include "par/format/SignalsHeld.h"
#include "par/messages/Failure.h"

#include <csignal>
#include <filesystem>
#include <iostream>

namespace par::serve {

using core::Failure;
using core::RunOptions;

namespace {

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
int predict(Served &served, Work &work) {
  for (auto batch = work.queue.gather(); !batch.empty(); batch = work.queue.gather()) {
    std::vector<const Request *> requests;
    uint64_t rows = 0;
    for (const PendingRequest &request : batch) {
      requests.push_back(&request->request);
      rows += request->request.rows;
    }
    try {
      std::vector<std::vector<ResultArray>> results = served.predict(requests);
      work.statistics.addCall(rows);
      for (size_t i = 0; i < batch.size(); ++i) {
        batch[i]->answer.results = std::move(results[i]);
        batch[i]->isDone = true;
      }
      work.succeed();
    } catch (const Failure &failure) {
      work.fail(batch, failure);
    }
    work.finishCall();
  }
  return work.code();
}

/// The answers of a bundle, from arrays or from prompts.
struct Answers {
  std::unique_ptr<Served> served;
  core::DecoderShape shape; ///< without `served`
  std::unique_ptr<MessageReader> reader;
  std::string described; ///< of the first line
  uint64_t rows = 1;
  bool gathers = true;
};

Answers answersOf(const std::string &bundle, api::Caller &caller) {
  Answers answers;
  if (isDecoder(caller.bundle().manifest)) {
    const core::DecoderShape &shape = answers.shape = core::shapeOfDecoder(caller.bundle(), bundle);
    answers.reader = std::make_unique<PromptReader>(answers.shape);
    answers.rows = shape.rows;
    answers.described =
        core::format("prompts, {} at a time, of {} tokens at most with those that follow", shape.rows, shape.slots);
    return answers;
  }
  answers.served = std::make_unique<Served>(bundle, caller);
  const Takes &takes = answers.served->takes();
  answers.reader = std::make_unique<RequestReader>(takes);
  answers.rows = takes.rows;
  answers.gathers = takes.gathers;
  answers.described = core::format("inputs {}; outputs {}; {}{} rows a call", core::describeInputs(*takes.manifest),
                                   describeOutputs(takes), takes.gathers ? "up to " : "", takes.rows);
  return answers;
}

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
  api::Caller caller(api::startRanks(argumentsOfSession(arguments), /*isolated=*/false, worker));
  Answers answers = answersOf(core::nameOf(options), caller);
  while (std::optional<std::string> line = caller.nextEvent())
    std::cerr << format::colored(*line) << std::endl;
  Statistics statistics;
  Report report(options.metrics, statistics);
  Queue queue(answers.rows, answers.gathers, std::chrono::microseconds(static_cast<int64_t>(options.maxWait * 1e3)));
  Server server(options.serve, answers.rows, *answers.reader, queue, statistics);
  std::ostream &say = options.serve == "-" ? std::cerr : std::cout;
  if (!options.quiet)
    say << "serving " << server.name() << ": " << answers.described << std::endl;
  server.start();
  Work work(caller, queue, server, statistics, report);
  int code = answers.served ? predict(*answers.served, work) : Continuing(caller, answers.shape, work).run();
  server.finish();
  report.write();
  if (!options.quiet)
    say << statistics.sentence() << std::endl;
  if (code == 0)
    caller.end();
  return code;
}

} // namespace par::serve
