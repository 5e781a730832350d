// A rank's control plane over a socket.
#include "RendezvousClient.h"
#include "Secret.h"
#include "comm/carrier/MpiCarrier.h"
#include "comm/engine/Exchange.h"
#include "comm/shared/Diagnosis.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <unistd.h>

using namespace par::comm;

namespace {

/// How long a rank waits for the reason of a lost connection, which the host's watcher sends.
constexpr int64_t hungUpTime = 5'000'000'000;
/// The same where the rank then joins again.
constexpr int64_t lostTime = 500'000'000;

/// As many values as the exchange gives this rank, neither fewer nor more.
std::vector<std::string> readValues(const std::string &body, size_t expected) {
  std::vector<std::string> values;
  Reader reader(body);
  if (reader.number() != expected)
    throw std::runtime_error(say(Sentence::truncated));
  while (values.size() < expected)
    values.push_back(reader.text());
  return values;
}

} // namespace

std::vector<std::string> ClientControl::exchange(Sharing sharing, std::string_view label, std::string_view value,
                                                 uint32_t root) {
  Writer writer;
  writer.number(uint64_t(sharing)).number(root).text(label).text(value);
  connection.send({Message::value, writer.take()});
  bool gets = sharing != Sharing::gather || rank() == root;
  try {
    return readValues(awaitValues().body, sharing == Sharing::broadcast ? 1 : gets ? world() : 0);
  } catch (const Lost &) {
    // Rank 0 was lost when all had come, and nothing was left to be done.
    if (label == endLabel && sharedState.over.load())
      return {""};
    throw;
  }
}

