#include "api/TextSocket.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace par::api {

bool TextSocket::send(const std::string &text) {
  uint64_t length = text.size();
  std::string bytes(reinterpret_cast<const char *>(&length), sizeof length);
  bytes += text;
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = ::send(socket, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

bool TextSocket::receiveExactly(char *to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = ::recv(socket, to + done, bytes - done, 0);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

std::optional<std::string> TextSocket::receive() {
  uint64_t length = 0;
  if (!receiveExactly(reinterpret_cast<char *>(&length), sizeof length))
    return std::nullopt;
  std::string text(length, '\0');
  if (!receiveExactly(text.data(), text.size()))
    return std::nullopt;
  return text;
}

void TextSocket::hangUp() {
  if (int open = std::exchange(socket, -1); open >= 0)
    close(open);
}

} // namespace par::api
