// Listening, connecting, passing descriptors.
#include "Socket.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>

using namespace par::comm;

namespace {

/// Addresses of host and port, freed at the end.
std::shared_ptr<addrinfo> resolve(const std::string &host, uint16_t port, bool passive) {
  addrinfo hints{}, *result = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &result) != 0)
    return nullptr;
  return {result, freeaddrinfo};
}

int newSocket(int family) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

/// A listening socket, or -1 with errno.
int listenAt(const addrinfo &address) {
  int fd = newSocket(address.ai_family), yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (fd >= 0 && bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
    return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

/// False where the name is longer than an address holds.
bool localAddress(const std::string &name, sockaddr_un &address, socklen_t &size) {
  address = {};
  if (name.size() >= sizeof address.sun_path)
    return false;
  address.sun_family = AF_UNIX;
  // A leading zero: the abstract name space, which ends with its last socket.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return true;
}

/// Whether a connection that has been begun is made within `milliseconds`.
bool connects(int fd, int milliseconds) {
  pollfd polled{fd, POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof error;
  return poll(&polled, 1, milliseconds) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

/// Takes over the descriptors of a message; false where they are not all.
bool takeDescriptors(msghdr &message, std::vector<int> &descriptors) {
  for (cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
      continue;
    size_t n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int), old = descriptors.size();
    descriptors.resize(old + n);
    std::memcpy(descriptors.data() + old, CMSG_DATA(header), n * sizeof(int));
  }
  return !(message.msg_flags & MSG_CTRUNC);
}

// The kernel passes at most 253 descriptors in one message.
constexpr size_t maxDescriptors = 128;

} // namespace

Listener::~Listener() {
  if (fd >= 0)
    close(fd);
}

std::vector<uint16_t> par::comm::portsOf(const LaunchEnvironment &place) {
  if (!place.agentStore)
    return {place.port};
  std::vector<uint16_t> ports;
  for (int i = 1; i <= 16 && place.port + i <= 65535; ++i)
    ports.push_back(uint16_t(place.port + i));
  return ports;
}

Listener Listener::rendezvous(const LaunchEnvironment &place) {
  int error = 0;
  for (uint16_t port : portsOf(place)) {
    std::shared_ptr<addrinfo> address = resolve(place.host, port, true);
    if (!address)
      throw LaunchError(2, say(Sentence::unknownHost, place.host));
    if (int fd = listenAt(*address); fd >= 0)
      return Listener(fd);
    error = errno;
    if (error != EADDRINUSE)
      break;
  }
  if (error == EADDRINUSE)
    throw LaunchError(2, say(Sentence::portInUse, place.port, place.host, place.host));
  throw LaunchError(2,
                    say(Sentence::cannotListen, place.host + ":" + std::to_string(place.port), std::strerror(error)));
}

Listener Listener::anywhere() {
  for (const char *host : {"::", "0.0.0.0"})
    if (std::shared_ptr<addrinfo> address = resolve(host, 0, true))
      if (int fd = listenAt(*address); fd >= 0)
        return Listener(fd);
  throw LaunchError(2, say(Sentence::cannotListen, "any address", std::strerror(errno)));
}

Listener Listener::local(const std::string &name) {
  socklen_t size = 0;
  sockaddr_un address;
  int fd = localAddress(name, address, size) ? newSocket(AF_UNIX) : -1;
  if (bind(fd, reinterpret_cast<sockaddr *>(&address), size) != 0 || listen(fd, SOMAXCONN) != 0)
    throw LaunchError(2, say(Sentence::cannotListen, "a local socket", std::strerror(errno)));
  return Listener(fd);
}

uint16_t Listener::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size);
  return ntohs(address.sin_port);
}

int Listener::accept() const { return accept4(fd, nullptr, nullptr, SOCK_CLOEXEC); }

bool par::comm::isKnown(const std::string &host) { return resolve(host, 0, false) != nullptr; }

int par::comm::connectTo(const std::string &host, uint16_t port, int milliseconds) {
  std::shared_ptr<addrinfo> address = resolve(host, port, false);
  int fd = address ? newSocket(address->ai_family) : -1;
  if (fd < 0)
    return -1;
  if (connect(fd, address->ai_addr, address->ai_addrlen) == 0 || (errno == EINPROGRESS && connects(fd, milliseconds)))
    return fd;
  close(fd);
  return -1;
}

// The system repeats a request to connect after a second, and after two more: a host whose link has come back meanwhile
// would be waited for so long. Requests are made again beside those that are open, and the first answer counts.
int par::comm::connectAgainTo(const std::string &host, uint16_t port, int milliseconds) {
  constexpr int pause = 100;
  std::shared_ptr<addrinfo> address = resolve(host, port, false);
  std::vector<pollfd> tries;
  int found = -1;
  for (int left = milliseconds; address && left > 0 && found < 0; left -= pause) {
    int fd = newSocket(address->ai_family);
    if (fd < 0)
      break;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS) {
      close(fd);
      break;
    }
    tries.push_back({fd, POLLOUT, 0});
    poll(tries.data(), tries.size(), std::min(pause, left));
    for (pollfd &one : tries)
      if (found < 0 && one.revents && connects(one.fd, 0))
        found = one.fd;
    // A refusal is an answer, too: no process listens there.
    if (std::any_of(tries.begin(), tries.end(), [](const pollfd &one) { return one.revents != 0; }))
      break;
  }
  for (const pollfd &one : tries)
    if (one.fd != found)
      close(one.fd);
  return found;
}

void par::comm::keepAlive(int socket) {
  int yes = 1, seconds = 1, probes = 5;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

std::string par::comm::addressOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> text{};
  if (getsockname(socket, reinterpret_cast<sockaddr *>(&address), &size) != 0 || address.ss_family == AF_UNIX ||
      getnameinfo(reinterpret_cast<sockaddr *>(&address), size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) !=
          0)
    return "";
  return text.data();
}

int par::comm::connectLocal(const std::string &name) {
  socklen_t size = 0;
  sockaddr_un address;
  int fd = localAddress(name, address, size) ? newSocket(AF_UNIX) : -1;
  if (fd < 0)
    return -1;
  if (connect(fd, reinterpret_cast<sockaddr *>(&address), size) != 0) {
    close(fd);
    return -1;
  }
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

bool par::comm::sameUser(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 && credentials.uid == getuid();
}

void par::comm::sendDescriptors(int socket, const std::vector<int> &descriptors) {
  for (size_t begin = 0; begin < descriptors.size(); begin += maxDescriptors) {
    size_t n = std::min(maxDescriptors, descriptors.size() - begin);
    alignas(cmsghdr) std::array<char, CMSG_SPACE(maxDescriptors * sizeof(int))> space{};
    char byte = 'd';
    iovec data{&byte, 1};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = CMSG_SPACE(n * sizeof(int));
    cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(n * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data() + begin, n * sizeof(int));
    sendmsg(socket, &message, MSG_NOSIGNAL);
  }
}

std::vector<int> par::comm::receiveDescriptors(int socket, size_t count) {
  std::vector<int> descriptors;
  while (descriptors.size() < count) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(maxDescriptors * sizeof(int))> space{};
    char byte;
    iovec data{&byte, 1};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    size_t before = descriptors.size();
    bool came = recvmsg(socket, &message, MSG_CMSG_CLOEXEC) > 0 && takeDescriptors(message, descriptors);
    if (came && descriptors.size() > before && descriptors.size() <= count)
      continue;
    for (int descriptor : descriptors)
      close(descriptor);
    throw std::runtime_error(say(Sentence::notPassed));
  }
  return descriptors;
}
