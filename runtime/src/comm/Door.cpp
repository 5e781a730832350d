//===- Door.cpp - who may speak with the host ------------------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host sends {nonce, name of its passage}, the rank {nonce, proof}, the host {proof}. The rank shows first
// what it knows: whoever comes to the door learns nothing from the host that could be tried against a secret.
//
//===----------------------------------------------------------------------===//
#include "comm/Door.h"
#include "comm/Board.h"
#include "comm/Passage.h"

#include <algorithm>
#include <cerrno>

using namespace par::comm;

namespace {

/// Strangers besides the ranks that are yet to come.
constexpr size_t quotaOfStrangers = 32;
constexpr int64_t strangersTime = 5'000'000'000, pauseTime = 100'000'000;
/// Connections taken at a time, so that those who are in are served, too.
constexpr int mostAtOnce = 32;

} // namespace

void Door::watch(std::vector<pollfd> &polled) const {
  // A listener that cannot be served would wake its host again and again.
  polled.push_back({now() < pause ? -1 : listener.socket(), POLLIN, 0});
  for (const Stranger &stranger : strangers)
    polled.push_back({stranger.connection.socket(), POLLIN, 0});
}

void Door::bring(int socket) {
  std::string nonce = randomBytes(kProofBytes);
  strangers.push_back({Connection(socket), nonce, now()});
  strangers.back().connection.send({Message::challenge, Writer().text(nonce).text(passage).take()});
}

// The oldest stranger makes room, for one over the quota and where the system gives no more descriptors.
void Door::accept(size_t quota) {
  if (now() < pause)
    return;
  for (int i = 0; i < mostAtOnce; ++i) {
    int socket = listener.accept();
    if (socket >= 0) {
      bring(socket);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      if (strangers.empty()) {
        pause = now() + pauseTime;
        return;
      }
      strangers.pop_front();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
    while (strangers.size() > quota)
      strangers.pop_front();
  }
}

bool Door::knows(Stranger &stranger, const Message &message) {
  if (message.kind == Message::proof) {
    try {
      Reader reader(message.body);
      Encounter encounter{stranger.nonce, reader.text(), port};
      if (encounter.rankNonce.size() == kProofBytes &&
          sameBytes(reader.text(), proofOf(key, Side::rank, encounter))) {
        stranger.connection.trust();
        stranger.connection.send({Message::admitted, proofOf(key, Side::host, encounter)});
        return true;
      }
      ++failures;
    } catch (const std::runtime_error &) {
    }
  }
  stranger.connection.close();
  return false;
}

std::list<Connection> Door::admit(size_t expected) {
  accept(quotaOfStrangers + expected);
  std::list<Connection> known;
  for (auto it = strangers.begin(); it != strangers.end();) {
    it->connection.pump();
    std::optional<Message> message = it->connection.next();
    if (message && knows(*it, *message))
      known.push_back(std::move(it->connection));
    bool gone = !it->connection.open() || now() - it->since > strangersTime;
    it = gone ? strangers.erase(it) : std::next(it);
  }
  return known;
}

Knock par::comm::knock(Connection &connection, const std::string &token, const std::string &job, uint16_t port,
                       int milliseconds, std::string &key) {
  std::optional<Message> challenge = connection.await(milliseconds);
  if (!challenge)
    return connection.open() ? Knock::silent : Knock::noHost;
  if (challenge->kind != Message::challenge)
    return Knock::noHost;
  Encounter encounter{"", randomBytes(kProofBytes), port};
  std::string passage;
  try { // of a host that may be none
    Reader reader(challenge->body);
    encounter.hostNonce = reader.text();
    passage = reader.text();
  } catch (const std::runtime_error &) {
    return Knock::noHost;
  }
  if (encounter.hostNonce.size() != kProofBytes)
    return Knock::noHost;
  std::optional<std::string> secret = token.empty() ? askForSecret(passage) : token;
  if (!secret)
    return Knock::noPassage;
  key = keyOf(*secret, job);
  Writer answer;
  answer.text(encounter.rankNonce).text(proofOf(key, Side::rank, encounter));
  connection.send({Message::proof, answer.take()});
  std::optional<Message> admitted = connection.await(milliseconds);
  if (!admitted && connection.open())
    return Knock::silent;
  if (!admitted || admitted->kind != Message::admitted ||
      !sameBytes(admitted->body, proofOf(key, Side::host, encounter)))
    return Knock::otherSecret;
  connection.trust();
  return Knock::admitted;
}
