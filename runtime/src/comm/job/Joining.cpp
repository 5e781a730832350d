// Finds the host of a job and joins it. A listener at the rendezvous is believed only after it has shown the job's
// secret. Others are passed over until the time is up, so that only the job's own host can end a rank.
#include "AuthGate.h"
#include "LocalChannel.h"
#include "RendezvousClient.h"
#include "par/format/Printable.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <unistd.h>
#include <utility>

using namespace par;
using namespace par::comm;

namespace {

constexpr int connectTime = 1000, knockTime = 2000;
/// Microseconds between two tries, and where a job is being mended.
constexpr useconds_t pauseTime = 50'000, againTime = 5'000;
/// Beyond the host's own time for ranks to come.
constexpr double grace = 5;
/// Time after which a rank that for one reason finds no host says so.
constexpr int64_t reasonTime = 2'000'000'000;

std::string reasonOf(Knock knock) {
  switch (knock) {
  case Knock::admitted:
    return "";
  case Knock::silent:
  case Knock::noHost:
    return say(Sentence::strangerThere);
  case Knock::noLocalChannel:
    return say(Sentence::noLocalChannel);
  case Knock::otherSecret:
    return say(Sentence::otherSecret);
  }
  return "";
}

} // namespace

/// nullopt where no host writes that to this rank.
static std::optional<Welcome> readWelcome(const std::string &body, const Join &join) {
  try {
    Welcome welcome = Welcome::read(body);
    bool named = welcome.localChannel.empty() || isLocalChannelName(welcome.localChannel);
    bool fits =
        welcome.seats.size() <= join.world && std::count(welcome.seats.begin(), welcome.seats.end(), join.rank) == 1 &&
        std::all_of(welcome.seats.begin(), welcome.seats.end(), [&](uint32_t seat) { return seat < join.world; });
    return named && fits ? std::optional(welcome) : std::nullopt;
  } catch (const std::runtime_error &) {
    return std::nullopt;
  }
}

/// Ranks of an attempt that goes on without this one; 0 where no host writes that.
static uint64_t waitedFor(const Message &message) {
  try {
    return Reader(message.body).number();
  } catch (const std::runtime_error &) {
    return 0;
  }
}

Refused par::comm::readRefusal(const std::string &body) {
  Reader reader(body);
  uint64_t code = reader.number();
  std::string line = format::printable(reader.text());
  return Refused(code >= 1 && code <= 255 ? int(code) : exitRankLost, line);
}

std::optional<Joined> par::comm::enrol(Connection connection, const Join &join, double timeout,
                                       const std::function<void()> &look, const std::function<void(uint64_t)> &waits) {
  connection.send({Message::join, join.write()});
  int64_t deadline = now() + int64_t((timeout + grace) * 1e9);
  for (bool told = false; told || now() < deadline;) {
    std::optional<Message> answer = connection.await(100);
    if (answer && answer->kind == Message::wait && !told) {
      waits(waitedFor(*answer));
      told = true;
      keepAlive(connection.socket());
      continue;
    }
    if (answer && answer->kind == Message::bye)
      throw Refused(0, say(Sentence::endedWithout, join.rank));
    if (answer && answer->kind == Message::refuse)
      throw readRefusal(answer->body);
    if (answer && answer->kind == Message::welcome)
      if (std::optional<Welcome> welcome = readWelcome(answer->body, join))
        return Joined{std::move(connection), std::move(*welcome)};
    if (answer || !connection.open())
      return std::nullopt;
    look();
  }
  throw LaunchError(exitRankLost, say(Sentence::hostSilent, join.rank));
}

// A listener with another secret may be a stranger: its refusal is not believed and does not end the rank, and a name
// may become known. The reason is reported early, since a rank with a wrong PAR_TOKEN or host, or one whose place has
// another process, would otherwise be silent until the time is up. A job that was met is no stranger: once it has
// ended, nothing is said of who listens there.
void par::comm::seekServer(const LaunchEnvironment &place, const std::string &token, const Join &join, double timeout,
                           const std::function<void(const std::string &)> &warn, const std::function<void()> &look,
                           const std::function<bool(Connection, const std::string &, uint16_t)> &enters) {
  int64_t deadline = now() + int64_t(timeout * 1e9), since = 0;
  std::string reason, before;
  bool warned = false, met = false, taken = false;
  do {
    taken = false;
    if (met)
      reason.clear();
    for (uint16_t port : portsOf(place)) {
      Connection connection(join.attempts ? connectAgainTo(place.host, port, connectTime)
                                          : connectTo(place.host, port, connectTime));
      if (!connection.open())
        continue;
      if (join.attempts)
        keepAlive(connection.socket());
      std::string key;
      Knock answer = knock(connection, token, place.job, port, knockTime, key);
      if (answer != Knock::admitted) {
        if (!met)
          reason = reasonOf(answer);
        continue;
      }
      if (enters(std::move(connection), key, port))
        return;
      // One of an earlier attempt is told to come again while that ends.
      if (met = taken = join.attempts == 0; taken)
        reason = say(Sentence::seatTaken, join.rank);
    }
    if (!isKnown(place.host))
      reason = ": " + say(Sentence::unknownHost, place.host);
    since = !since || reason != before ? now() : since;
    before = reason;
    if (!reason.empty() && !warned && now() - since > reasonTime) {
      warn("warning: " + say(Sentence::waitsForSecret, join.rank, place.host, place.port, reason, uint64_t(timeout)));
      warned = true;
    }
    look();
    usleep(join.attempts ? againTime : pauseTime);
  } while (now() < deadline);
  throw LaunchError(exitRankLost,
                    say(taken ? Sentence::noPlace : Sentence::noHost, join.rank, place.host, place.port, reason));
}

Joined par::comm::joinServer(const LaunchEnvironment &place, const std::string &token, const Join &join, double timeout,
                             const std::function<void(const std::string &)> &warn, const std::function<void()> &look) {
  std::optional<Joined> result;
  bool said = false;
  // After an attempt that it has waited for, the rank has all its time again.
  for (bool waited = true; !result && std::exchange(waited, false);) {
    auto waits = [&](uint64_t ranks) {
      if (!std::exchange(said, true))
        warn(say(Sentence::waitsOutside, join.rank, ranks, join.world));
      waited = true;
    };
    seekServer(place, token, join, timeout, warn, look,
               [&](Connection connection, const std::string &key, uint16_t port) {
                 if (std::optional<Joined> joined = enrol(std::move(connection), join, timeout, look, waits)) {
                   joined->key = key;
                   joined->port = port;
                   result.emplace(std::move(*joined));
                 }
                 return result.has_value() || waited;
               });
  }
  return std::move(*result);
}

Connection par::comm::connectAgain(const LaunchEnvironment &place, const std::string &token, const Joined &joined) {
  Connection connection(connectTo(place.host, joined.port, connectTime));
  std::string key;
  Knock answer = connection.open() ? knock(connection, token, place.job, joined.port, knockTime, key) : Knock::noHost;
  if (answer != Knock::admitted)
    throw LaunchError(exitRankLost, say(Sentence::noHost, place.rank, place.host, joined.port, reasonOf(answer)));
  return connection;
}
