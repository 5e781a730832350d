//===- Host.h - the rendezvous and its exchanges ---------------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A single-threaded star, driven by step(): par-run's parent process drives it in its main loop, rank 0 of a
// launcher's job in a thread.
//
//===----------------------------------------------------------------------===//
#ifndef PAR_SRC_COMM_HOST_H
#define PAR_SRC_COMM_HOST_H

#include "comm/Base.h"
#include "comm/Memory.h"
#include "comm/Socket.h"
#include "comm/Wire.h"

#include <poll.h>

namespace par::comm {

/// The memory of a job: the board, where communications meet, one arena a rank. Sized by connect().
struct SharedFiles {
  SharedFile board, exchange;
  std::vector<SharedFile> arenas;

  static SharedFiles create(uint32_t world);
  /// In the order board, exchange, arenas.
  std::vector<int> descriptors() const;
  static SharedFiles from(const std::vector<int> &descriptors);
};

/// What a host that knows the job's token says to whoever connects: it shows a rank that this is its job's
/// host, and does not tell a stranger the token, which a rank must show in turn.
std::string greetingOf(const std::string &token);

/// What a rank says when it joins.
struct Join {
  std::string token, host, rankSource, worldSource;
  uint64_t rank = 0, world = 0, pid = 0;

  std::string write() const;
  static Join read(std::string_view bytes);
};

class Host {
public:
  /// `pass`: descriptors that ranks may fetch over a local socket; null where they have inherited them.
  Host(Listener listener, std::string bundle, std::string token, double joinTimeout, Board &board,
       const SharedFiles *pass);

  /// Waits up to `milliseconds` for something to do (or for one of `also` to become readable) and does it.
  void step(int milliseconds, const std::vector<int> &also = {});
  /// True when everything queued has been sent.
  bool quiet() const;

private:
  struct Value {
    Sharing sharing;
    uint32_t root;
    std::string label, bytes;
  };
  struct Peer {
    explicit Peer(int socket) : connection(socket) {}
    Connection connection;
    std::optional<Join> join;
    std::optional<Value> value;
    bool refused = false; ///< hung up on when it has been told
  };

  void accept();
  void handle(Peer &peer, const Message &message);
  void admit(Peer &peer, const Join &join);
  void exchange();
  void fail(int code, const std::string &message);
  void refuse(Peer &peer, int code, const std::string &line);
  void watchJoining();

  Listener listener;
  std::string bundle, token, localName;
  std::optional<Listener> local;
  int64_t deadline;
  Board &board;
  const SharedFiles *pass;
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<Peer *> members; ///< by rank
  uint32_t joined = 0;
};

} // namespace par::comm

#endif // PAR_SRC_COMM_HOST_H
