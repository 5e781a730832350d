// Listening, connecting, passing descriptors.
#pragma once

#include "par/comm/job/Launch.h"

namespace par::comm {

/// A listening socket. Closes it.
class Listener {
public:
  explicit Listener(int socket) : fd(socket) {}
  Listener(Listener &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Listener &operator=(Listener &&) = delete;
  ~Listener();

  /// Listens where `place` says, on the first free port of those that it admits. Throws LaunchError (error
  /// 20).
  static Listener rendezvous(const LaunchEnvironment &place);
  /// Listens on all addresses of this host, on a port that the system chooses.
  static Listener anywhere();
  /// Listens on a name that no file system holds.
  static Listener local(const std::string &name);
  /// Listens nowhere.
  static Listener none() { return Listener(-1); }

  int socket() const { return fd; }
  uint16_t port() const;
  /// A connection that waits, or -1 with errno; never waits itself.
  int accept() const;

private:
  int fd;
};

/// The ports on which the rendezvous of `place` may be.
std::vector<uint16_t> portsOf(const LaunchEnvironment &place);
/// Whether the host has an address.
bool isKnown(const std::string &host);
/// A TCP socket that is connected within `milliseconds`, or -1.
int connectTo(const std::string &host, uint16_t port, int milliseconds);
/// The same for a host whose link may come back meanwhile.
int connectAgainTo(const std::string &host, uint16_t port, int milliseconds);
/// The system ends a connection whose other end has been silent for some seconds, as it is after a host is lost.
void keepAlive(int socket);
/// This end's address of a connection, as a number; "" where it has none.
std::string addressOf(int socket);
/// A socket connected to a local name, or -1: also where no name can be so long.
int connectLocal(const std::string &name);
/// Whether the process at the other end of a local socket has this user.
bool sameUser(int socket);
/// Sends and receives descriptors; receiving throws std::runtime_error if they do not come, or others do.
void sendDescriptors(int socket, const std::vector<int> &descriptors);
std::vector<int> receiveDescriptors(int socket, size_t count);

} // namespace par::comm