Message ClientControl::awaitValues() {
  // After a loss each moment counts.
  int wait = mends(sharedState) ? 10 : 100;
  for (int64_t closed = 0, waited = 0;;) {
    if (std::optional<Message> answer = connection.await(wait)) {
      if (answer->kind == Message::values)
        return std::move(*answer);
      if (answer->kind == Message::refuse)
        throw Aborted(readRefusal(answer->body).what());
      connection.close();
    }
    if (sharedState.aborted())
      throw Aborted(sharedState.message());
    if ((waited += wait) % 100 == 0)
      sharedState[rank()].idle.fetch_add(1, std::memory_order_relaxed);
    if (connection.open())
      continue;
    if (!closed)
      closed = now();
    if (mends(sharedState) && now() - closed > lostTime)
      throw Lost(say(Sentence::hostHungUp, rank()));
    if (now() - closed > hungUpTime)
      throw LaunchError(exitRankLost, say(Sentence::hostHungUp, rank()));
    usleep(20'000);
  }
}

LaunchEnvironment Joined::placeIn(LaunchEnvironment place) const {
  auto rank = std::find(welcome.seats.begin(), welcome.seats.end(), place.rank);
  place.rank = uint32_t(rank - welcome.seats.begin());
  place.world = uint32_t(welcome.seats.size());
  return place;
}

std::string ClientControl::broadcastSecret(std::string_view label, std::string_view value, uint32_t root) {
  if (joined.key.empty()) // ranks that par-run has forked: no network is between them
    return broadcast(label, value, root);
  return unseal(joined.key, broadcast(label, rank() == root ? seal(joined.key, value) : "", root));
}

uint32_t ClientControl::localRank() const {
  const HostMap &hosts = joined.welcome.hosts;
  if (place.localGiven || !hosts.several())
    return place.localRank;
  std::vector<uint32_t> here = hosts.ranksOf(hosts.hostOf[rank()]);
  return uint32_t(std::find(here.begin(), here.end(), rank()) - here.begin());
}

/// Rank 0's host is where this rank found it; other hosts are where their connections to it come from.
std::string ClientControl::address() const {
  return joined.welcome.hosts.hostOf[rank()] == 0 ? place.host : addressOf(connection.socket());
}

Placing ClientControl::placing() const {
  const Welcome &welcome = joined.welcome;
  Placing placing;
  placing.started = world();
  placing.hostOf = welcome.hosts.hostOf;
  if (welcome.hosts.several()) {
    placing.hosts = std::to_string(welcome.hosts.names.size()) + " hosts" +
                    (welcome.carrier == "device" ? "" : " by " + welcome.carrier);
    placing.address = address();
  }
  if (supervised) {
    placing.attempt = uint32_t(std::max<uint64_t>(welcome.attempt, 1) - 1);
    placing.started = uint32_t(supervised->kept.size());
    placing.seats = welcome.seats;
    placing.mayGrow = [this] { return sharedState.mayGrow.load() != 0; };
    placing.regroup = [this] { regroup(); };
    placing.mirrors = supervised->mirrors;
    placing.connectPeers = [this](Control &control, const std::vector<bool> &linked) {
      return connectPeers(control, linked);
    };
    for (uint32_t seat : welcome.seats)
      placing.kept.push_back(supervised->kept[seat]);
    for (size_t seat = 0; seat < supervised->keptOther.size(); ++seat)
      placing.memories.push_back({supervised->kept[seat], supervised->keptOther[seat]});
  }
  return placing;
}

void ClientControl::regroup() const {
  if (rank() == 0)
    supervised->lives.grows().store(1);
  std::string why = errorLine(bundleName(), "ranks have come again");
  sharedState.abort(exitRankLost, why, /*isLoss=*/true);
  throw Aborted(why);
}

std::shared_ptr<HostCarrier> ClientControl::makeCarrier() {
  const Welcome &welcome = joined.welcome;
  CarrierOf of{*this, welcome.hosts, joined.key, address()};
  of.sharedState = &sharedState;
  return welcome.carrier == "tcp" ? connectByTcp(of) : welcome.carrier == "mpi" ? connectByMpi(of) : nullptr;
}

std::shared_ptr<HostCarrier> ClientControl::connectPeers(Control &control, const std::vector<bool> &linked) const {
  CarrierOf of{control, joined.welcome.hosts, joined.key, address()};
  of.sharedState = &sharedState;
  of.linked = linked;
  return connectByTcp(of);
}

std::unique_ptr<Endpoint> ClientControl::connect(std::span<const Members> table, size_t arenaBytes) {
  auto fabric = std::make_shared<Fabric>();
  fabric->sharedState = &sharedState;
  fabric->table.assign(table.begin(), table.end());
  size_t meeting = exchangeBytes(table);
  files.arenas[rank()].resize(arenaBytes);
  Mapping own = files.arenas[rank()].map(arenaBytes);
  if (mends(sharedState)) // an earlier attempt may have left its bytes
    files.arenas[rank()].clear(own.bytes);
  const HostMap &hosts = joined.welcome.hosts;
  uint32_t host = hosts.hostOf[rank()];
  if (hosts.leaderOf(host) == rank())
    files.exchange.resize(meeting);
  Writer mine;
  mine.number(arenaBytes).number(meeting);
  std::vector<std::string> sizes = allGather("arenas", mine.take());
  for (uint32_t other = 0; other < world(); ++other) {
    Reader reader(sizes[other]);
    uint64_t bytes = reader.number();
    if (reader.number() != meeting)
      throw Mismatch(say(Sentence::otherTable, other, rank()));
    // Arenas of other hosts cannot be seen.
    bool away = hosts.hostOf[other] != host;
    Mapping arena = other == rank() ? own : away ? Mapping{} : files.arenas[other].map(bytes);
    if (hosts.several())
      fabric->away.push_back(away);
    fabric->arenas.push_back(arena.bytes);
    fabric->mappings.push_back(arena.owner);
  }
  Mapping memory = files.exchange.map(meeting);
  fabric->mappings.push_back(memory.owner);
  fabric->areas = exchangeAreas(fabric->table, memory.bytes.data());
  if (hosts.several())
    fabric->carrier = makeCarrier();
  return makeEndpoint(fabric, rank());
}
