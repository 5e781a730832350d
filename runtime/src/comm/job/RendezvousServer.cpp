// The rendezvous and its exchanges.
#include "RendezvousServer.h"
#include "Interrupt.h"
#include "comm/shared/Diagnosis.h"
#include "par/format/Printable.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <unistd.h>

using namespace par;
using namespace par::comm;

SharedFiles SharedFiles::create(uint32_t world) {
  SharedFiles files;
  files.sharedState = SharedFile::create("par-board");
  files.sharedState.resize(SharedState::bytesFor(world));
  files.exchange = SharedFile::create("par-exchange");
  for (uint32_t rank = 0; rank < world; ++rank)
    files.arenas.push_back(SharedFile::create("par-arena"));
  return files;
}

std::vector<int> SharedFiles::descriptors(size_t world) const {
  std::vector<int> result{sharedState.descriptor(), exchange.descriptor()};
  for (size_t rank = 0; rank < world; ++rank)
    result.push_back(arenas[rank].descriptor());
  return result;
}

SharedFiles SharedFiles::from(const std::vector<int> &descriptors) {
  SharedFiles files;
  files.sharedState = SharedFile(descriptors.at(0));
  files.exchange = SharedFile(descriptors.at(1));
  for (size_t i = 2; i < descriptors.size(); ++i)
    files.arenas.push_back(SharedFile(descriptors[i]));
  return files;
}

namespace {

/// Texts of a join are printed: short ones without control characters.
const std::string &checked(const std::string &text, size_t most = 255) {
  if (text.size() > most || std::any_of(text.begin(), text.end(), format::isControl))
    throw std::runtime_error(say(Sentence::truncated));
  return text;
}

/// Why the parts of ranks make no exchange; "" where they do.
std::string difference(const std::vector<Peer *> &members) {
  const ExchangedValue &first = *members[0]->value;
  for (uint32_t rank = 1; rank < members.size(); ++rank) {
    const ExchangedValue &other = *members[rank]->value;
    if (other.sharing != first.sharing || other.label != first.label || other.root != first.root)
      return differentExchange(0, first.sharing, first.label, rank, other.sharing, other.label);
  }
  return "";
}

std::string listOf(const std::vector<uint32_t> &ranks) {
  std::string list;
  for (uint32_t rank : ranks)
    list += (list.empty() ? "" : ", ") + std::to_string(rank);
  return list;
}

/// Why a rank cannot join, whoever else has; "" if it can. `ranks`: of the shared state.
std::string faultOf(const Join &join, const RendezvousOptions &hosting, uint32_t ranks) {
  uint32_t world = hosting.world ? hosting.world : ranks;
  if (join.world != world)
    return say(Sentence::worldsDiffer, join.rank, processOf(join), join.world, world, join.worldSource);
  // A job that has begun is told as it is.
  if (!hosting.failure.empty() && join.attempts)
    return hosting.failure;
  if (!hosting.failure.empty())
    return say(Sentence::rankFailed, 0, "pid " + std::to_string(getpid()) + " on " + hostName(), hosting.failure);
  if (hosting.oneHost && (join.host != hostName() || join.identity != hostIdentity()))
    return say(Sentence::severalHosts, join.rank, join.host, hostName());
  if (join.rank >= ranks && !join.spare)
    return say(Sentence::rankTooLarge, join.rank, ranks, join.rankSource);
  if (!join.failure.empty() && join.attempts)
    return join.failure;
  if (!join.failure.empty())
    return say(Sentence::rankFailed, join.rank, processOf(join), join.failure);
  return "";
}

} // namespace

std::string par::comm::processOf(const Join &join) { return "pid " + std::to_string(join.pid) + " on " + join.host; }

namespace {

/// Gives each rank the values of an exchange.
void giveValues(const std::vector<Peer *> &members) {
  const ExchangedValue first = *members[0]->value;
  Writer all;
  bool one = first.sharing == Sharing::broadcast;
  all.number(one ? 1 : members.size());
  for (uint32_t rank = 0; rank < members.size(); ++rank)
    if (!one || rank == first.root)
      all.text(members[rank]->value->bytes);
  std::string everything = all.take(), nothing = Writer().number(0).take();
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    bool gets = first.sharing != Sharing::gather || rank == first.root;
    members[rank]->connection.send({Message::values, gets ? everything : nothing});
    members[rank]->value.reset();
  }
}

