// The thread of the stub NCCL at which the ranks' sides of communications meet.
#include "NcclConnection.h"
#include "NcclFrames.h"

#include <arpa/inet.h>
#include <cstdlib>
#include <ifaddrs.h>
#include <net/if.h>
#include <random>
#include <thread>
#include <vector>

namespace par::stub {

namespace {

/// One side's buffers and where its result goes.
struct Held {
  int socket = -1;
  uint64_t number = 0;
  std::string in, out;
};

struct Gathered {
  Match match;
  std::map<int, Held> held;
};

struct Called {
  int socket = -1, color = 0, rank = 0;
};

class Switch {
public:
  explicit Switch(std::string secret) : secret(std::move(secret)) {}
  void serve(int socket);

private:
  void join(int socket, FrameReader &reader);
  void split(int socket, FrameReader &reader);
  void side(int socket, FrameReader &reader);
  void finish();
  void lost();
  void tell(int socket, const Frame &frame) { sendAll(socket, frame.whole()); }

  std::mutex mutex;
  std::string secret;
  std::vector<int> members; ///< sockets of the world
  size_t finished = 0;
  uint64_t groups = 1; ///< the world's number
  std::map<uint64_t, size_t> sizes;
  std::map<std::pair<uint64_t, uint64_t>, std::vector<Called>> splits;
  std::map<std::pair<uint64_t, std::string>, Gathered> gathering;
};

void Switch::serve(int socket) {
  std::string message;
  bool finishes = false, joined = false;
  while (receive(socket, message)) {
    std::lock_guard held(mutex);
    FrameReader reader(message);
    std::string word = reader.text();
    if (!joined && (word != "join" || reader.text() != secret))
      break;
    joined = true;
    if (word == "join")
      join(socket, reader);
    else if (word == "split")
      split(socket, reader);
    else if (word == "side")
      side(socket, reader);
    else
      finishes = true, finish();
  }
  std::lock_guard held(mutex);
  if (joined && !finishes)
    lost();
}

void Switch::join(int socket, FrameReader &reader) {
  size_t ranks = reader.number();
  members.push_back(socket);
  sizes[1] = ranks;
  if (members.size() == ranks)
    for (int member : members)
      tell(member, Frame().text("made").number(0).number(0).number(1).number(ranks).text("world"));
}

void Switch::split(int socket, FrameReader &reader) {
  uint64_t group = reader.number(), number = reader.number();
  int color = reader.small();
  std::vector<Called> &calls = splits[{group, number}];
  calls.push_back({socket, color, reader.small()});
  if (calls.size() != sizes[group])
    return;
  std::map<int, uint64_t> made;
  for (const Called &call : calls)
    if (call.color >= 0 && !made.count(call.color))
      made[call.color] = ++groups;
  for (const Called &call : calls)
    if (call.color >= 0)
      ++sizes[made[call.color]];
  for (const Called &call : calls)
    if (call.color >= 0)
      tell(call.socket, Frame()
                            .text("made")
                            .number(group)
                            .number(number)
                            .number(made[call.color])
                            .number(sizes[made[call.color]])
                            .text("split" + std::to_string(number) + "/" + std::to_string(call.color)));
}

void Switch::side(int socket, FrameReader &reader) {
  uint64_t group = reader.number();
  std::string key = reader.text();
  size_t wanted = reader.number();
  int side = reader.small();
  Gathered &gathered = gathering[{group, key}];
  Held &held = gathered.held[side];
  held.socket = socket;
  held.number = reader.number();
  Part &part = gathered.match.sides[side];
  part.kind = reader.text();
  part.n = reader.number();
  part.type = reader.small();
  part.op = reader.small();
  part.peer = reader.small();
  held.in = reader.text();
  if (gathered.match.sides.size() != wanted)
    return;
  for (auto &[number, one] : gathered.match.sides) {
    Held &its = gathered.held[number];
    size_t bytes = one.n * sizeOf(one.type);
    bool none = one.kind == "send" || (one.kind == "ncclReduce" && number != one.peer);
    its.out.resize(one.kind == "ncclAllGather" ? bytes * wanted : none ? 0 : bytes);
    one.in = its.in.data();
    one.out = its.out.data();
  }
  perform(gathered.match);
  for (auto &[number, its] : gathered.held)
    tell(its.socket, Frame().text("result").number(its.number).text(its.out));
  gathering.erase({group, key});
}

void Switch::finish() {
  if (++finished == members.size())
    for (int member : members)
      tell(member, Frame().text("finished"));
}

void Switch::lost() {
  for (int member : members)
    tell(member, Frame().text("lost"));
}

/// The address of the interface whose name begins as NCCL_SOCKET_IFNAME says, or of the first that leads out.
in_addr addressOfRoot() {
  const char *given = std::getenv("NCCL_SOCKET_IFNAME");
  std::string name = given ? given : "";
  if (name.starts_with('='))
    name.erase(0, 1);
  in_addr found{htonl(INADDR_LOOPBACK)};
  ifaddrs *first = nullptr;
  getifaddrs(&first);
  for (ifaddrs *it = first; it; it = it->ifa_next) {
    bool fits = name.empty() ? !(it->ifa_flags & IFF_LOOPBACK) : std::string(it->ifa_name).starts_with(name);
    if (!it->ifa_addr || it->ifa_addr->sa_family != AF_INET || !fits)
      continue;
    found = reinterpret_cast<sockaddr_in *>(it->ifa_addr)->sin_addr;
    break;
  }
  freeifaddrs(first);
  return found;
}

} // namespace

bool byTcp() { return std::getenv("PAR_STUB_NCCL_TCP") != nullptr; }

std::string listenAsRoot() {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = addressOfRoot();
  socklen_t size = sizeof address;
  auto *plain = reinterpret_cast<sockaddr *>(&address);
  if (bind(listener, plain, size) != 0 || listen(listener, 128) != 0 || getsockname(listener, plain, &size) != 0)
    return "";
  std::random_device random;
  std::string secret = std::to_string(random()) + std::to_string(random());
  auto *meets = new Switch(secret); // its threads end with the process
  std::thread([listener, meets] {
    for (int socket; (socket = accept(listener, nullptr, nullptr)) >= 0;)
      std::thread([socket, meets] { meets->serve(socket); }).detach();
  }).detach();
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return std::string(text) + " " + std::to_string(ntohs(address.sin_port)) + " " + secret;
}

} // namespace par::stub
