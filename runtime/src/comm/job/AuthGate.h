// Authentication of connections to the host of a job. A connection is a stranger's until it has shown that it knows the
// job's secret: it may send a few bytes, has a few seconds, and makes room when there are too many of its kind, though
// not at once.
#pragma once

#include "Secret.h"
#include "Serialization.h"
#include "Socket.h"

#include <list>
#include <poll.h>

namespace par::comm {

class AuthGate {
public:
  /// `passage`: where this host gives its secret away, told to strangers; "" for nowhere.
  AuthGate(Listener listener, std::string key, std::string localChannel)
      : listener(std::move(listener)), key(std::move(key)), localChannel(std::move(localChannel)),
        port(this->listener.port()) {}

  /// Appends the descriptors to poll.
  void watch(std::vector<pollfd> &polled) const;
  /// Lets strangers come and go; those who have shown the secret. `expected`: how many ranks are yet to come.
  std::list<Connection> admit(size_t expected);
  /// A stranger whom no listener has brought, for tests.
  void bring(int socket);
  /// Strangers that did not know the secret.
  size_t refused() const { return failures; }

private:
  struct Stranger {
    Connection connection;
    std::string nonce;
    int64_t since;
  };
  void accept(size_t quota);
  /// Whether fewer than `most` are in, or the oldest has had its time and has left.
  bool makeRoom(size_t most);
  /// Whether the stranger has shown the secret; closes it where it never will.
  bool knows(Stranger &stranger, const Message &message);

  Listener listener;
  std::string key, localChannel;
  uint16_t port;
  std::list<Stranger> strangers; ///< the oldest first
  int64_t pause = 0;             ///< until when no connection is accepted, for want of descriptors
  size_t failures = 0;
};

/// Authenticates a rank to a host over a new connection, within `milliseconds`. `token`: this rank's PAR_TOKEN, "" to
/// ask the host for the secret. Gives the job's key, or why there is none.
enum class Knock : uint8_t { admitted, silent, noHost, noLocalChannel, otherSecret };
Knock knock(Connection &connection, const std::string &token, const std::string &job, uint16_t port, int milliseconds,
            std::string &key);

/// The same with the job's key.
Knock knockWith(Connection &connection, const std::string &key, uint16_t port, int milliseconds);

} // namespace par::comm
