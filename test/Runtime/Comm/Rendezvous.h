// Ranks started one by one, and the places where they meet.
#pragma once

#include "Process.h"

#include <arpa/inet.h>

namespace par::test {

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(uint16_t(port));
  return address;
}

/// A listening socket on a free loopback port.
struct Occupied {
  Occupied(int wanted = 0) : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(wanted);
    socklen_t size = sizeof address;
    bind(fd, reinterpret_cast<sockaddr *>(&address), size);
    listen(fd, SOMAXCONN);
    getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size);
    port = ntohs(address.sin_port);
  }
  ~Occupied() { close(fd); }
  int fd, port;
};

inline int unusedPort() { return Occupied().port; }

/// A socket that is connected to the port, or -1.
inline int dial(int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(port);
  if (connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0)
    return fd;
  close(fd);
  return -1;
}

/// Waits until somebody listens at the port.
inline bool listens(int port) {
  for (auto begin = Clock::now(); secondsSince(begin) < 20; usleep(10'000))
    if (int fd = dial(port); fd >= 0) {
      close(fd);
      return true;
    }
  return false;
}

inline std::string thisHost() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return host;
}

inline Process byHand(int rank, int world, int port, std::vector<std::string> more = {}, Environment environment = {}) {
  std::vector<std::string> arguments{jobTool,
                                     "--rank",
                                     std::to_string(rank),
                                     "--world",
                                     std::to_string(world),
                                     "--master",
                                     "127.0.0.1:" + std::to_string(port),
                                     "--ranks",
                                     std::to_string(world),
                                     "--steps",
                                     "5"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Process(arguments, environment);
}

} // namespace par::test
