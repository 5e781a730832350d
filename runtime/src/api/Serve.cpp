// The program par-rank: ranks that do what a session asks. Rank 0 hears the caller and passes commands on; under a
// launcher every rank has a caller of its own, and all of them call the same.
#include "api/Serve.h"

#include "api/RankWork.h"
#include "api/Start.h"
#include "api/TextSocket.h"
#include "app/Agreement.h"
#include "comm/shared/Memory.h"

#include <array>
#include <fcntl.h>
#include <unistd.h>

namespace par::api {

using core::Failure;
using core::Message;

namespace {

class Server {
public:
  Server(core::Job &job, comm::Control &control)
      : job(job), control(control), hears(control.rank() == 0 || job.alone), connection(dup(socketDescriptor)),
        places(job.bundle.manifest) {
    comm::SharedFile memory(dup(memoryDescriptor));
    mapping = memory.map(std::max<uint64_t>(1, places.bytes()));
    places.lieIn(mapping.bytes);
    if (job.alone)
      core::agreeOnFlags(job, control);
    work = std::make_unique<RankWork>(job, control, places);
  }

  int run() {
    if (hears)
      connection.send(encode(work->answer()));
    for (uint64_t turn = 1;; ++turn) {
      Command command = next();
      if (!control.startStep(turn))
        throw Failure::at("", Message::sessionStopped).exitsWith(core::exitDeadRank);
      Answer answer = perform(command);
      if (hears)
        connection.send(encode(answer));
      if (command.verb == Verb::End)
        return 0;
    }
  }

private:
  /// The next command, at every rank; where the caller has gone, the end.
  Command next() {
    std::string end = encode(Command()), text = hears ? connection.receive().value_or(end) : "";
    if (job.alone) {
      std::vector<std::string> all = control.allGather("command", text);
      for (size_t rank = 1; rank < all.size(); ++rank)
        if (agreedPart(all[rank]) != agreedPart(all[0]))
          throw Failure::at("", Message::callsDiffer, rank, describe(all[rank]), describe(all[0]))
              .exitsWith(core::exitUsage);
    } else {
      text = control.broadcast("command", text);
    }
    Command command = decodeCommand(text);
    const uint64_t place = command.ahead.place;
    for (auto &[index, array] : command.fed)
      array.data = places.input(index, place);
    for (auto &[index, array] : command.ahead.fed)
      array.data = places.input(index, 1 - place);
    command.tensor.data = command.to = places.tensor();
    return command;
  }

  static std::string describe(const std::string &text) {
    constexpr std::array names = {"train", "an entry", "set",  "read",   "write",
                                  "load",  "resume",   "save", "export", "close"};
    Command command = decodeCommand(text);
    std::string name = command.name.empty() ? "" : " \"" + command.name + "\"";
    return names[static_cast<size_t>(command.verb)] + name;
  }

  /// A fault that all ranks see alike is an answer. One rank's, for whom others may be waiting, ends the job.
  Answer perform(const Command &command) {
    if (std::string fault = runsEntry(command.verb) ? "" : prepare(command); !fault.empty())
      return refused(fault.substr(1), fault.front() - '0');
    try {
      Answer answer = work->perform(command);
      if (command.verb != Verb::Train)
        control.barrier("performed");
      return answer;
    } catch (const Failure &failure) {
      if (failure.exitCode() != core::exitNan)
        throw;
      return refused(failure.what(), failure.exitCode());
    }
  }

  /// The first fault of a rank, after the digit of its code, at every rank; "" where none has one.
  std::string prepare(const Command &command) {
    std::string fault;
    try {
      work->prepare(command);
    } catch (const Failure &failure) {
      fault = std::to_string(failure.exitCode()) + failure.what();
    }
    for (const std::string &found : control.allGather("prepared", fault))
      if (!found.empty())
        return found;
    return "";
  }

  Answer refused(const std::string &fault, int code) {
    Answer answer = work->answer();
    answer.error = fault;
    answer.code = code;
    return answer;
  }

  core::Job &job;
  comm::Control &control;
  bool hears;
  TextSocket connection;
  Exchange places;
  comm::Mapping mapping;
  std::unique_ptr<RankWork> work;
};

} // namespace

int serve(const std::vector<std::string> &arguments) {
  // The session's own end, which no later program may hold open.
  fcntl(socketDescriptor, F_SETFD, FD_CLOEXEC);
  fcntl(memoryDescriptor, F_SETFD, FD_CLOEXEC);
  return core::runTool(readOptions(arguments),
                       [](core::Job &job, comm::Control &control) { return Server(job, control).run(); });
}

} // namespace par::api
