//===- Host.cpp - the rendezvous and its exchanges -------------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "comm/Host.h"
#include "comm/Diagnosis.h"
#include "par/comm/Sentences.h"
#include "par/format/Sha256.h"

#include <algorithm>

using namespace par;
using namespace par::comm;

SharedFiles SharedFiles::create(uint32_t world) {
  SharedFiles files;
  files.board = SharedFile::create("par-board");
  files.board.resize(Board::bytesFor(world));
  files.exchange = SharedFile::create("par-exchange");
  for (uint32_t rank = 0; rank < world; ++rank)
    files.arenas.push_back(SharedFile::create("par-arena"));
  return files;
}

std::vector<int> SharedFiles::descriptors() const {
  std::vector<int> result{board.descriptor(), exchange.descriptor()};
  for (const SharedFile &arena : arenas)
    result.push_back(arena.descriptor());
  return result;
}

SharedFiles SharedFiles::from(const std::vector<int> &descriptors) {
  SharedFiles files;
  files.board = SharedFile(descriptors.at(0));
  files.exchange = SharedFile(descriptors.at(1));
  for (size_t i = 2; i < descriptors.size(); ++i)
    files.arenas.push_back(SharedFile(descriptors[i]));
  return files;
}

std::string par::comm::greetingOf(const std::string &token) { return format::sha256("greeting " + token); }

std::string Join::write() const {
  Writer writer;
  writer.text(token).text(host).text(rankSource).text(worldSource).number(rank).number(world).number(pid);
  return writer.take();
}

Join Join::read(std::string_view bytes) {
  Reader reader(bytes);
  Join join;
  join.token = reader.text();
  join.host = reader.text();
  join.rankSource = reader.text();
  join.worldSource = reader.text();
  join.rank = reader.number();
  join.world = reader.number();
  join.pid = reader.number();
  return join;
}

Host::Host(Listener listener, std::string bundle, std::string token, double joinTimeout, Board &board,
           const SharedFiles *pass)
    : listener(std::move(listener)), bundle(std::move(bundle)), token(std::move(token)),
      deadline(now() + int64_t(joinTimeout * 1e9)), board(board), pass(pass), members(board.world()) {
  if (pass)
    local.emplace(Listener::local(localName));
}

void Host::step(int milliseconds, const std::vector<int> &also) {
  std::vector<pollfd> polled{{listener.socket(), POLLIN, 0}};
  if (local)
    polled.push_back({local->socket(), POLLIN, 0});
  for (const std::unique_ptr<Peer> &peer : peers)
    polled.push_back(
        {peer->connection.socket(), short(peer->connection.pending() ? POLLIN | POLLOUT : POLLIN), 0});
  for (int fd : also)
    polled.push_back({fd, POLLIN, 0});
  poll(polled.data(), polled.size(), milliseconds);
  if (polled[0].revents)
    accept();
  if (local && polled[1].revents) {
    int socket = local->accept();
    if (socket >= 0 && sameUser(socket))
      sendDescriptors(socket, pass->descriptors());
    close(socket);
  }
  for (const std::unique_ptr<Peer> &peer : peers) {
    peer->connection.pump();
    while (std::optional<Message> message = peer->connection.next())
      handle(*peer, *message);
    if (peer->refused && !peer->connection.pending())
      peer->connection.close();
  }
  exchange();
  std::erase_if(peers, [&](const std::unique_ptr<Peer> &peer) {
    if (!peer->connection.open())
      std::replace(members.begin(), members.end(), peer.get(), static_cast<Peer *>(nullptr));
    return !peer->connection.open();
  });
  watchJoining();
}

bool Host::quiet() const {
  return std::none_of(peers.begin(), peers.end(),
                      [](const std::unique_ptr<Peer> &peer) { return peer->connection.pending(); });
}

void Host::accept() {
  int socket = listener.accept();
  if (socket < 0)
    return;
  peers.push_back(std::make_unique<Peer>(socket));
  peers.back()->connection.send({Message::greeting, greetingOf(token)});
}

// Whoever sends bytes that are not ours is hung up on.
void Host::handle(Peer &peer, const Message &message) {
  try {
    if (message.kind == Message::join && !peer.join) {
      admit(peer, Join::read(message.body));
    } else if (message.kind == Message::value && peer.join && !peer.value) {
      Reader reader(message.body);
      uint64_t sharing = reader.number(), root = reader.number();
      std::string label = reader.text();
      if (sharing > uint64_t(Sharing::allGather) || root >= board.world())
        throw std::runtime_error("no such exchange");
      peer.value = Value{Sharing(sharing), uint32_t(root), label, reader.text()};
    } else {
      peer.connection.close();
    }
  } catch (const std::runtime_error &) {
    peer.connection.close();
  }
}

void Host::admit(Peer &peer, const Join &join) {
  if (join.token != token)
    return refuse(peer, 2, errorLine(bundle, say(Sentence::otherJob)));
  if (board.aborted())
    return refuse(peer, board.code(), board.message());
  auto process = [](const Join &j) { return "pid " + std::to_string(j.pid) + " on " + j.host; };
  peer.join = join;
  if (join.world != board.world())
    return fail(2, say(Sentence::worldsDiffer, join.rank, process(join), join.world, board.world(),
                       join.worldSource));
  if (join.host != hostName())
    return fail(2, say(Sentence::severalHosts, join.rank, join.host, hostName()));
  if (join.rank >= board.world())
    return fail(2, say(Sentence::rankTooLarge, join.rank, board.world(), join.rankSource));
  if (Peer *other = members[join.rank]) {
    std::string message =
        say(Sentence::sameRank, join.rank, process(*other->join), process(join), join.rankSource);
    // A job that is complete goes on without the newcomer.
    return joined == board.world() ? refuse(peer, 2, errorLine(bundle, message)) : fail(2, message);
  }
  members[join.rank] = &peer;
  ++joined;
  peer.connection.send({Message::welcome, localName});
}

void Host::refuse(Peer &peer, int code, const std::string &line) {
  Writer writer;
  writer.number(uint64_t(code)).text(line);
  peer.connection.send({Message::refuse, writer.take()});
  peer.refused = true;
}

void Host::fail(int code, const std::string &message) {
  std::string line = errorLine(bundle, message);
  if (board.claim())
    printLine(line);
  board.abort(code, line);
  for (const std::unique_ptr<Peer> &peer : peers)
    if (peer->join && std::find(members.begin(), members.end(), peer.get()) == members.end())
      refuse(*peer, code, line);
}

void Host::watchJoining() {
  if (joined == board.world() || board.aborted() || now() < deadline)
    return;
  std::string missing;
  for (uint32_t rank = 0; rank < members.size(); ++rank)
    if (!members[rank])
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  fail(exitRankLost, say(Sentence::ranksMissing, joined, board.world(), missing));
}

void Host::exchange() {
  if (std::any_of(members.begin(), members.end(), [](Peer *peer) { return !peer || !peer->value; }))
    return;
  const Value &first = *members[0]->value;
  for (uint32_t rank = 1; rank < members.size(); ++rank) {
    const Value &other = *members[rank]->value;
    if (other.sharing != first.sharing || other.label != first.label || other.root != first.root)
      return fail(exitRankLost,
                  differentExchange(0, first.sharing, first.label, rank, other.sharing, other.label));
  }
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
  }
  for (Peer *peer : members)
    peer->value.reset();
}