/// By seat, who has come, and from which attempt.
std::vector<std::optional<Seated>> cameFrom(const std::vector<Peer *> &members) {
  std::vector<std::optional<Seated>> come;
  for (const Peer *peer : members)
    come.push_back(peer ? std::optional(peer->join->last) : std::nullopt);
  return come;
}

std::vector<uint32_t> missingFrom(const std::vector<Peer *> &members) {
  std::vector<uint32_t> missing;
  for (uint32_t seat = 0; seat < members.size(); ++seat)
    if (!members[seat])
      missing.push_back(seat);
  return missing;
}

/// Ranks may have made attempts that this supervisor has not: it was started again, and they are the rest of its job.
uint64_t nextAttempt(const std::vector<Peer *> &members, uint64_t own) {
  for (const Peer *peer : members)
    own = peer ? std::max(own, peer->join->attempts + 1) : own;
  return own;
}

HostMap hostsOf(const std::vector<Peer *> &members) {
  std::vector<std::pair<std::string, std::string>> places;
  for (const Peer *peer : members)
    places.emplace_back(peer->join->host, peer->join->identity);
  return HostMap::of(places);
}

std::string whoIsMissing(const std::vector<uint32_t> &missing, const Seats &seats, size_t strangers) {
  size_t joined = seats.all() - missing.size();
  std::string others = strangers ? say(Sentence::strangersCame, strangers) : "";
  if (seats.shrink() && !seats.membersFor(joined))
    others += say(Sentence::noSmallerMember, joined);
  return say(Sentence::ranksMissing, joined, seats.all(), listOf(missing), others);
}

} // namespace

std::string Join::write() const {
  Writer writer;
  writer.text(host)
      .text(rankSource)
      .text(worldSource)
      .number(rank)
      .number(world)
      .number(pid)
      .text(failure)
      .text(identity)
      .number(attempts)
      .number(last.rank)
      .number(last.ranks)
      .number(leaves)
      .number(holder)
      .number(spare);
  return writer.take();
}

Join Join::read(std::string_view bytes) {
  Reader reader(bytes);
  Join join;
  join.host = checked(reader.text());
  join.rankSource = checked(reader.text());
  join.worldSource = checked(reader.text());
  join.rank = reader.number();
  join.world = reader.number();
  join.pid = reader.number();
  join.failure = checked(reader.text(), maxFailure);
  join.identity = checked(reader.text());
  join.attempts = reader.number();
  join.last = {join.attempts, uint32_t(reader.number()), uint32_t(reader.number())};
  join.leaves = reader.number() != 0;
  join.holder = reader.number();
  join.spare = reader.number() != 0;
  return join;
}

std::string Welcome::write() const {
  Writer writer;
  writer.text(localChannel).text(carrier);
  hosts.write(writer);
  writer.number(attempt).number(seats.size());
  for (uint32_t seat : seats)
    writer.number(seat);
  return writer.take();
}

Welcome Welcome::read(std::string_view bytes) {
  Reader reader(bytes);
  Welcome welcome;
  welcome.localChannel = reader.text();
  welcome.carrier = reader.text();
  welcome.hosts = HostMap::read(reader);
  welcome.attempt = reader.number();
  if (reader.number() != welcome.hosts.hostOf.size())
    throw std::runtime_error(say(Sentence::truncated));
  while (welcome.seats.size() < welcome.hosts.hostOf.size())
    welcome.seats.push_back(uint32_t(reader.number()));
  return welcome;
}

RendezvousServer::RendezvousServer(std::optional<Listener> listener, RendezvousOptions given, SharedState &sharedState)
    : hosting(std::move(given)), sharedState(sharedState), seats(hosting.seats.value_or(Seats(sharedState.world()))),
      deadline(now() + int64_t(hosting.joinTimeout * 1e9)), members(sharedState.world()), outside(sharedState, seats),
      spares(hosting.bundle, hosting.holders), leavers(sharedState, hosting.bundle),
      ownAttempt(sharedState.attempt.load()), awaited(world()) {
  if (hosting.pass || !hosting.token.empty())
    localChannel.emplace(hosting.token, hosting.key);
  if (listener)
    gate.emplace(std::move(*listener), hosting.key, hosting.token.empty() ? "" : localChannel->name());
}

void RendezvousServer::adopt(int socket) {
  peers.push_back(std::make_unique<Peer>(Connection(socket)));
  peers.back()->connection.trust();
}

