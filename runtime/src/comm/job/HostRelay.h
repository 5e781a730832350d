// Rank 0's side of the links between the boards of a job's hosts. A star: the leader of each other host (its first
// rank) has a connection to rank 0's host besides the one of its exchanges. Over it go digests of boards, the job's
// end, and the agreement on the last step:
//
//   a signal on any host        leader -> rank 0: stop
//   no rank starts a step       rank 0 -> leaders: stop; leader -> rank 0: frozen, with its last step
//   the largest one is the last rank 0 -> leaders: allowed
#pragma once

#include "BoardDigest.h"
#include "Heartbeat.h"
#include "Hosts.h"
#include "par/comm/engine/Communicator.h"

#include <optional>
#include <poll.h>

namespace par::comm {

class HostRelay {
public:
  HostRelay(SharedState &board, HostMap hosts, std::string bundle, double timeout);

  /// The connection of a host's leader, whom no message but these follows.
  void adopt(uint64_t host, Connection connection);
  void watch(std::vector<pollfd> &polled) const;
  /// Does what is to be done, without waiting.
  void step();
  /// Tells the leaders that the job is over, or why it ended.
  void finish();
  /// Whether everything has been sent.
  bool quiet() const;

private:
  struct Link {
    Link(HostMap &hosts, uint32_t host);
    uint32_t host;
    std::vector<uint32_t> ranks;
    std::optional<Connection> connection;
    BoardDigest others; ///< of all ranks that are not on this host
    int64_t heard = now(), told = 0;
    bool warned = false, over = false, stopSent = false, endSent = false;
    std::optional<uint64_t> frozen; ///< its last step
  };
  void handle(Link &link, const Message &message);
  void tell(Link &link);
  void agreeOnStop();
  void judge(Link &link);
  void lose(const std::string &message);
  void takeLoss(const Message &message);

  SharedState &board;
  HostMap hosts;
  std::string bundle;
  Patience patience;
  std::vector<Link> links;
  bool stopSettled = false;
};

/// Says once that a host has been silent for half of the time that it has: `warned` until it is heard again. A
/// launcher that ends the job at once when it loses a host leaves no time to name it later.
void warnOfSilence(SharedState &board, const std::string &bundle, const std::vector<uint32_t> &ranks,
                   const Patience &patience, int64_t heard, bool &warned);

/// A job's end as it travels between hosts.
Message endOf(SharedState &board);
/// Ends the job on this board as on the other one; the first process that hears of it prints it.
void takeEnd(SharedState &board, const Message &message);

/// The signal that asked a job to stop, if one did, as it travels between hosts.
Message stopOf(SharedState &board);
/// Stops the job on this board, too.
void takeStop(SharedState &board, const Message &message);

/// Seconds that a host may be silent, at least; at most, once a signal has asked the job to stop: whoever sent it, as
/// mpirun where it has lost a host, kills the ranks soon.
inline constexpr double minLinkTime = 2;
/// Time between digests.
inline constexpr int64_t digestTime = 200'000'000;

} // namespace par::comm
