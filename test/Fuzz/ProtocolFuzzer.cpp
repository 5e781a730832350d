// Both sides of the control protocol, fed with bytes that Par has not sent: by strangers at the gate, by ranks that
// know the secret, by hosts before and after they admit a rank, by leaders of hosts to each other, by ranks of other
// hosts over their connections for buffers, and by ranks of one host that pass descriptors to each other. Under
// --restart: by ranks of all attempts, and by spares. Under --shrink: by ranks that leave, and by ranks that come again
// to an attempt that goes on without them.
#include "comm/carrier/TcpCarrier.h"
#include "comm/job/AuthGate.h"
#include "comm/job/HostLink.h"
#include "comm/job/HostRelay.h"
#include "comm/job/Life.h"
#include "comm/job/LocalChannel.h"
#include "comm/job/RendezvousClient.h"
#include "comm/job/RendezvousServer.h"

#include <array>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

using namespace par::comm;

namespace {

/// The input, taken apart piece by piece; zeros after its end.
class Bytes {
public:
  Bytes(const uint8_t *data, size_t size) : rest(reinterpret_cast<const char *>(data), size) {}
  template <typename T>
  T any() {
    T value{};
    size_t n = std::min(sizeof value, rest.size());
    std::memcpy(&value, rest.data(), n);
    rest.remove_prefix(n);
    return value;
  }
  bool yes() { return any<uint8_t>() & 1; }
  /// A number from 0 to `most`.
  size_t upTo(size_t most) { return most < 256 ? any<uint8_t>() % (most + 1) : any<uint32_t>() % (most + 1); }
  std::string text(size_t most) {
    std::string value(rest.substr(0, upTo(most)));
    rest.remove_prefix(value.size());
    return value;
  }

private:
  std::string_view rest;
};

const std::string testToken(32, 't'), secretKey = keyOf(testToken, "");

/// Two connected sockets: ours, and the fuzzer's.
struct Pair {
  Pair() {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      std::abort();
  }
  ~Pair() { close(ends[1]); }
  void send(const std::string &bytes) const {
    ::send(ends[1], bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void hangUp() const { shutdown(ends[1], SHUT_WR); }
  int ends[2];
};

std::string frame(uint8_t kind, bool more, const std::string &body) {
  return Writer().number(body.size()).take().substr(0, 4) + char(kind) + char(more) + "PR" + body;
}

/// One of those that boards of two hosts send each other, often well-formed.
std::string boardMessageOf(Bytes &data) {
  constexpr Message::Kind kinds[] = {Message::link,   Message::ended,   Message::stop,
                                     Message::frozen, Message::allowed, Message::bye};
  if (data.yes()) {
    Message::Kind kind = kinds[data.upTo(std::size(kinds) - 1)];
    Writer writer;
    writer.number(data.yes() ? data.upTo(4) : data.any<uint64_t>());
    if (kind == Message::ended)
      writer.text(data.text(200)).number(data.upTo(2));
    else if (kind == Message::stop)
      writer.number(data.any<uint64_t>()).number(data.any<uint64_t>());
    return frame(kind, false, writer.take());
  }
  Writer digest;
  digest.text(data.text(20)).text(data.text(20));
  for (size_t i = data.upTo(3); i > 0; --i) {
    Writer facts;
    for (int number = 0; number < 4; ++number)
      facts.number(data.any<uint64_t>());
    for (int text = 0; text < 5; ++text)
      facts.text(data.text(80));
    for (int word = 0; word < 4; ++word)
      facts.number(data.any<uint64_t>());
    digest.number(data.yes() ? data.upTo(3) : data.any<uint64_t>()).text(data.yes() ? facts.take() : data.text(40));
  }
  return frame(Message::ranks, false, digest.take());
}

/// The hosts of a welcome.
std::string hostsOf(Bytes &data) {
  Writer writer;
  uint64_t hosts = data.upTo(3), world = data.upTo(4);
  writer.text(data.yes() ? "par-" + std::string(32, '0') : data.text(40)).text(data.text(8));
  writer.number(data.yes() ? hosts : data.any<uint64_t>()).number(data.yes() ? world : data.any<uint64_t>());
  for (uint64_t host = 0; host < hosts; ++host)
    writer.text(data.text(10));
  for (uint64_t rank = 0; rank < world; ++rank)
    writer.number(data.upTo(3));
  writer.number(data.yes() ? data.upTo(3) : data.any<uint64_t>()); // the attempt, and the seats of its ranks
  writer.number(data.yes() ? world : data.any<uint64_t>());
  for (uint64_t rank = 0; rank < world; ++rank)
    writer.number(data.yes() ? data.upTo(4) : data.any<uint64_t>());
  return writer.take();
}

/// A rank, or a spare, of any attempt.
Join joinOf(Bytes &data) {
  Join join{data.yes() ? hostName() : data.text(40),
            data.text(8),
            data.text(8),
            data.upTo(4),
            2 + data.upTo(2),
            data.any<uint64_t>(),
            data.yes() ? "" : data.text(80),
            data.text(40)};
  join.attempts = data.yes() ? data.upTo(3) : data.any<uint64_t>();
  join.last = {join.attempts, uint32_t(data.upTo(3)), data.yes() ? uint32_t(data.upTo(3)) : data.any<uint32_t>()};
  join.leaves = data.upTo(3) == 0;
  join.holder = data.upTo(3);
  join.spare = data.upTo(3) == 0;
  return join;
}

/// A message that is often well-formed.
std::string messageOf(Bytes &data) {
  switch (data.upTo(9)) {
  case 0:
    return frame(Message::join, false, joinOf(data).write());
  case 1: { // a part of an exchange
    Writer writer;
    writer.number(data.upTo(3)).number(data.upTo(3));
    writer.text(data.yes() ? "hello" : data.text(8)).text(data.text(300));
    return frame(Message::value, false, writer.take());
  }
  case 2: { // the values that ranks receive of one
    Writer writer;
    uint64_t count = data.upTo(4);
    writer.number(data.yes() ? count : data.any<uint64_t>());
    for (uint64_t i = 0; i < count; ++i)
      writer.text(data.yes() ? data.text(40) : Writer().number(data.any<uint64_t>()).number(4096).take());
    return frame(Message::values, false, writer.take());
  }
  case 3: { // a refusal, a welcome
    std::string text = data.text(60);
    return data.yes() ? frame(Message::refuse, false, Writer().number(data.any<uint8_t>()).text(text).take())
                      : frame(Message::welcome, false, text);
  }
  case 4:
    return frame(data.any<uint8_t>(), data.yes(), data.text(600));
  case 5:
    return boardMessageOf(data);
  case 6:
    return frame(Message::welcome, false, hostsOf(data));
  case 7: // the place of a spare
    return frame(Message::place, false, Writer().number(data.yes() ? data.upTo(3) : data.any<uint64_t>()).take());
  case 8: // an attempt goes on without the rank
    return frame(Message::wait, false, data.yes() ? Writer().number(data.upTo(3)).take() : data.text(20));
  default:
    return data.text(600);
  }
}

std::string messagesOf(Bytes &data) {
  std::string all;
  for (size_t i = data.upTo(6); i > 0; --i)
    all += messageOf(data);
  return all;
}

/// A SharedState that never prints.
struct QuietSharedState {
  explicit QuietSharedState(uint32_t world) : memory(mapPrivate(SharedState::bytesFor(world))) {
    sharedState = SharedState::make(memory.bytes.data(), world);
    sharedState->claim();
  }
  Mapping memory;
  SharedState *sharedState;
};

void strangersAtTheGate(Bytes &data) {
  AuthGate gate(Listener::none(), secretKey, data.yes() ? "par-" + std::string(32, '0') : "");
  std::vector<Pair> pairs(1 + data.upTo(2));
  for (Pair &pair : pairs)
    gate.bring(pair.ends[0]);
  for (int i = 0; i < 3; ++i) {
    for (Pair &pair : pairs)
      pair.send(messagesOf(data));
    if (!gate.admit(2).empty())
      std::abort(); // a proof cannot be guessed
  }
}

/// A family of members for several numbers of ranks, none of which is waited for long.
Launch shrinkingLaunch(Bytes &data) {
  Launch launch;
  launch.shrink = data.yes() ? 0 : 60;
  for (size_t i = data.upTo(3); i > 0; --i)
    launch.members.push_back(uint32_t(data.upTo(4)));
  for (size_t i = data.upTo(2); i > 0; --i)
    launch.replicas[uint32_t(data.upTo(3))] = std::vector<uint32_t>(data.upTo(4), uint32_t(data.upTo(2)));
  return launch;
}

void ranksAtTheHost(Bytes &data) {
  QuietSharedState quiet(3);
  Lives lives(1, 3);
  lives.holders()[0].store(data.upTo(2));
  lives.holders()[2].store(data.upTo(3));
  RendezvousOptions hosting{"fuzz", 60};
  if (data.yes()) { // lost ranks are started again
    quiet.sharedState->attempt.store(1 + data.upTo(2));
    hosting.holders = lives.holders();
  }
  if (data.yes()) // an attempt may go on with fewer
    hosting.seats.emplace(shrinkingLaunch(data), 3, &lives);
  RendezvousServer host(std::nullopt, hosting, *quiet.sharedState);
  std::vector<Pair> pairs(1 + data.upTo(3));
  size_t joined = data.upTo(4); // so many have come at the begin
  bool apart = data.yes();      // the last of three may be on another host
  for (size_t rank = 0; rank < pairs.size(); ++rank) {
    host.adopt(pairs[rank].ends[0]);
    if (rank < joined)
      pairs[rank].send(
          frame(Message::join, false,
                Join{hostName(), "RANK", "WORLD", rank, 3, 1, "", apart && rank == 2 ? "b" : "a"}.write()));
  }
  for (int i = 0; i < 4; ++i) {
    host.step(0);
    for (Pair &pair : pairs) {
      pair.send(messagesOf(data));
      if (data.upTo(9) == 0)
        pair.hangUp();
    }
  }
  host.step(0);
  host.finish();
}

void serverAtTheGate(Bytes &data) {
  Pair pair;
  Connection connection(pair.ends[0]);
  std::string localChannel = data.yes() ? data.text(400) : "";
  if (data.yes())
    pair.send(frame(Message::challenge, false, Writer().text(std::string(32, 'n')).text(localChannel).take()));
  pair.send(messagesOf(data));
  pair.hangUp();
  std::string key;
  if (knock(connection, data.yes() ? testToken : "", "", 1, 20, key) == Knock::admitted)
    std::abort();
}

void hostOfARank(Bytes &data) {
  Pair pair;
  Connection connection(pair.ends[0]);
  connection.trust();
  pair.send(messagesOf(data));
  pair.hangUp();
  Join join{"here", "RANK", "WORLD", 1, 3, 1};
  if (data.yes())
    enrol(std::move(connection), join, 0.01, [] {});
  else
    awaitOrder(std::move(connection), join);
}

void exchangesOfARank(Bytes &data) {
  QuietSharedState quiet(2);
  quiet.sharedState->abort(4, "the end"); // instead of waiting for more
  SharedFiles files = SharedFiles::create(2);
  Pair pair;
  Connection connection(pair.ends[0]);
  connection.trust();
  bool connects = data.yes();
  if (connects) {
    std::string sizes = Writer().number(4096).number(4096).take();
    files.arenas[0].resize(data.upTo(8192));
    files.exchange.resize(data.upTo(1 << 20));
    if (data.yes())
      pair.send(frame(Message::values, false, Writer().number(2).text(sizes).text(sizes).take()));
  }
  pair.send(messagesOf(data));
  pair.hangUp();
  LaunchEnvironment place;
  place.rank = 1;
  place.world = 2;
  ClientControl control(*quiet.sharedState, "fuzz", place, {std::move(connection), {"", "tcp", HostMap::one(2)}},
                        files);
  if (connects)
    control.connect(std::vector<Members>{{"all", {0, 1}}}, 4096);
  for (int i = 0; i < 3; ++i)
    data.yes()   ? (void)control.allGather("x", "y")
    : data.yes() ? (void)control.gather("x", "y", 1)
                 : control.barrier("x");
}

const HostMap twoHosts{{"a", "b"}, {0, 0, 1}};

/// Rank 0's side of a link, whose other side is anybody who knows the secret.
void leadersAtTheRelay(Bytes &data) {
  QuietSharedState quiet(3);
  markHosts(*quiet.sharedState, twoHosts, 0);
  quiet.sharedState->attempt.store(data.upTo(2));
  HostRelay relay(*quiet.sharedState, twoHosts, "fuzz", 60, "--shrink");
  std::vector<Pair> pairs(1 + data.upTo(1));
  for (Pair &pair : pairs) {
    Connection connection(pair.ends[0]);
    connection.trust();
    relay.adopt(data.yes() ? 1 : data.any<uint64_t>(), std::move(connection));
  }
  for (int i = 0; i < 3; ++i) {
    for (Pair &pair : pairs) {
      pair.send(boardMessageOf(data) + messagesOf(data));
      if (data.upTo(9) == 0)
        pair.hangUp();
    }
    if (data.upTo(9) == 0)
      quiet.sharedState->stop();
    relay.step();
  }
  relay.finish();
}

/// A leader's side of it.
void relayOfALeader(Bytes &data) {
  QuietSharedState quiet(3);
  markHosts(*quiet.sharedState, twoHosts, 1);
  quiet.sharedState->attempt.store(data.upTo(2));
  Pair pair;
  Connection connection(pair.ends[0]);
  connection.trust();
  for (int i = 0; i < 3; ++i)
    pair.send(boardMessageOf(data) + messagesOf(data));
  if (data.yes())
    pair.hangUp();
  HostLink link(LedHost{*quiet.sharedState, twoHosts, 1, {}}, std::move(connection),
                LocalChannel(localChannelOf(secretKey, "", 1), "", secretKey), "fuzz", 60);
}

/// Buffers between hosts: posted receives and sends meet bytes that are no messages, or others than those awaited.
void bytesOfACarrier(Bytes &data) {
  Pair pair;
  TcpCarrier carrier({-1, pair.ends[0]});
  std::vector<std::byte> room(2 * HostCarrier::maxSmall);
  for (size_t i = data.upTo(6); i > 0; --i) {
    std::span<std::byte> bytes = std::span(room).first(data.yes() ? data.upTo(200) : data.upTo(room.size() - 1));
    uint32_t tag = uint32_t(data.upTo(2));
    data.yes() ? carrier.receive(1, tag, bytes) : carrier.send(1, tag, bytes);
    uint32_t header[] = {uint32_t(data.upTo(2)), data.yes() ? uint32_t(data.upTo(200)) : data.any<uint32_t>(),
                         uint32_t(data.upTo(3) == 0), 0x57526150};
    if (data.upTo(5) != 0)
      pair.send(std::string(reinterpret_cast<const char *>(header), sizeof header));
    pair.send(data.text(300));
    carrier.poll();
  }
  pair.hangUp();
  carrier.poll();
}

void passages(Bytes &data) {
  if (data.yes()) {
    LocalChannel localChannel(testToken, secretKey);
    int socket = connectLocal(localChannel.name());
    std::string bytes = data.text(80);
    send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    shutdown(socket, SHUT_WR);
    localChannel.serve({localChannel.socket()});
    close(socket);
    return;
  }
  Pair pair;
  for (size_t i = data.upTo(4); i > 0; --i)
    data.yes() ? sendDescriptors(pair.ends[1], std::vector<int>(size_t(data.upTo(200)), pair.ends[1]))
               : pair.send(data.text(10));
  pair.hangUp();
  size_t count = size_t(data.upTo(200));
  try {
    for (int descriptor : receiveDescriptors(pair.ends[0], count))
      close(descriptor);
  } catch (...) {
    close(pair.ends[0]);
    throw;
  }
  close(pair.ends[0]);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  Bytes data(bytes, size);
  constexpr void (*targets[])(Bytes &) = {strangersAtTheGate, ranksAtTheHost,   serverAtTheGate,
                                          hostOfARank,        exchangesOfARank, passages,
                                          leadersAtTheRelay,  relayOfALeader,   bytesOfACarrier};
  try {
    targets[data.upTo(std::size(targets) - 1)](data);
  } catch (const std::runtime_error &) {
    // The runtime's error for malformed messages; any other end is a finding.
  }
  return 0;
}