void RendezvousServer::step(int milliseconds, const std::vector<int> &also) {
  std::vector<pollfd> polled;
  if (gate)
    gate->watch(polled);
  if (localChannel)
    polled.push_back({localChannel->socket(), POLLIN, 0});
  for (const std::unique_ptr<Peer> &peer : peers)
    polled.push_back({peer->connection.socket(), short(peer->connection.pending() ? POLLIN | POLLOUT : POLLIN), 0});
  if (relay)
    relay->watch(polled);
  outside.watch(polled);
  spares.watch(polled);
  for (int fd : also)
    polled.push_back({fd, POLLIN, 0});
  poll(polled.data(), polled.size(), milliseconds);
  if (gate)
    for (Connection &known : gate->admit(missingFrom(members).size() + seats.all() - members.size() - outside.size()))
      peers.push_back(std::make_unique<Peer>(std::move(known)));
  if (localChannel)
    localChannel->serve(hosting.pass ? hosting.pass->descriptors(sharedState.world()) : std::vector<int>());
  for (size_t i = 0; i < peers.size(); ++i) {
    Peer &peer = *peers[i];
    peer.connection.pump();
    while (std::optional<Message> message = peer.connection.next())
      handle(peer, *message);
    if (peer.refused && !peer.connection.pending())
      peer.connection.close();
  }
  exchange();
  forgetClosed();
  if (relay)
    relay->step();
  spares.step();
  watchJoining();
  outside.step();
  leavers.watch();
}

void RendezvousServer::finish() {
  if (relay)
    relay->finish();
  if (!isLost(sharedState) || over)
    spares.dismiss();
  outside.finish(over);
}

void RendezvousServer::forgetClosed() {
  for (uint32_t rank = 0; rank < members.size(); ++rank)
    if (members[rank] && !members[rank]->connection.open()) {
      members[rank] = nullptr;
      if (started && !over && !sharedState[rank].finished.load())
        leavers.hangsUp(rank);
    }
  std::erase_if(peers, [](const std::unique_ptr<Peer> &peer) { return !peer->connection.open(); });
}

bool RendezvousServer::quiet() const {
  return spares.quiet() && (!relay || relay->quiet()) && outside.quiet() &&
         std::none_of(peers.begin(), peers.end(),
                      [](const std::unique_ptr<Peer> &peer) { return peer->connection.pending(); });
}

// A connection with malformed bytes is closed.
void RendezvousServer::handle(Peer &peer, const Message &message) {
  try {
    if (message.kind == Message::join && !peer.join) {
      admit(peer, Join::read(message.body));
    } else if (message.kind == Message::link && relay && !peer.join) {
      relay->adopt(Reader(message.body).number(), std::move(peer.connection));
    } else if (message.kind == Message::value && started && peer.join && !peer.value) {
      Reader reader(message.body);
      uint64_t sharing = reader.number(), root = reader.number();
      std::string label = reader.text();
      if (sharing > uint64_t(Sharing::allGather) || root >= sharedState.world())
        throw std::runtime_error("no such exchange");
      peer.value = ExchangedValue{Sharing(sharing), uint32_t(root), label, reader.text()};
    } else {
      peer.connection.close();
    }
  } catch (const std::runtime_error &) {
    peer.connection.close();
  }
}

std::string RendezvousServer::objection(const Join &join) const {
  std::string wrong = faultOf(join, hosting, seats.all());
  if (Peer *other = wrong.empty() ? members[join.rank] : nullptr)
    return say(Sentence::sameRank, join.rank, processOf(*other->join), processOf(join), join.rankSource);
  return wrong;
}

// Each attempt has a rendezvous of its own. A rank's earlier process may not be seen to have ended yet, and may have
// ended before it noted that it joined this attempt.
bool RendezvousServer::comesForNext(const Join &join) {
  bool belongs = mends(sharedState) && join.world == world() && join.rank < world();
  if (!belongs || !started)
    return belongs && members[join.rank];
  auto rank = std::find(seatOf.begin(), seatOf.end(), join.rank);
  if (rank != seatOf.end() && join.attempts >= sharedState.attempt.load())
    leavers.comesAgain(uint32_t(rank - seatOf.begin()));
  return rank != seatOf.end() || over || sharedState.aborted() || outside.has(uint32_t(join.rank));
}

