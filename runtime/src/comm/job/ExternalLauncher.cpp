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
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace par;
using namespace par::comm;

namespace {

/// How long ranks that come late are told why there is no job.
constexpr int64_t wordsTime = 3'000'000'000;
/// Seconds for which a rank that ends before it has joined looks for rank 0, to say so.
constexpr double tellTime = 5;

/// Milliseconds between two looks at ranks while lost ones are started again.
constexpr int mendingLook = 5;

/// Drives the host until the last answers have been sent.
class ServerThread {
public:
  ServerThread(RendezvousServer &host, bool mends)
      : host(host), mends(mends), wake(eventfd(0, EFD_CLOEXEC)), thread(startThread([this] { loop(); })) {}
  ~ServerThread() {
    ending.store(true);
    eventfd_write(wake, 1);
    thread.join();
    close(wake);
  }

private:
  void loop() {
    while (!ending.load())
      host.step(mends ? mendingLook : 50, {wake});
    host.finish();
    int64_t began = now();
    while (host.owesWords() && now() - began < wordsTime)
      host.step(50);
    while (!host.quiet() && now() - began < wordsTime)
      host.step(50);
  }

  RendezvousServer &host;
  bool mends; ///< each moment after a loss counts
  int wake;
  std::atomic<bool> ending{false};
  std::thread thread;
};

/// How long a rank looks for the leader of its host.
constexpr int64_t leaderTime = 10'000'000'000;
/// Microseconds between two looks for it, and where a job is being mended.
constexpr useconds_t leaderPause = 20'000, leaderPauseAgain = 2'000;

/// The board and files of a host: made by its leader, passed to the others on a local socket.
struct Shared {
  SharedFiles files;
  Mapping memory;
  SharedState *sharedState = nullptr;
};

Shared makeShared(const Launch &launch, uint32_t world, const Supervised *supervised) {
  Shared shared{SharedFiles::create(world), {}, nullptr};
  for (size_t rank = 0; supervised && rank < supervised->arenas.size(); ++rank)
    shared.files.arenas[rank] = SharedFile(fcntl(supervised->arenas[rank], F_DUPFD_CLOEXEC, 0));
  shared.memory = shared.files.sharedState.map(SharedState::bytesFor(world));
  shared.sharedState = SharedState::make(shared.memory.bytes.data(), world);
  shared.sharedState->deadlockAfter.store(uint32_t(launch.timeout * 20));
  shared.sharedState->shrinks.store(launch.shrink.has_value());
  return shared;
}

/// The channel of the leader of this rank's host; that of host 0 is rank 0's own.
std::string channelOf(const LaunchEnvironment &place, const Joined &joined) {
  const Welcome &welcome = joined.welcome;
  uint32_t host = welcome.hosts.hostOf[place.rank];
  return host ? localChannelOf(joined.key, welcome.localChannel, host) : welcome.localChannel;
}

/// The leader of another host than rank 0's may come later than this rank.
Shared fetch(const LaunchEnvironment &place, Joined &joined) {
  Shared shared;
  bool patient = joined.welcome.hosts.hostOf[place.rank] != 0;
  for (int64_t began = now();; usleep(joined.welcome.attempt ? leaderPauseAgain : leaderPause)) {
    try {
      shared.files = SharedFiles::from(fetchDescriptors(channelOf(place, joined), joined.key, place.world + 2));
      break;
    } catch (const LaunchError &) {
      joined.connection.pump();
      if (!patient || now() - began > leaderTime || !joined.connection.open())
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
  shared = makeShared(launch, place.world, nullptr);
  markHosts(*shared.sharedState, hosts, host);
  shared.sharedState->attempt.store(joined.welcome.attempt);
  return std::make_unique<HostLink>(LedHost{*shared.sharedState, hosts, host, shared.files.descriptors(place.world)},
                                    connectAgain(place, tokenOfEnvironment(), joined),
                                    LocalChannel(channelOf(place, joined), "", joined.key), launch.bundle,
                                    launch.timeout);
}

/// Arguments of runUnderLauncher().
struct RankOf {
  const Launch &launch;
  const LaunchEnvironment &place;
  const std::function<int(Control &)> &rankMain;
  const Supervised *supervised;
};

void noteAttempt(RankLife &life, uint64_t attempt, const LaunchEnvironment &place) {
  life.attempts.store(attempt);
  life.rank.store(place.rank);
  life.ranks.store(place.world);
}

Ended runJoined(const RankOf &of, Shared &shared, Joined joined) {
  SharedState &board = *shared.sharedState;
  uint32_t rank = of.place.rank;
  if (of.supervised)
    noteAttempt(of.supervised->life(), joined.welcome.attempt, of.place);
  Heartbeat heartbeat(board, rank, of.launch.timeout, of.launch.bundle, of.supervised);
  ClientControl control(board, of.launch.bundle, of.place, std::move(joined), shared.files, of.supervised);
  int code = runRank(control, board, of.rankMain);
  if (isLost(board) && !board[rank].finished.load())
    return {code, board.message()};
  if (board.aborted() && !isLost(board)) {
    // Something was wrong with how the job was started: each rank says it where that was.
    bool saidHere = board.isClaimedHere() || (of.supervised && of.supervised->together);
    if ((board.lastStep() == 0 || of.launch.callers) && !saidHere)
      printLine(board.message());
    return {board.code(), std::nullopt};
  }
  return {code ? code : interruptCode(board, of.launch.bundle), std::nullopt};
}

/// A rank's introduction when it joins.
Join joinOf(const LaunchEnvironment &place, const Supervised *supervised = nullptr) {
  Join join{hostName(), place.rankSource, place.worldSource, place.rank, place.world, uint64_t(getpid())};
  if (supervised) {
    join.last = {supervised->life().attempts.load(), supervised->life().rank.load(), supervised->life().ranks.load()};
    join.attempts = join.last.attempt;
    join.holder = supervised->lives.holder();
  }
  return join;
}

/// The carrier of buffers between hosts, if there are several.
std::string carrierOf(const Launch &launch, const LaunchEnvironment &place) {
  if (launch.transport == Transport::device)
    return "device";
  bool byMpirun = place.rankSource == "OMPI_COMM_WORLD_RANK" && !launch.restarts;
  bool mpi = launch.transport == Transport::mpi || (launch.transport == Transport::automatic && byMpirun);
  return mpi ? "mpi" : "tcp";
}

/// Settings of this job's host: with PAR_TOKEN, or a secret of its own for ranks of its user.
RendezvousOptions hostingOf(const Launch &launch, const LaunchEnvironment &place,
                            const Supervised *supervised = nullptr) {
  std::string token = tokenOfEnvironment(), own = token.empty() ? randomBytes(proofBytes) : "";
  RendezvousOptions hosting{launch.bundle, launch.joinTimeout};
  hosting.key = keyOf(token.empty() ? own : token, place.job);
  hosting.token = own;
  hosting.timeout = launch.timeout;
  hosting.oneHost = launch.transport == Transport::shm;
  hosting.carrier = carrierOf(launch, place);
  if (supervised)
    hosting.seats.emplace(launch, place.world, &supervised->lives);
  return hosting;
}

/// Who handles the terminal's Ctrl-C.
CtrlC ctrlCOf(const Supervised *supervised) { return supervised ? CtrlC::inParent : CtrlC::here; }

/// The rendezvous's port, which a supervisor holds between attempts.
Listener listenerOf(const LaunchEnvironment &place, const Supervised *supervised) {
  return supervised ? Listener(fcntl(supervised->listener, F_DUPFD_CLOEXEC, 0)) : Listener::rendezvous(place);
}

/// Rank 0 comes to its own host through no door.
Ended runHosting(const RankOf &of) {
  Listener listener = listenerOf(of.place, of.supervised);
  Shared shared = makeShared(of.launch, of.place.world, of.supervised);
  if (of.supervised)
    shared.sharedState->attempt.store(of.supervised->life().attempts.load() + 1);
  Interrupt interrupt(*shared.sharedState, 0, ctrlCOf(of.supervised));
  RendezvousOptions hosting = hostingOf(of.launch, of.place, of.supervised);
  hosting.pass = &shared.files;
  if (of.supervised)
    hosting.holders = of.supervised->lives.holders();
  RendezvousServer host(std::move(listener), hosting, *shared.sharedState);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw LaunchError(exitRankLost, say(Sentence::cannotListen, "a local socket", std::strerror(errno)));
  host.adopt(ends[0]);
  ServerThread thread(host, of.supervised && !of.supervised->together);
  Connection connection(ends[1]);
  connection.trust();
  Join join = joinOf(of.place, of.supervised);
  std::optional<Joined> joined = enrol(std::move(connection), join, of.launch.joinTimeout, [] {});
  if (!joined)
    throw LaunchError(exitRankLost, say(Sentence::hostHungUp, of.place.rank));
  joined->key = hosting.key;
  LaunchEnvironment place = joined->placeIn(of.place);
  return runJoined({of.launch, place, of.rankMain, of.supervised}, shared, std::move(*joined));
}

/// The board and memory of this rank's host, and its leader's link to rank 0's.
struct OnHost {
  Shared shared;
  std::unique_ptr<HostLink> link;
};

OnHost enter(const RankOf &of, Joined &joined) {
  const HostMap &hosts = joined.welcome.hosts;
  uint32_t host = hosts.hostOf[of.place.rank];
  OnHost on;
  if (host != 0 && hosts.leaderOf(host) == of.place.rank)
    on.link = lead(of.launch, of.place, joined, on.shared);
  else
    on.shared = fetch(of.place, joined);
  return on;
}

/// A signal that comes before the first step ends a rank at once. -n's is told to rank 0.
void endIfAskedEarly(const RankOf &of) {
  const Supervised *supervised = of.supervised;
  uint64_t asked = supervised && !supervised->together ? supervised->lives.asked().load() : 0;
  if (asked && supervised->life().attempts.load() == 0)
    throw Refused(128 + Signal::of(asked).number, describeEarly(Signal::of(asked), of.launch.bundle));
}

Ended runJoining(const RankOf &of) {
  auto warn = [&](const std::string &what) { printLine(noteLine(of.launch.bundle, what)); };
  Join join = joinOf(of.place, of.supervised);
  auto look = [&] { endIfAskedEarly(of); };
  Joined joined = joinServer(of.place, tokenOfEnvironment(), join, of.launch.joinTimeout, warn, look);
  LaunchEnvironment place = joined.placeIn(of.place);
  if (of.supervised)
    noteAttempt(of.supervised->life(), joined.welcome.attempt, place);
  RankOf here{of.launch, place, of.rankMain, of.supervised};
  OnHost on;
  try {
    on = enter(here, joined);
  } catch (const std::runtime_error &error) {
    if (!joined.welcome.attempt)
      throw;
    return {exitRankLost, error.what()};
  }
  Interrupt interrupt(*on.shared.sharedState, int(place.rank), ctrlCOf(of.supervised));
  return runJoined(here, on.shared, std::move(joined));
}

/// Rank 0, which does not take part, tells the ranks that come. Their number may be wrong: none of them needs a place
/// on the board.
void hostFailed(const Launch &launch, const LaunchEnvironment &place, const std::string &why, Listener port) {
  Mapping memory = mapPrivate(SharedState::bytesFor(1));
  SharedState &sharedState = *SharedState::make(memory.bytes.data(), 1);
  sharedState.claim();
  RendezvousOptions hosting = hostingOf(launch, place);
  hosting.failure = why;
  hosting.world = place.world;
  hosting.joinTimeout = 1e6; // no rank is waited for: a rank that comes is told why there is no job
  RendezvousServer host(std::move(port), hosting, sharedState);
  for (int64_t began = now(); host.told() + 1 < host.mayCome() && now() - began < wordsTime;)
    host.step(50);
  for (int64_t began = now(); !host.quiet() && now() - began < wordsTime;)
    host.step(50);
}

} // namespace

Ended par::comm::runUnderLauncher(const Launch &launch, const LaunchEnvironment &place,
                                  const std::function<int(Control &)> &rankMain, const Supervised *supervised) {
  RankOf of{launch, place, rankMain, supervised};
  try {
    return place.rank == 0 ? runHosting(of) : runJoining(of);
  } catch (const Refused &refused) {
    // Rank 0's host has said it already, in this process; every other rank says it where it was started.
    if (place.rank != 0 && !(supervised && supervised->together))
      printLine(refused.what());
    return {refused.code, std::nullopt};
  }
}

void par::comm::tellOthers(const Launch &launch, const LaunchEnvironment &place, const std::string &why) {
  if (place.world == 1 || place.port == 0 || place.spare)
    return;
  std::string line = format::printable(why.substr(0, std::min(why.find('\n'), maxFailure)));
  try {
    if (place.rank == 0)
      return hostFailed(launch, place, line, Listener::rendezvous(place));
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

void par::comm::tellGivenUp(const Launch &launch, const LaunchEnvironment &place, const std::string &why, Listener port,
                            uint64_t attempts, bool mayLeave) {
  try {
    if (place.rank == 0)
      return hostFailed(launch, place, why, std::move(port));
    Join join = joinOf(place);
    join.failure = why.substr(0, maxFailure);
    join.attempts = attempts;
    join.holder = holderOfProcess();
    join.leaves = mayLeave;
    joinServer(place, tokenOfEnvironment(), join, tellTime, [](const std::string &) {});
  } catch (const std::runtime_error &) {
    // It has been said here; no host is there to take it, or it has refused, as it should.
  }
}
