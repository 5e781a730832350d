// The place at which clients connect: a socket file of the user's own, or a port of the loopback address.
#pragma once

#include <string>

namespace par::serve {

class Listener {
public:
  /// "PATH" or "tcp:PORT", of which 0 is any. A socket file of a server that has gone is replaced. Throws
  /// Failure.
  explicit Listener(const std::string &address);
  Listener(const Listener &) = delete;
  Listener &operator=(const Listener &) = delete;
  /// Takes the file away.
  ~Listener();

  int descriptor() const { return socket; }
  /// The path, or "127.0.0.1:8080".
  const std::string &name() const { return shown; }
  /// A client's connection, which never waits; -1 where there is none.
  int accept() const;

private:
  void listenAtPath(const std::string &path);
  void listenAtPort(const std::string &port);

  int socket = -1;
  std::string file, shown;
};

} // namespace par::serve
