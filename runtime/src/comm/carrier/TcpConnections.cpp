// Connects ranks, those of different hosts or others: each listens, and connects to the lower ones of them. Either side
// shows the job's secret first (AuthGate.h).
#include "TcpConnections.h"
#include "TcpCarrier.h"
#include "comm/job/AuthGate.h"
#include "comm/shared/Threads.h"
#include "par/messages/CommMessages.h"

#include <atomic>
#include <fcntl.h>
#include <unistd.h>

using namespace par::comm;

namespace {

constexpr int dialTime = 1000, answerTime = 2000, dialPause = 50;

/// A rank's place in the mesh of connections.
class Mesh {
public:
  explicit Mesh(const CarrierOf &of)
      : of(of), me(of.control.rank()), sockets(of.control.world(), -1), deadline(now() + int64_t(of.timeout * 1e9)) {}
  std::shared_ptr<HostCarrier> connect();

private:
  /// The job or its attempt has ended: there will be no more connections.
  bool ended() const { return of.sharedState && of.sharedState->aborted(); }
  bool links(uint32_t rank) const {
    return of.linked.empty() ? of.hosts.hostOf[rank] != of.hosts.hostOf[me] : bool(of.linked[rank]);
  }
  const std::string &hostOf(uint32_t rank) const { return of.hosts.names[of.hosts.hostOf[rank]]; }
  void dial(uint32_t rank, const std::string &host, uint16_t port);
  void accept(AuthGate &gate);
  size_t expected() const;
  void keep(uint32_t rank, const Connection &connection);

  const CarrierOf &of;
  uint32_t me;
  std::vector<int> sockets; ///< by rank
  int64_t deadline;
  std::atomic<bool> failed{false};
};

} // namespace

void Mesh::keep(uint32_t rank, const Connection &connection) {
  sockets[rank] = fcntl(connection.socket(), F_DUPFD_CLOEXEC, 0);
}

size_t Mesh::expected() const {
  size_t count = 0;
  for (uint32_t rank = me + 1; rank < sockets.size(); ++rank)
    count += links(rank) && sockets[rank] < 0;
  return count;
}

// The socket is the carrier's from then on; its first bytes come when all have connected.
void Mesh::dial(uint32_t rank, const std::string &host, uint16_t port) {
  while (now() < deadline && !failed.load() && !ended()) {
    Connection connection(connectTo(host, port, dialTime));
    std::string key;
    if (connection.open() && knockWith(connection, of.key, port, answerTime) == Knock::admitted) {
      connection.send({Message::link, Writer().number(me).take()});
      std::optional<Message> answer = connection.await(answerTime);
      if (answer && answer->kind == Message::welcome)
        return keep(rank, connection);
    }
    usleep(dialPause * 1000);
  }
  throw LaunchError(exitRankLost,
                    say(Sentence::noCarrier, me, hostOf(me), rank, hostOf(rank), host + ":" + std::to_string(port)));
}

void Mesh::accept(AuthGate &gate) {
  std::list<Connection> known;
  while (expected() > 0 && now() < deadline && !failed.load() && !ended()) {
    std::vector<pollfd> polled;
    gate.watch(polled);
    for (const Connection &connection : known)
      polled.push_back({connection.socket(), POLLIN, 0});
    poll(polled.data(), polled.size(), dialPause);
    known.splice(known.end(), gate.admit(expected()));
    for (Connection &connection : known) {
      connection.pump();
      std::optional<Message> message = connection.next();
      if (!message)
        continue;
      uint64_t rank = message->kind == Message::link ? Reader(message->body).number() : sockets.size();
      if (rank < sockets.size() && rank > me && links(uint32_t(rank)) && sockets[rank] < 0) {
        connection.send({Message::welcome, ""});
        keep(uint32_t(rank), connection);
      }
      connection.close();
    }
    known.remove_if([](const Connection &connection) { return !connection.open(); });
  }
}

std::shared_ptr<HostCarrier> Mesh::connect() {
  Listener listener = Listener::anywhere();
  uint16_t port = listener.port();
  AuthGate gate(std::move(listener), of.key, "");
  std::string address = Writer().text(of.address).number(port).take();
  std::vector<std::string> addresses = of.control.allGather("carriers", address);
  std::thread acceptor = startThread([&] { accept(gate); });
  try {
    for (uint32_t rank = 0; rank < me; ++rank) {
      if (!links(rank))
        continue;
      Reader reader(addresses[rank]);
      std::string host = reader.text();
      dial(rank, host, uint16_t(reader.number()));
    }
  } catch (...) {
    failed.store(true);
    acceptor.join();
    throw;
  }
  acceptor.join();
  for (uint32_t rank = me + 1; rank < sockets.size(); ++rank)
    if (links(rank) && sockets[rank] < 0)
      throw LaunchError(exitRankLost, say(Sentence::noCarrier, rank, hostOf(rank), me, hostOf(me),
                                          of.address + ":" + std::to_string(port)));
  of.control.barrier("connected");
  return std::make_shared<TcpCarrier>(std::move(sockets));
}

std::shared_ptr<HostCarrier> par::comm::connectByTcp(const CarrierOf &of) { return Mesh(of).connect(); }
