// Buffers between hosts over the job's own connections.
#include "TcpCarrier.h"
#include "comm/shared/Diagnosis.h"
#include "comm/shared/SharedState.h"
#include "par/messages/CommMessages.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace par::comm;

namespace {

constexpr uint32_t headerMark = 0x57526150;
/// Messages at a time, so that one peer does not keep the rank from the others.
constexpr int messagesAtOnce = 16;
/// Time in which the watchers of ranks may give a better reason for a connection that ended.
constexpr int64_t brokenTime = 3'000'000'000;

bool wouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

} // namespace

HostCarrier::~HostCarrier() = default;

TcpCarrier::TcpCarrier(std::vector<int> sockets) : peers(sockets.size()) {
  for (size_t rank = 0; rank < sockets.size(); ++rank)
    peers[rank].socket = sockets[rank];
}

TcpCarrier::~TcpCarrier() {
  for (const Peer &peer : peers)
    if (peer.socket >= 0)
      ::close(peer.socket);
}

void TcpCarrier::broken(uint32_t rank, const char *why) {
  Peer &peer = peers[rank];
  if (peer.socket < 0)
    return;
  ::close(std::exchange(peer.socket, -1));
  peer.brokenAt = now();
  peer.why = why;
  peer.read = peer.written = 0;
}

void TcpCarrier::checkBroken() const {
  for (uint32_t rank = 0; rank < peers.size(); ++rank) {
    const Peer &peer = peers[rank];
    bool missed = peer.open || !peer.out.empty();
    if (peer.brokenAt && missed && now() - peer.brokenAt > brokenTime)
      throw Lost(say(Sentence::carrierBroken, rank, peer.why));
  }
}

HostCarrier::Ticket TcpCarrier::send(uint32_t rank, uint32_t tag, std::span<const std::byte> bytes) {
  Peer &peer = peers.at(rank);
  auto done = std::make_shared<bool>(false);
  Sending sending{{tag, uint32_t(bytes.size()), 0, headerMark}, bytes, done};
  peer.uncredited[tag].push_back(std::move(sending));
  release(peer, tag);
  write(rank);
  return done;
}

