// A rank's connection to the maker of an id of the stub NCCL.
#include "NcclConnection.h"

#include "NcclFrames.h"

#include <arpa/inet.h>
#include <cerrno>
#include <sstream>
#include <thread>
#include <unistd.h>
#include <utility>

namespace par::stub {

namespace {

constexpr int systemError = 2, remoteError = 6;
/// A root that does not listen yet is tried so often.
constexpr int attempts = 34;

/// A connected socket, or -1.
int connectTo(const std::string &address, int port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, address.c_str(), &to.sin_addr);
  for (int i = 0; i < attempts; ++i) {
    int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(socket, reinterpret_cast<sockaddr *>(&to), sizeof to) == 0)
      return socket;
    bool again = errno == ECONNREFUSED;
    close(socket);
    if (!again)
      return -1;
    usleep(100'000);
  }
  return -1;
}

} // namespace

std::shared_ptr<RootConnection> RootConnection::join(const std::string &id, int rank, int ranks) {
  std::istringstream parts(id);
  std::string address, secret;
  int port = 0;
  parts >> address >> port >> secret;
  auto connection = std::make_shared<RootConnection>();
  connection->waiting = Frame().text("join").text(secret).number(ranks).number(rank).whole();
  std::thread([connection, address, port] { connection->run(connectTo(address, port)); }).detach();
  return connection;
}

/// Messages that go out and that come in have a thread each: neither waits for the other.
void RootConnection::run(int socket) {
  Machine &machine = Machine::get();
  {
    auto held = machine.lock();
    connected = socket;
    if (left)
      leave();
  }
  std::thread sender([this, socket] { sendWaiting(socket); });
  std::string message;
  while (socket >= 0 && receive(socket, message)) {
    auto held = machine.lock();
    take(message);
    machine.changed.notify_all();
  }
  {
    auto held = machine.lock();
    if (!failed && !finished)
      failed = socket < 0 ? systemError : remoteError;
    connected = -1;
    left = true;
    hasWaiting.notify_all();
    machine.changed.notify_all();
  }
  sender.join();
  close(socket);
}

void RootConnection::leave() {
  finished = left = true;
  if (connected >= 0)
    shutdown(connected, SHUT_RDWR);
  hasWaiting.notify_all();
}

void RootConnection::sendWaiting(int socket) {
  Machine &machine = Machine::get();
  for (std::string bytes;;) {
    {
      auto held = machine.lock();
      hasWaiting.wait(held, [this] { return left || !waiting.empty(); });
      if (left)
        return;
      bytes = std::exchange(waiting, "");
    }
    if (!sendAll(socket, bytes))
      return;
  }
}

void RootConnection::take(const std::string &message) {
  FrameReader reader(message);
  std::string word = reader.text();
  if (word == "made") {
    std::pair<uint64_t, uint64_t> call;
    call.first = reader.number();
    call.second = reader.number();
    Made &made = groups[call];
    made.group = reader.number();
    made.size = reader.small();
    made.name = reader.text();
  } else if (word == "result") {
    uint64_t number = reader.number();
    results[number] = reader.text();
  } else if (word == "finished") {
    allFinished = true;
  } else if (!finished) {
    failed = remoteError;
  }
}

void RootConnection::write(const std::string &message) {
  waiting += message;
  hasWaiting.notify_all();
}

void RootConnection::split(uint64_t group, uint64_t number, int color, int key) {
  write(Frame()
            .text("split")
            .number(group)
            .number(number)
            .number(static_cast<uint64_t>(color))
            .number(static_cast<uint64_t>(key))
            .whole());
}

uint64_t RootConnection::send(uint64_t group, const std::string &key, size_t wanted, int side, const Part &part) {
  // Members of a reduce-scatter and ranks of an all-gather bring operands of different sizes.
  size_t bytes = part.in ? part.n * sizeOf(part.type) * (part.kind == "ncclReduceScatter" ? wanted : 1) : 0;
  write(Frame()
            .text("side")
            .number(group)
            .text(key)
            .number(wanted)
            .number(static_cast<uint64_t>(side))
            .number(++numbers)
            .text(part.kind)
            .number(part.n)
            .number(static_cast<uint64_t>(part.type))
            .number(static_cast<uint64_t>(part.op))
            .number(static_cast<uint64_t>(part.peer))
            .text(std::string(part.in ? part.in : "", bytes))
            .whole());
  return numbers;
}

void RootConnection::finish(std::unique_lock<std::mutex> &held) {
  if (!finished)
    write(Frame().text("finish").whole());
  finished = true;
  Machine::get().changed.wait_for(held, std::chrono::seconds(10), [this] { return allFinished || failed; });
}

std::optional<RootConnection::Made> RootConnection::made(uint64_t group, uint64_t number) const {
  auto it = groups.find({group, number});
  return it == groups.end() ? std::nullopt : std::optional(it->second);
}

const std::string *RootConnection::result(uint64_t number) const {
  auto it = results.find(number);
  return it == results.end() ? nullptr : &it->second;
}

} // namespace par::stub
