// Both sides of the control protocol, fed with bytes that nobody of Par has sent: strangers at the door, ranks that know
// the secret, hosts that a rank meets before and after it has been let in, what ranks of one host hand each other.
#include "comm/Door.h"
#include "comm/Host.h"
#include "comm/Passage.h"
#include "comm/Remote.h"

#include <fuzzer/FuzzedDataProvider.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace par::comm;

namespace {

const std::string kToken(32, 't'), kKey = keyOf(kToken, "");

/// Two connected sockets: ours, and the fuzzer's.
struct Pair {
  Pair() {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      std::abort();
  }
  ~Pair() { close(ends[1]); }
  void send(const std::string &bytes) const { ::send(ends[1], bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); }
  void hangUp() const { shutdown(ends[1], SHUT_WR); }
  int ends[2];
};

std::string frame(uint8_t kind, bool more, const std::string &body) {
  return Writer().number(body.size()).take().substr(0, 4) + char(kind) + char(more) + "PR" + body;
}

/// A message that is often well-formed.
std::string messageOf(FuzzedDataProvider &data) {
  switch (data.ConsumeIntegralInRange(0, 5)) {
  case 0: { // a join
    Join join{data.ConsumeBool() ? hostName() : data.ConsumeRandomLengthString(40), data.ConsumeRandomLengthString(8),
              data.ConsumeRandomLengthString(8), data.ConsumeIntegralInRange<uint64_t>(0, 4),
              data.ConsumeIntegralInRange<uint64_t>(2, 4), data.ConsumeIntegral<uint64_t>()};
    return frame(Message::join, false, join.write());
  }
  case 1: { // a part of an exchange
    Writer writer;
    writer.number(data.ConsumeIntegralInRange(0, 3)).number(data.ConsumeIntegralInRange(0, 3));
    writer.text(data.ConsumeBool() ? "hello" : data.ConsumeRandomLengthString(8)).text(data.ConsumeRandomLengthString(300));
    return frame(Message::value, false, writer.take());
  }
  case 2: { // what ranks get of one
    Writer writer;
    uint64_t count = data.ConsumeIntegralInRange(0, 4);
    writer.number(data.ConsumeBool() ? count : data.ConsumeIntegral<uint64_t>());
    for (uint64_t i = 0; i < count; ++i)
      writer.text(data.ConsumeBool() ? data.ConsumeRandomLengthString(40)
                                     : Writer().number(data.ConsumeIntegral<uint64_t>()).number(4096).take());
    return frame(Message::values, false, writer.take());
  }
  case 3: { // a refusal, a welcome
    std::string text = data.ConsumeRandomLengthString(60);
    return data.ConsumeBool() ? frame(Message::refuse, false, Writer().number(data.ConsumeIntegral<uint8_t>()).text(text).take())
                              : frame(Message::welcome, false, text);
  }
  case 4:
    return frame(data.ConsumeIntegral<uint8_t>(), data.ConsumeBool(), data.ConsumeRandomLengthString(600));
  default:
    return data.ConsumeRandomLengthString(600);
  }
}

std::string messagesOf(FuzzedDataProvider &data) {
  std::string all;
  for (int i = data.ConsumeIntegralInRange(0, 6); i > 0; --i)
    all += messageOf(data);
  return all;
}

/// A board that never prints.
struct QuietBoard {
  explicit QuietBoard(uint32_t world) : memory(mapPrivate(Board::bytesFor(world))) {
    board = Board::make(memory.bytes.data(), world);
    board->claim();
  }
  Mapping memory;
  Board *board;
};

void strangersAtTheDoor(FuzzedDataProvider &data) {
  Door door(Listener::none(), kKey, data.ConsumeBool() ? "par-" + std::string(32, '0') : "");
  std::vector<Pair> pairs(size_t(data.ConsumeIntegralInRange(1, 3)));
  for (Pair &pair : pairs)
    door.bring(pair.ends[0]);
  for (int i = 0; i < 3; ++i) {
    for (Pair &pair : pairs)
      pair.send(messagesOf(data));
    if (!door.admit(2).empty())
      std::abort(); // nobody guesses a proof
  }
}

void ranksAtTheHost(FuzzedDataProvider &data) {
  QuietBoard quiet(3);
  Host host(std::nullopt, {"fuzz", 60}, *quiet.board);
  std::vector<Pair> pairs(size_t(data.ConsumeIntegralInRange(1, 4)));
  bool joined = data.ConsumeBool();
  for (size_t rank = 0; rank < pairs.size(); ++rank) {
    host.adopt(pairs[rank].ends[0]);
    if (joined)
      pairs[rank].send(frame(Message::join, false, Join{hostName(), "RANK", "WORLD", rank, 3, 1}.write()));
  }
  for (int i = 0; i < 4; ++i) {
    host.step(0);
    for (Pair &pair : pairs) {
      pair.send(messagesOf(data));
      if (data.ConsumeIntegralInRange(0, 9) == 0)
        pair.hangUp();
    }
  }
  host.step(0);
}

void hostAtTheDoor(FuzzedDataProvider &data) {
  Pair pair;
  Connection connection(pair.ends[0]);
  std::string passage = data.ConsumeBool() ? data.ConsumeRandomLengthString(400) : "";
  if (data.ConsumeBool())
    pair.send(frame(Message::challenge, false, Writer().text(std::string(32, 'n')).text(passage).take()));
  pair.send(messagesOf(data));
  pair.hangUp();
  std::string key;
  if (knock(connection, data.ConsumeBool() ? kToken : "", "", 1, 20, key) == Knock::admitted)
    std::abort();
}

void hostOfARank(FuzzedDataProvider &data) {
  Pair pair;
  Connection connection(pair.ends[0]);
  connection.trust();
  pair.send(messagesOf(data));
  pair.hangUp();
  enrol(std::move(connection), {"here", "RANK", "WORLD", 1, 3, 1}, 0.01, [] {});
}

void exchangesOfARank(FuzzedDataProvider &data) {
  QuietBoard quiet(2);
  quiet.board->abort(4, "the end"); // instead of waiting for more
  SharedFiles files = SharedFiles::create(2);
  Pair pair;
  Connection connection(pair.ends[0]);
  connection.trust();
  bool connects = data.ConsumeBool();
  if (connects) {
    std::string sizes = Writer().number(4096).number(4096).take();
    files.arenas[0].resize(data.ConsumeIntegralInRange(0, 8192));
    files.exchange.resize(data.ConsumeIntegralInRange(0, 1 << 20));
    if (data.ConsumeBool())
      pair.send(frame(Message::values, false, Writer().number(2).text(sizes).text(sizes).take()));
  }
  pair.send(messagesOf(data));
  pair.hangUp();
  RemoteControl control(*quiet.board, "fuzz", 1, 1, std::move(connection), files);
  if (connects)
    control.connect(std::vector<Members>{{"all", {0, 1}}}, 4096);
  for (int i = 0; i < 3; ++i)
    data.ConsumeBool() ? (void)control.allGather("x", "y") : data.ConsumeBool() ? (void)control.gather("x", "y", 1) : control.barrier("x");
}

void passages(FuzzedDataProvider &data) {
  if (data.ConsumeBool()) {
    Passage passage(kToken, kKey);
    int socket = connectLocal(passage.name());
    std::string bytes = data.ConsumeRandomLengthString(80);
    send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    shutdown(socket, SHUT_WR);
    passage.serve({passage.socket()});
    close(socket);
    return;
  }
  Pair pair;
  for (int i = data.ConsumeIntegralInRange(0, 4); i > 0; --i)
    data.ConsumeBool() ? sendDescriptors(pair.ends[1], std::vector<int>(size_t(data.ConsumeIntegralInRange(0, 200)), pair.ends[1]))
                       : pair.send(data.ConsumeRandomLengthString(10));
  pair.hangUp();
  size_t count = size_t(data.ConsumeIntegralInRange(0, 200));
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
  FuzzedDataProvider data(bytes, size);
  constexpr void (*targets[])(FuzzedDataProvider &) = {strangersAtTheDoor, ranksAtTheHost,   hostAtTheDoor,
                                                       hostOfARank,        exchangesOfARank, passages};
  try {
    targets[data.ConsumeIntegralInRange<size_t>(0, std::size(targets) - 1)](data);
  } catch (const std::runtime_error &) {
    // What the runtime says when it is told nonsense; any other end is a finding.
  }
  return 0;
}
