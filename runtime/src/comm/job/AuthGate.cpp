// Authentication of connections to the host of a job. The host sends {nonce, name of its passage}, the rank {nonce,
// proof}, the host {proof}. The rank shows its proof first, so a stranger learns nothing from the host that it could
// try secrets against.
#include "AuthGate.h"
#include "LocalChannel.h"
#include "comm/shared/SharedState.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

using namespace par::comm;

namespace {

/// Strangers besides the ranks that are yet to come.
constexpr size_t quotaOfStrangers = 128;
/// Maximum and guaranteed time of an unauthenticated connection.
constexpr int64_t strangersTime = 5'000'000'000, minTime = 400'000'000;
constexpr int64_t strangersPause = 100'000'000;
/// Connections accepted at a time, so that those that are open are served, too.
constexpr int maxAtOnce = 128;

} // namespace

void AuthGate::watch(std::vector<pollfd> &polled) const {
  // A listener that cannot be served would wake its host again and again.
  polled.push_back({now() < pause ? -1 : listener.socket(), POLLIN, 0});
  for (const Stranger &stranger : strangers)
    polled.push_back({stranger.connection.socket(), POLLIN, 0});
}

void AuthGate::bring(int socket) {
  std::string nonce = randomBytes(proofBytes);
  strangers.push_back({Connection(socket), nonce, now()});
  strangers.back().connection.send({Message::challenge, Writer().text(nonce).text(localChannel).take()});
}

bool AuthGate::makeRoom(size_t most) {
  if (strangers.size() < most)
    return true;
  if (strangers.empty() || now() - strangers.front().since < minTime)
    return false;
  strangers.pop_front();
  return true;
}

// An accepted connection has time to show the secret, however many come. In a flood connections without a place are
// closed, so that none waits long in the system's queue; a rank comes again, and soon gets a place.
void AuthGate::accept(size_t quota) {
  if (now() < pause)
    return;
  for (int i = 0; i < maxAtOnce; ++i) {
    int socket = listener.accept();
    if (socket >= 0) {
      if (makeRoom(quota))
        bring(socket);
      else
        close(socket);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      if (makeRoom(0))
        continue;
      pause = now() + strangersPause;
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

bool AuthGate::knows(Stranger &stranger, const Message &message) {
  if (message.kind == Message::proof) {
    try {
      Reader reader(message.body);
      Encounter encounter{stranger.nonce, reader.text(), port};
      if (encounter.rankNonce.size() == proofBytes && sameBytes(reader.text(), proofOf(key, Side::rank, encounter))) {
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

std::list<Connection> AuthGate::admit(size_t expected) {
  std::list<Connection> known;
  for (auto it = strangers.begin(); it != strangers.end();) {
    it->connection.pump();
    std::optional<Message> message = it->connection.next();
    if (message && knows(*it, *message))
      known.push_back(std::move(it->connection));
    bool gone = !it->connection.open() || now() - it->since > strangersTime;
    it = gone ? strangers.erase(it) : std::next(it);
  }
  // Last: a proof that has come counts before its stranger makes room.
  accept(quotaOfStrangers + expected);
  return known;
}

namespace {

/// A host's first words.
struct Challenge {
  std::string nonce, localChannel;
};

Knock awaitChallenge(Connection &connection, int milliseconds, Challenge &challenge) {
  std::optional<Message> message = connection.await(milliseconds);
  if (!message)
    return connection.open() ? Knock::silent : Knock::noHost;
  if (message->kind != Message::challenge)
    return Knock::noHost;
  try { // of a host that may be none
    Reader reader(message->body);
    challenge.nonce = reader.text();
    challenge.localChannel = reader.text();
  } catch (const std::runtime_error &) {
    return Knock::noHost;
  }
  return challenge.nonce.size() == proofBytes ? Knock::admitted : Knock::noHost;
}

/// Both sides show the key.
Knock showKey(Connection &connection, const std::string &key, const Encounter &encounter, int milliseconds) {
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

} // namespace

Knock par::comm::knock(Connection &connection, const std::string &token, const std::string &job, uint16_t port,
                       int milliseconds, std::string &key) {
  Challenge challenge;
  if (Knock answer = awaitChallenge(connection, milliseconds, challenge); answer != Knock::admitted)
    return answer;
  std::optional<std::string> secret = token.empty() ? askForSecret(challenge.localChannel) : token;
  if (!secret)
    return Knock::noLocalChannel;
  key = keyOf(*secret, job);
  return showKey(connection, key, {challenge.nonce, randomBytes(proofBytes), port}, milliseconds);
}

Knock par::comm::knockWith(Connection &connection, const std::string &key, uint16_t port, int milliseconds) {
  Challenge challenge;
  if (Knock answer = awaitChallenge(connection, milliseconds, challenge); answer != Knock::admitted)
    return answer;
  return showKey(connection, key, {challenge.nonce, randomBytes(proofBytes), port}, milliseconds);
}
