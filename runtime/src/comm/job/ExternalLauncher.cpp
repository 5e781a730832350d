// A rank that a launcher started.
#include "Heartbeat.h"
#include "HostLink.h"
#include "Interrupt.h"
#include "Local.h"
#include "Processes.h"
#include "RendezvousClient.h"
#include "comm/shared/Diagnosis.h"
#include "comm/shared/Threads.h"
#include "par/comm/job/Ending.h"
#include "par/format/Printable.h"
#include "par/messages/CommMessages.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

using namespace par;
using namespace par::comm;

namespace {

/// How long ranks that come late are told why there is no job.
constexpr int64_t wordsTime = 3'000'000'000;
/// Seconds for which a rank that ends before it has joined looks for rank 0, to say so.
constexpr double tellTime = 5;

/// Drives the host until the last answers have been sent.
class ServerThread {
public:
  explicit ServerThread(RendezvousServer &host) : host(host), thread(startThread([this] { loop(); })) {}
  ~ServerThread() {
    ending.store(true);
    thread.join();
  }

private:
  void loop() {
    while (!ending.load())
      host.step(50);
    host.finish();
    int64_t began = now();
    while (host.owesWords() && now() - began < wordsTime)
      host.step(50);
    while (!host.quiet() && now() - began < wordsTime)
      host.step(50);
  }

