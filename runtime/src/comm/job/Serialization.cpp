// Bytes of the control plane. A frame is {u32 bytes of the body, u8 kind, u8 more, u16 'PR'} and the body. `more` says
// that the message goes on in the next frame; such a frame has a body, so that the bound on a message bounds its
// frames.
#include "Serialization.h"
#include "comm/shared/SharedState.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

using namespace par::comm;

namespace {

struct Header {
  uint32_t bytes;
  uint8_t kind, more;
  std::array<char, 2> mark;
};
static_assert(sizeof(Header) == 8);
constexpr std::array<char, 2> mark{'P', 'R'};

// Beyond this a message is not one of ours, even of a rank; weights travel in files, not here.
constexpr size_t maxMessage = size_t(1) << 28;

} // namespace

Writer &Writer::number(uint64_t value) {
  for (int i = 0; i < 8; ++i)
    bytes += char(value >> (8 * i));
  return *this;
}

Writer &Writer::text(std::string_view value) {
  number(value.size());
  bytes += value;
  return *this;
}

uint64_t Reader::number() {
  if (rest.size() < 8)
    throw std::runtime_error(say(Sentence::truncated));
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i)
    value |= uint64_t(uint8_t(rest[i])) << (8 * i);
  rest.remove_prefix(8);
  return value;
}

std::string Reader::text() {
  uint64_t size = number();
  if (rest.size() < size)
    throw std::runtime_error(say(Sentence::truncated));
  std::string value(rest.substr(0, size));
  rest.remove_prefix(size);
  return value;
}

Connection::Connection(int socket) : fd(socket) {
  if (fd < 0)
    return;
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

Connection::Connection(Connection &&other) noexcept
    : fd(std::exchange(other.fd, -1)), trusted(other.trusted), out(std::move(other.out)), in(std::move(other.in)),
      partial(std::move(other.partial)), ready(std::exchange(other.ready, std::nullopt)) {}

Connection::~Connection() { close(); }

void Connection::close() {
  if (fd >= 0)
    ::close(fd);
  fd = -1;
}

void Connection::send(const Message &message) {
  std::string_view rest = message.body;
  do {
    std::string_view part = rest.substr(0, maxFrame - sizeof(Header));
    rest.remove_prefix(part.size());
    Header header{uint32_t(part.size()), message.kind, uint8_t(!rest.empty()), mark};
    out.append(reinterpret_cast<const char *>(&header), sizeof header).append(part);
  } while (!rest.empty());
  write();
}

void Connection::write() {
  size_t done = 0;
  while (fd >= 0 && done < out.size()) {
    ssize_t n = ::send(fd, out.data() + done, out.size() - done, MSG_NOSIGNAL);
    if (n > 0)
      done += size_t(n);
    else if (n < 0 && errno == EINTR)
      continue;
    else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      break;
    else
      close();
  }
  out.erase(0, done);
}

// Takes at most a few frames at a time, so that one busy rank does not keep the host from the others; of strangers
// no more than a buffer.
void Connection::read() {
  std::array<char, 8192> buffer; // on stacks that may be small
  for (int i = 0; i < (trusted ? 512 : 1) && fd >= 0; ++i) {
    ssize_t n = recv(fd, buffer.data(), buffer.size(), 0);
    if (n > 0)
      in.append(buffer.data(), size_t(n));
    else if (n < 0 && errno == EINTR)
      continue;
    else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    else
      return close();
  }
}

void Connection::pump() {
  write();
  read();
}

bool Connection::takeFrame() {
  Header header;
  if (in.size() < sizeof header)
    return false;
  std::memcpy(&header, in.data(), sizeof header);
  bool ours = header.mark == mark && header.kind <= Message::wait && header.more <= (header.bytes ? 1 : 0);
  if (!ours || header.bytes > maxFrame - sizeof header ||
      partial.size() + header.bytes > (trusted ? maxMessage : maxStranger)) {
    in.clear();
    close();
    return false;
  }
  if (in.size() < sizeof header + header.bytes)
    return false;
  partial.append(in, sizeof header, header.bytes);
  in.erase(0, sizeof header + header.bytes);
  if (!header.more)
    ready = Message{Message::Kind(header.kind), std::exchange(partial, {})};
  return true;
}

std::optional<Message> Connection::next() {
  while (!ready && takeFrame())
    ;
  return std::exchange(ready, std::nullopt);
}

std::optional<Message> Connection::await(int milliseconds) {
  int64_t deadline = now() + int64_t(milliseconds) * 1'000'000;
  for (;;) {
    if (std::optional<Message> message = next())
      return message;
    int64_t left = (deadline - now()) / 1'000'000;
    if (!open() || left <= 0)
      return std::nullopt;
    pollfd polled{fd, short(pending() ? POLLIN | POLLOUT : POLLIN), 0};
    poll(&polled, 1, int(std::min<int64_t>(left, 50)));
    pump();
  }
}