// In order: a small message does not pass a large one that waits for its receiver.
void TcpCarrier::release(Peer &peer, uint32_t tag) {
  std::deque<Sending> &waiting = peer.uncredited[tag];
  uint32_t &credits = peer.credits[tag];
  while (!waiting.empty() && (waiting.front().bytes.size() <= maxSmall || credits > 0)) {
    credits -= waiting.front().bytes.size() > maxSmall;
    peer.out.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
}

HostCarrier::Ticket TcpCarrier::receive(uint32_t rank, uint32_t tag, std::span<std::byte> bytes) {
  Peer &peer = peers.at(rank);
  auto done = std::make_shared<bool>(false);
  auto &early = peer.early[tag];
  if (!early.empty() && bytes.size() <= maxSmall) {
    std::memcpy(bytes.data(), early.front().data(), std::min(bytes.size(), early.front().size()));
    early.pop_front();
    *done = true;
    return done;
  }
  peer.posted[tag].push_back({bytes, done});
  ++peer.open;
  if (bytes.size() > maxSmall) {
    peer.out.push_back({{tag, 0, 1, headerMark}, {}, nullptr});
    write(rank);
  }
  return done;
}

bool TcpCarrier::write(uint32_t rank) {
  Peer &peer = peers[rank];
  bool moved = false;
  for (int i = 0; i < messagesAtOnce && !peer.out.empty() && peer.socket >= 0; ++i) {
    Sending &first = peer.out.front();
    size_t headerLeft = sizeof(Header) - std::min(peer.written, sizeof(Header));
    size_t bytesDone = peer.written - std::min(peer.written, sizeof(Header));
    iovec parts[] = {{reinterpret_cast<std::byte *>(&first.header) + sizeof(Header) - headerLeft, headerLeft},
                     {const_cast<std::byte *>(first.bytes.data()) + bytesDone, first.bytes.size() - bytesDone}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    ssize_t n = sendmsg(peer.socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (!wouldBlock(errno))
        broken(rank, std::strerror(errno));
      break;
    }
    peer.written += size_t(n);
    if (peer.written < sizeof(Header) + first.bytes.size())
      break;
    peer.written = 0;
    if (first.done) {
      *first.done = true;
      moved = true;
    }
    peer.out.pop_front();
  }
  return moved;
}

/// Bytes that have come, 0 for none yet.
size_t TcpCarrier::take(uint32_t rank, std::byte *to, size_t bytes) {
  ssize_t n = recv(peers[rank].socket, to, bytes, MSG_DONTWAIT);
  if (n == 0)
    broken(rank, "it has hung up");
  else if (n < 0 && !wouldBlock(errno))
    broken(rank, std::strerror(errno));
  return n > 0 ? size_t(n) : 0;
}

/// After a header: finds the place of the message. True if a ticket became true.
bool TcpCarrier::begin(uint32_t rank) {
  Peer &peer = peers[rank];
  const Header &header = peer.header;
  if (header.mark != headerMark) {
    broken(rank, "it sends no message of Par");
    return false;
  }
  if (header.credit) {
    peer.read = 0;
    ++peer.credits[header.tag];
    release(peer, header.tag);
    return write(rank);
  }
  auto &posted = peer.posted[header.tag];
  bool isSmall = header.bytes <= maxSmall;
  if (posted.empty() ? !isSmall : header.bytes > posted.front().room.size()) {
    broken(rank, "it sends what was not asked for");
    return false;
  }
  if (posted.empty()) {
    peer.small.resize(header.bytes);
    peer.room = peer.small;
    peer.done = nullptr;
  } else {
    peer.room = posted.front().room.first(header.bytes);
    peer.done = posted.front().done;
    posted.pop_front();
  }
  return false;
}

bool TcpCarrier::end(Peer &peer) {
  peer.read = 0;
  if (peer.done) {
    *peer.done = true;
    --peer.open;
    return true;
  }
  // A receive may have been posted since the message began.
  auto &posted = peer.posted[peer.header.tag];
  if (posted.empty()) {
    peer.early[peer.header.tag].push_back(std::move(peer.small));
    peer.small = {};
    return false;
  }
  std::memcpy(posted.front().room.data(), peer.small.data(), std::min(posted.front().room.size(), peer.small.size()));
  *posted.front().done = true;
  posted.pop_front();
  --peer.open;
  return true;
}

bool TcpCarrier::read(uint32_t rank) {
  Peer &peer = peers[rank];
  bool moved = false;
  for (int i = 0; i < messagesAtOnce && peer.socket >= 0; ++i) {
    if (peer.read < sizeof(Header)) {
      size_t n = take(rank, reinterpret_cast<std::byte *>(&peer.header) + peer.read, sizeof(Header) - peer.read);
      peer.read += n;
      if (peer.read < sizeof(Header))
        return moved;
      moved |= begin(rank);
      if (peer.read == 0)
        continue;
    }
    size_t done = peer.read - sizeof(Header);
    if (done < peer.room.size()) {
      size_t n = take(rank, peer.room.data() + done, peer.room.size() - done);
      if (n < peer.room.size() - done) {
        peer.read += peer.socket >= 0 ? n : 0;
        return moved;
      }
    }
    moved |= end(peer);
  }
  return moved;
}

bool TcpCarrier::poll() {
  checkBroken();
  std::vector<pollfd> polled;
  for (const Peer &peer : peers)
    polled.push_back({peer.socket, short(peer.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  if (::poll(polled.data(), polled.size(), 0) <= 0)
    return false;
  bool moved = false;
  for (uint32_t rank = 0; rank < peers.size(); ++rank) {
    if (polled[rank].fd >= 0 && polled[rank].revents & POLLOUT)
      moved |= write(rank);
    if (polled[rank].revents & (POLLIN | POLLHUP | POLLERR))
      moved |= read(rank);
  }
  return moved;
}