  RendezvousServer &host;
  std::atomic<bool> ending{false};
  std::thread thread;
};

/// How long a rank looks for the leader of its host.
constexpr int64_t leaderTime = 10'000'000'000;

/// The board and files of a host: made by its leader, passed to the others on a local socket.
struct Shared {
  SharedFiles files;
  Mapping memory;
  SharedState *sharedState = nullptr;
};

Shared makeShared(const Launch &launch, uint32_t world) {
  Shared shared{SharedFiles::create(world), {}, nullptr};
  shared.memory = shared.files.sharedState.map(SharedState::bytesFor(world));
  shared.sharedState = SharedState::make(shared.memory.bytes.data(), world);
  shared.sharedState->deadlockAfter.store(uint32_t(launch.timeout * 20));
  return shared;
}

/// The channel of the leader of this rank's host; that of host 0 is rank 0's own.
std::string channelOf(const LaunchEnvironment &place, const Joined &joined) {
  const Welcome &welcome = joined.welcome;
  uint32_t host = welcome.hosts.hostOf[place.rank];
  return host ? localChannelOf(joined.key, welcome.localChannel, host) : welcome.localChannel;
}

/// The leader of another host than rank 0's may come later than this rank.
Shared fetch(const LaunchEnvironment &place, const Joined &joined) {
  Shared shared;
  bool patient = joined.welcome.hosts.hostOf[place.rank] != 0;
  for (int64_t began = now();; usleep(20'000)) {
    try {
      shared.files = SharedFiles::from(fetchDescriptors(channelOf(place, joined), joined.key, place.world + 2));
      break;
    } catch (const LaunchError &) {
      if (!patient || now() - began > leaderTime)
        throw;
    }
  }
  shared.memory = shared.files.sharedState.map(SharedState::bytesFor(place.world));
  shared.sharedState = reinterpret_cast<SharedState *>(shared.memory.bytes.data());
  return shared;
}

/// Leads this rank's host, which is not rank 0's.
std::unique_ptr<HostLink> lead(const Launch &launch, const LaunchEnvironment &place, const Joined &joined,
                               Shared &shared) {
  const HostMap &hosts = joined.welcome.hosts;
  uint32_t host = hosts.hostOf[place.rank];
  shared = makeShared(launch, place.world);
  markHosts(*shared.sharedState, hosts, host);
  return std::make_unique<HostLink>(LedHost{*shared.sharedState, hosts, host, shared.files.descriptors()},
                                    connectAgain(place, tokenOfEnvironment(), joined),
                                    LocalChannel(channelOf(place, joined), "", joined.key), launch.bundle,
                                    launch.timeout);
}

int runJoined(const Launch &launch, const LaunchEnvironment &place, Shared &shared, Joined joined,
              const std::function<int(Control &)> &rankMain) {
  Heartbeat heartbeat(*shared.sharedState, place.rank, launch.timeout, launch.bundle);
  ClientControl control(*shared.sharedState, launch.bundle, place, std::move(joined), shared.files);
  int code = runRank(control, *shared.sharedState, rankMain);
  if (shared.sharedState->aborted()) {
    // Something was wrong with how the job was started: each rank says it where that was.
    if (shared.sharedState->lastStep() == 0 && !shared.sharedState->isClaimedHere())
      printLine(shared.sharedState->message());
    return shared.sharedState->code();
  }
  return code ? code : interruptCode(*shared.sharedState, launch.bundle);
}

/// A rank's introduction when it joins.
Join joinOf(const LaunchEnvironment &place) {
  return {hostName(), place.rankSource, place.worldSource, place.rank, place.world, uint64_t(getpid())};
}

/// The carrier of buffers between hosts, if there are several.
std::string carrierOf(const Launch &launch, const LaunchEnvironment &place) {
  if (launch.transport == Transport::device)
    return "device";
  bool byMpirun = place.rankSource == "OMPI_COMM_WORLD_RANK";
  bool mpi = launch.transport == Transport::mpi || (launch.transport == Transport::automatic && byMpirun);
  return mpi ? "mpi" : "tcp";
}

/// Settings of this job's host: with PAR_TOKEN, or a secret of its own for ranks of its user.
RendezvousOptions hostingOf(const Launch &launch, const LaunchEnvironment &place) {
  std::string token = tokenOfEnvironment(), own = token.empty() ? randomBytes(proofBytes) : "";
  RendezvousOptions hosting{launch.bundle, launch.joinTimeout};
  hosting.key = keyOf(token.empty() ? own : token, place.job);
  hosting.token = own;
  hosting.timeout = launch.timeout;
  hosting.oneHost = launch.transport == Transport::shm;
  hosting.carrier = carrierOf(launch, place);
  return hosting;
}

/// Rank 0 comes to its own host through no door.
int runHosting(const Launch &launch, const LaunchEnvironment &place, const std::function<int(Control &)> &rankMain) {
  Listener listener = Listener::rendezvous(place);
  Shared shared = makeShared(launch, place.world);
  Interrupt interrupt(*shared.sharedState, 0);
  RendezvousOptions hosting = hostingOf(launch, place);
  hosting.pass = &shared.files;
  RendezvousServer host(std::move(listener), hosting, *shared.sharedState);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw LaunchError(exitRankLost, say(Sentence::cannotListen, "a local socket", std::strerror(errno)));
  host.adopt(ends[0]);
  ServerThread thread(host);
  Connection connection(ends[1]);
  connection.trust();
  std::optional<Joined> joined = enrol(std::move(connection), joinOf(place), launch.joinTimeout, [] {});
  if (!joined)
    throw LaunchError(exitRankLost, say(Sentence::hostHungUp, place.rank));
  joined->key = hosting.key;
  return runJoined(launch, place, shared, std::move(*joined), rankMain);
}

/// Rank 0, which does not take part, tells the ranks that come. Their number may be wrong: none of them needs a place
/// on the board.
void hostFailed(const Launch &launch, const LaunchEnvironment &place, const std::string &why) {
  Mapping memory = mapPrivate(SharedState::bytesFor(1));
  SharedState &sharedState = *SharedState::make(memory.bytes.data(), 1);
  sharedState.claim();
  RendezvousOptions hosting = hostingOf(launch, place);
  hosting.failure = why;
  hosting.world = place.world;
  hosting.joinTimeout = 1e6; // no rank is waited for: a rank that comes is told why there is no job
  RendezvousServer host(Listener::rendezvous(place), hosting, sharedState);
  for (int64_t began = now(); host.told() + 1 < host.mayCome() && now() - began < wordsTime;)
    host.step(50);
  for (int64_t began = now(); !host.quiet() && now() - began < wordsTime;)
    host.step(50);
}

} // namespace

int par::comm::runUnderLauncher(const Launch &launch, const LaunchEnvironment &place,
                                const std::function<int(Control &)> &rankMain) {
  try {
    if (place.rank == 0)
      return runHosting(launch, place, rankMain);
    auto warn = [&](const std::string &what) { printLine(launch.bundle + ": warning: " + what); };
    Joined joined = joinServer(place, tokenOfEnvironment(), joinOf(place), launch.joinTimeout, warn);
    const HostMap &hosts = joined.welcome.hosts;
    uint32_t host = hosts.hostOf[place.rank];
    Shared shared;
    std::unique_ptr<HostLink> link;
    if (host != 0 && hosts.leaderOf(host) == place.rank)
      link = lead(launch, place, joined, shared);
    else
      shared = fetch(place, joined);
    Interrupt interrupt(*shared.sharedState, int(place.rank));
    return runJoined(launch, place, shared, std::move(joined), rankMain);
  } catch (const Refused &refused) {
    // Rank 0's host has said it already, in this process; every other rank says it where it was started.
    if (place.rank != 0)
      printLine(refused.what());
    return refused.code;
  }
}

void par::comm::tellOthers(const Launch &launch, const LaunchEnvironment &place, const std::string &why) {
  if (place.world == 1 || place.port == 0)
    return;
  std::string line = format::printable(why.substr(0, std::min(why.find('\n'), maxFailure)));
  try {
    if (place.rank == 0)
      return hostFailed(launch, place, line);
    Join join = joinOf(place);
    join.failure = line;
    joinServer(place, tokenOfEnvironment(), join, tellTime, [](const std::string &) {});
  } catch (const Refused &refused) {
    if (std::string_view(refused.what()).find(line) == std::string_view::npos)
      printLine(refused.what());
  } catch (const std::runtime_error &) {
    // This rank's failure has been reported; no host is there to take it.
  }
}
