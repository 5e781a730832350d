// Ranks in processes of their own: the program par-rank starts them as par-run does. Arrays go through shared
// memory, commands over a socket. A rank that dies ends its job there, and the caller gets the story as an error.
#include "api/RankProcesses.h"

#include "api/TextSocket.h"
#include "comm/shared/Memory.h"
#include "par/messages/Failure.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern "C" char **environ;

namespace par::api {

using core::Failure;
using core::Message;

namespace {

using namespace std::chrono_literals;

/// Descriptors 0 to 4 of the program, and its own session: Ctrl-C is the caller's.
class SpawnPlan {
public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  void give(int descriptor, int as) { posix_spawn_file_actions_adddup2(&actions, descriptor, as); }
  void giveNothing(int as) { posix_spawn_file_actions_addopen(&actions, as, "/dev/null", O_RDONLY, 0); }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

/// A descriptor above those that the program gets.
int lifted(int descriptor) {
  int high = fcntl(descriptor, F_DUPFD_CLOEXEC, memoryDescriptor + 1);
  close(descriptor);
  return high;
}

class RankProcesses final : public Ranks {
public:
  RankProcesses(format::Bundle &&given, const std::vector<std::string> &arguments, const std::string &worker)
      : content(std::move(given)), places(content.manifest), memory(comm::SharedFile::create("par-session")),
        output(comm::SharedFile::create("par-session-output")) {
    memory.resize(std::max<uint64_t>(1, places.bytes()));
    mapping = memory.map(std::max<uint64_t>(1, places.bytes()));
    places.lieIn(mapping.bytes);
    spawn(arguments, worker);
  }
  ~RankProcesses() override { leave(1s); }

  const format::Bundle &bundle() const override { return content; }
  const Exchange &exchange() const override { return places; }
  Answer start() override { return receive(); }

  Answer perform(const Command &command) override {
    if (!story.empty())
      throw Failure::at("", Message::sessionEnded, story).exitsWith(storyCode);
    const Ahead &ahead = command.ahead;
    if (!ahead.isTold)
      copyIn(command.fed, ahead.place);
    copyIn(places.tensor(), command.tensor);
    connection->send(encode(command));  // where it fails, receive() says why
    copyIn(ahead.fed, 1 - ahead.place); // beside the run
    places.arrive(ahead.number);
    Answer answer = receive();
    if (command.verb == Verb::Read && answer.error.empty())
      std::memcpy(command.to, places.tensor(), command.bytes);
    return answer;
  }

  void end() override {
    if (!story.empty())
      return;
    connection->send(encode(Command()));
    receive();
    leave(60s);
  }

private:
  void copyIn(const FedArrays &arrays, uint64_t place) const {
    for (const auto &[index, array] : arrays)
      copyIn(places.input(index, place), array);
  }

  static void copyIn(std::byte *to, const core::FedArray &array) {
    if (array.data)
      std::memcpy(to, array.data, static_cast<uint64_t>(core::elementCount(array.shape)) * format::sizeOf(array.type));
  }

  void spawn(const std::vector<std::string> &arguments, const std::string &worker) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw Failure::at("", Message::cannotStartRanks, worker, std::strerror(errno));
    connection.emplace(ends[0]);
    int theirs = lifted(ends[1]), shared = lifted(dup(memory.descriptor())), said = lifted(dup(output.descriptor()));
    SpawnPlan plan;
    plan.giveNothing(STDIN_FILENO);
    plan.give(said, STDOUT_FILENO);
    plan.give(said, STDERR_FILENO);
    plan.give(theirs, socketDescriptor);
    plan.give(shared, memoryDescriptor);
    std::vector<char *> argv{const_cast<char *>(worker.c_str())};
    for (const std::string &argument : arguments)
      argv.push_back(const_cast<char *>(argument.c_str()));
    argv.push_back(nullptr);
    int fault = posix_spawn(&child, worker.c_str(), &plan.actions, &plan.attributes, argv.data(), environ);
    for (int descriptor : {theirs, shared, said})
      close(descriptor);
    if (fault) {
      child = 0;
      throw Failure::at("", Message::cannotStartRanks, worker, std::strerror(fault));
    }
  }

  Answer receive() {
    if (std::optional<std::string> text = connection->receive())
      return decodeAnswer(*text);
    int status = leave(10s);
    tellStory(status);
    throw Failure::verbatim(story, storyCode);
  }

  /// The last words of the process, or how it ended.
  void tellStory(int status) {
    std::string said(static_cast<size_t>(std::max<off_t>(0, lseek(output.descriptor(), 0, SEEK_END))), '\0');
    ssize_t n = pread(output.descriptor(), said.data(), said.size(), 0);
    said.resize(static_cast<size_t>(std::max<ssize_t>(0, n)));
    while (said.ends_with('\n'))
      said.pop_back();
    std::string how = WIFSIGNALED(status) ? std::string("was ended by ") + strsignal(WTERMSIG(status))
                                          : core::format("ended with code {}", WEXITSTATUS(status));
    storyCode = WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : core::exitDeadRank;
    story = said.find("error: ") != std::string::npos
                ? said
                : Failure::at("", Message::ranksEnded, how, said.empty() ? "" : "; it said: " + said).what();
  }

  /// Hangs up and waits so long for the process to end by itself, then ends it; its wait status.
  int leave(std::chrono::steady_clock::duration patience) {
    connection->hangUp();
    int status = 0;
    auto end = std::chrono::steady_clock::now() + patience;
    bool killed = false;
    while (child > 0) {
      pid_t found = waitpid(child, &status, killed ? 0 : WNOHANG);
      if (found == child || (found < 0 && errno != EINTR))
        child = 0;
      else if (!killed && std::chrono::steady_clock::now() > end)
        killed = kill(-child, SIGKILL) == 0 || kill(child, SIGKILL) == 0;
      else if (!killed)
        std::this_thread::sleep_for(2ms);
    }
    return status;
  }

  format::Bundle content;
  Exchange places;
  comm::SharedFile memory, output;
  comm::Mapping mapping;
  std::optional<TextSocket> connection;
  pid_t child = 0;
  std::string story; ///< of ranks that are gone
  int storyCode = core::exitDeadRank;
};

} // namespace

std::unique_ptr<Ranks> rankProcesses(format::Bundle &&bundle, const std::vector<std::string> &arguments,
                                     const std::string &worker) {
  return std::make_unique<RankProcesses>(std::move(bundle), arguments, worker);
}

} // namespace par::api
