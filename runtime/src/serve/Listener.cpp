#include "Listener.h"

#include "par/messages/Failure.h"

#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace par::serve {

using core::Failure;

static constexpr std::string_view portWord = "tcp:";

Listener::Listener(const std::string &address) {
  if (address.starts_with(portWord))
    listenAtPort(address.substr(portWord.size()));
  else
    listenAtPath(address);
  if (::listen(socket, SOMAXCONN) != 0)
    throw Failure(shown, std::string("cannot listen: ") + std::strerror(errno));
}

Listener::~Listener() {
  if (socket >= 0)
    close(socket);
  if (!file.empty())
    unlink(file.c_str());
}

/// Takes away what an earlier server left. Throws Failure where somebody listens, or where the file is something else.
static void clearPath(const std::string &path, const sockaddr_un &address) {
  struct stat about{};
  if (lstat(path.c_str(), &about) != 0)
    return;
  if (!S_ISSOCK(about.st_mode))
    throw Failure(path, "is there already, and is no socket; give --serve another name");
  int tried = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool answers = ::connect(tried, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0 ||
                 (errno != ECONNREFUSED && errno != ENOENT);
  close(tried);
  if (answers)
    throw Failure(path, "another server listens there; end it, or give --serve another name");
  unlink(path.c_str());
}

void Listener::listenAtPath(const std::string &path) {
  shown = path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw Failure(path, core::format("is a longer name than a socket can have, {} bytes; give a shorter one",
                                     sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  clearPath(path, address);
  socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // The mode of the socket is that of its file from the first moment on.
  if (socket < 0 || fchmod(socket, S_IRUSR | S_IWUSR) != 0 ||
      ::bind(socket, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
    throw Failure(path, std::string("cannot make a socket there: ") + std::strerror(errno));
  file = path;
}

void Listener::listenAtPort(const std::string &text) {
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw Failure("par-run", "--serve tcp:PORT takes a port from 0 (any that is free) to 65535, not \"" + text + "\"",
                  core::exitUsage);
  shown = "127.0.0.1:" + text;
  socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (socket < 0 || ::bind(socket, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
    throw Failure(shown, std::string("cannot listen: ") + std::strerror(errno));
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr *>(&address), &size);
  shown = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

int Listener::accept() const {
  int client = ::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  int on = 1;
  if (client >= 0 && file.empty())
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return client;
}

} // namespace par::serve
