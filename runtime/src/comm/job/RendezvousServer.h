// The rendezvous and its exchanges. A single-threaded star, driven by step(): par-run's parent process drives it in its
// main loop, rank 0 of a launcher's job in a thread. A rank belongs to the job when all have come: until then it may
// leave and come again, and an error of one is told to all that are there.
#pragma once

#include "AuthGate.h"
#include "Base.h"
#include "HostRelay.h"
#include "Leavers.h"
#include "LocalChannel.h"
#include "Outside.h"
#include "Spares.h"
#include "comm/shared/Memory.h"

namespace par::comm {

/// The memory of a job: the board, where communications meet, one arena a rank. Sized by connect().
struct SharedFiles {
  SharedFile sharedState, exchange;
  std::vector<SharedFile> arenas;

  static SharedFiles create(uint32_t world);
  /// In the order board, exchange, arenas of `world` ranks.
  std::vector<int> descriptors(size_t world) const;
  static SharedFiles from(const std::vector<int> &descriptors);
};

/// Maximum bytes of a rank's message about its failure: with the names around it, it fits on the board.
inline constexpr size_t maxFailure = 512;

/// A rank's introduction when it joins.
struct Join {
  std::string host, rankSource, worldSource;
  uint64_t rank = 0, world = 0, pid = 0;
  std::string failure{}; ///< why it does not take part, but comes to say so; "" where it does
  std::string identity = hostIdentity();
  uint64_t attempts = 0; ///< the last attempt of the job that this rank's processes have joined
  Seated last{};         ///< in that attempt
  bool leaves = false;   ///< with `failure`: the job may go on without this rank
  uint64_t holder = 0;   ///< who holds the rank's state between its processes: holderOfProcess() of its supervisor
  bool spare = false;    ///< it waits to take the place of a rank; `rank` is its number among all processes

  std::string write() const;
  /// Throws std::runtime_error on texts that no rank says.
  static Join read(std::string_view bytes);
};

/// "pid 71 on b".
std::string processOf(const Join &join);

/// The host's word to each rank when all have come.
struct Welcome {
  std::string localChannel; ///< where rank 0's host passes its descriptors on; "" where they were inherited
  std::string carrier;      ///< of buffers between hosts
  HostMap hosts;
  uint64_t attempt = 0;        ///< of the job, from 1; 0 where lost ranks are not started again
  std::vector<uint32_t> seats; ///< by rank of this attempt (Seats.h)

  std::string write() const;
  /// Throws std::runtime_error on bytes that no host writes.
  static Welcome read(std::string_view bytes);
};

/// Settings of a host.
struct RendezvousOptions {
  std::string bundle;
  double joinTimeout = 60;
  std::string key{};                 ///< the secret that ranks from the network must know
  std::string token{};               ///< the secret that the passage gives to ranks
  const SharedFiles *pass = nullptr; ///< the memory that the passage passes; null if ranks inherit it
  std::string failure{};             ///< why rank 0 does not take part, which every rank is told; "" where it does
  uint32_t world = 0;                ///< ranks of the job, where the board has fewer; 0: the board's
  double timeout = 5;                ///< seconds without a sign of life of another host
  bool oneHost = false;              ///< ranks of other hosts are refused
  std::string carrier{};             ///< of buffers between hosts, as told to all ranks
  /// By rank, who holds its state, in memory that outlives this process; empty where lost ranks are not started again.
  std::span<std::atomic<uint64_t>> holders{};
  std::optional<Seats> seats{}; ///< absent: as many as the board has ranks
};

/// A rank's part of an exchange.
struct ExchangedValue {
  Sharing sharing;
  uint32_t root;
  std::string label, bytes;
};

/// Whoever has shown the job's secret.
struct Peer {
  explicit Peer(Connection connection) : connection(std::move(connection)) {}
  Connection connection;
  std::optional<Join> join;
  std::optional<ExchangedValue> value;
  bool refused = false; ///< hung up on when it has been told
};

class RendezvousServer {
public:
  /// Hosts whoever comes to `listener`; without one, whom adopt() brings.
  RendezvousServer(std::optional<Listener> listener, RendezvousOptions hosting, SharedState &sharedState);

  /// A rank's connection that needs to show nothing: it was inherited.
  void adopt(int socket);

  /// Waits up to `milliseconds` for something to do (or for one of `also` to become readable) and does it.
  void step(int milliseconds, const std::vector<int> &also = {});
  /// Tells other hosts that the job or its attempt is over, and spares if the job is.
  void finish();
  /// True when everything queued has been sent.
  bool quiet() const;
  /// Ranks that have been told that there is no job, or why it ends before it began.
  size_t told() const { return refusals; }
  /// Whether all ranks have come.
  bool complete() const { return started; }
  /// Whether a rank may still come that should be told why the job ended before it began.
  bool owesWords() const { return moreMayCome && refusals < awaited; }
  /// The largest number of ranks that a rank has named: so many may come, whichever of them is wrong.
  size_t mayCome() const { return awaited; }

private:
  void handle(Peer &peer, const Message &message);
  void admit(Peer &peer, const Join &join);
  uint32_t world() const { return hosting.world ? hosting.world : seats.all(); }
  /// Why this rank cannot join the job, "" if it can.
  std::string objection(const Join &join) const;
  void exchange();
  void fail(int code, const std::string &message);
  void refuse(Peer &peer, int code, const std::string &line);
  void forgetClosed();
  void start(const std::vector<uint32_t> &chosen);
  void watchJoining();
  /// Whether a rank comes too early for the next attempt: it is told to come again.
  bool comesForNext(const Join &join);

  RendezvousOptions hosting;
  SharedState &sharedState;
  Seats seats;
  std::optional<LocalChannel> localChannel;
  std::optional<AuthGate> gate;
  int64_t deadline;
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<Peer *> members;  ///< by seat until the attempt starts, then by rank
  std::vector<uint32_t> seatOf; ///< by rank
  Outside outside;
  std::optional<HostRelay> relay;
  Spares spares;
  bool started = false, moreMayCome = false, over = false;
  Leavers leavers;
  uint64_t ownAttempt; ///< the next one of this supervisor's
  size_t refusals = 0, awaited;
};

} // namespace par::comm