void RendezvousServer::admit(Peer &peer, const Join &join) {
  bool knows = join.world == world() && join.rank < world();
  if (!started && knows && join.leaves && seats.leave(uint32_t(join.rank)))
    return refuse(peer, exitRankLost, errorLine(hosting.bundle, join.failure));
  std::string late = join.spare ? faultOf(join, hosting, seats.all()) : spares.comesTooLate(join);
  if (!late.empty())
    return refuse(peer, exitRankLost, errorLine(hosting.bundle, late));
  if (join.spare)
    return spares.adopt(join, std::move(peer.connection));
  if (comesForNext(join))
    return peer.connection.close();
  peer.join = join;
  if (started && knows && seats.shrink() && join.failure.empty())
    return outside.add(uint32_t(join.rank), std::move(peer.connection));
  awaited = std::max<size_t>(awaited, join.world);
  if (sharedState.aborted())
    return refuse(peer, sharedState.code(), sharedState.message());
  if (std::string message = objection(join); !message.empty()) {
    // A job that is complete goes on without the newcomer.
    if (started)
      return refuse(peer, 2, errorLine(hosting.bundle, message));
    moreMayCome = true;
    bool startedWrong = join.failure.empty() && hosting.failure.empty();
    return fail(startedWrong || join.world != world() ? 2 : exitRankLost, message);
  }
  members[join.rank] = &peer;
  spares.rankCame();
}

void RendezvousServer::start(const std::vector<uint32_t> &chosen) {
  started = true;
  std::vector<Peer *> come = std::exchange(members, {});
  for (uint32_t seat : chosen)
    members.push_back(come[seat]);
  seatOf = chosen;
  sharedState.ranks.store(uint32_t(chosen.size()));
  for (Peer *peer : members)
    spares.noteHolder(*peer->join);
  HostMap hosts = hostsOf(members);
  markHosts(sharedState, hosts, 0);
  if (hosts.several())
    relay.emplace(sharedState, hosts, hosting.bundle, hosting.timeout);
  Welcome welcome{localChannel ? localChannel->name() : "", hosting.carrier, hosts, sharedState.attempt.load(), chosen};
  for (Peer *peer : members)
    peer->connection.send({Message::welcome, welcome.write()});
  for (uint32_t seat = 0; seat < come.size(); ++seat) {
    seats.setGone(seat, !come[seat]);
    if (come[seat] && std::find(chosen.begin(), chosen.end(), seat) == chosen.end())
      outside.add(seat, std::move(come[seat]->connection));
  }
}

void RendezvousServer::refuse(Peer &peer, int code, const std::string &line) {
  peer.connection.send({Message::refuse, Writer().number(uint64_t(code)).text(line).take()});
  peer.refused = true;
  ++refusals;
}

void RendezvousServer::fail(int code, const std::string &message) {
  std::string line = errorLine(hosting.bundle, message);
  if (sharedState.claim())
    printLine(line);
  sharedState.abort(code, line);
}

// Ranks that wait for the others know nothing of the board yet: the reason of the job's end is sent to each.
void RendezvousServer::watchJoining() {
  if (started)
    return over ? void() : spares.fill(outside.missing(seatOf));
  endIfSignalled(sharedState, hosting.bundle);
  std::vector<uint32_t> missing = missingFrom(members);
  if (mends(sharedState))
    sharedState.attempt.store(nextAttempt(members, ownAttempt));
  if (auto chosen = seats.choose(cameFrom(members), sharedState.attempt.load() > 1); chosen && !sharedState.aborted())
    return start(*chosen);
  if (!sharedState.aborted() && now() >= deadline)
    fail(exitRankLost, whoIsMissing(missing, seats, gate ? gate->refused() : 0));
  if (!sharedState.aborted())
    return sharedState.attempt.load() > 1 ? spares.fill(missing) : void();
  for (const std::unique_ptr<Peer> &peer : peers)
    if (peer->join && !peer->refused)
      refuse(*peer, sharedState.code(), sharedState.message());
}

void RendezvousServer::exchange() {
  if (!started || std::any_of(members.begin(), members.end(), [](Peer *peer) { return !peer || !peer->value; }))
    return;
  if (std::string different = difference(members); !different.empty())
    return fail(exitRankLost, different);
  over |= members[0]->value->label == endLabel; // ranks leave after it
  if (mends(sharedState) && over)
    sharedState.over.store(1);
  giveValues(members);
}
