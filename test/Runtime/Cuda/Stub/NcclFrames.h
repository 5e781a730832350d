// Messages of the stub NCCL between processes: numbers and texts, with the length before the whole.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <sys/socket.h>

namespace par::stub {

class Frame {
public:
  Frame &number(uint64_t value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    return *this;
  }
  Frame &text(const std::string &value) {
    number(value.size());
    bytes += value;
    return *this;
  }
  std::string whole() const { return Frame().number(bytes.size()).bytes + bytes; }

private:
  std::string bytes;
};

class FrameReader {
public:
  explicit FrameReader(const std::string &bytes) : bytes(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
    return value;
  }
  int small() { return static_cast<int>(static_cast<int64_t>(number())); }
  std::string text() {
    size_t size = number();
    at += size;
    return bytes.substr(at - size, size);
  }

private:
  const std::string &bytes;
  size_t at = 0;
};

inline bool sendAll(int socket, const std::string &bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    ssize_t n = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0)
      return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

/// The next whole message; false at the end of the stream.
inline bool receive(int socket, std::string &message) {
  uint64_t size = 0;
  if (::recv(socket, &size, sizeof size, MSG_WAITALL) != sizeof size)
    return false;
  message.resize(size);
  return size == 0 || ::recv(socket, message.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

} // namespace par::stub
