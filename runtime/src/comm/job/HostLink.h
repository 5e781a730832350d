// The thread of a host's leader that joins its board to those of other hosts, over rank 0's (HostRelay.h), and passes
// its memory to the other ranks of its host.
#pragma once

#include "BoardDigest.h"
#include "Heartbeat.h"
#include "Hosts.h"
#include "LocalChannel.h"

namespace par::comm {

/// Facts of the host that a leader leads.
struct LedHost {
  SharedState &board;
  HostMap hosts;
  uint32_t host;
  std::vector<int> descriptors; ///< of its memory
};

class HostLink {
public:
  /// `connection`: to rank 0's host, authenticated.
  HostLink(LedHost led, Connection connection, LocalChannel channel, std::string bundle, double timeout);
  HostLink(const HostLink &) = delete;
  /// Says that this host is done, or why the job ended.
  ~HostLink();

private:
  void loop();
  /// Until there is something to do; false at the end.
  bool wait() const;
  void handle(const Message &message);
  void tell();
  void judge();
  void judgeAfterLoss();
  void lose(const std::string &message);

  LedHost led;
  SharedState &board;
  Connection connection;
  LocalChannel channel;
  std::string bundle;
  Patience patience;
  BoardDigest own;
  int64_t heard = now(), told = 0;
  bool warned = false, over = false, stopSent = false, endSent = false;
  int ending = -1; ///< an eventfd: readable when this is to end
  std::thread thread;
};

} // namespace par::comm
