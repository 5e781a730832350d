// Finds the host of a job and joins it. A listener at the rendezvous is believed only after it has shown the job's
// secret. Others are passed over until the time is up, so that only the job's own host can end a rank.
#include "AuthGate.h"
#include "LocalChannel.h"
#include "RendezvousClient.h"
#include "par/format/Printable.h"
#include "par/messages/CommMessages.h"

#include <unistd.h>

using namespace par;
using namespace par::comm;

namespace {

constexpr int connectTime = 1000, knockTime = 2000;
/// Beyond the host's own time for ranks to come.
constexpr double grace = 5;
/// Time after which a rank that met only hosts with another secret says so.
constexpr int64_t otherSecretTime = 2'000'000'000;

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

Refused par::comm::readRefusal(const std::string &body) {
  Reader reader(body);
  uint64_t code = reader.number();
  std::string line = format::printable(reader.text());
  return Refused(code >= 1 && code <= 255 ? int(code) : exitRankLost, line);
}

std::optional<Joined> par::comm::enrol(Connection connection, const Join &join, double timeout,
                                       const std::function<void()> &look) {
  connection.send({Message::join, join.write()});
  int64_t deadline = now() + int64_t((timeout + grace) * 1e9);
  while (now() < deadline) {
    std::optional<Message> answer = connection.await(100);
    if (answer && answer->kind == Message::refuse)
      throw readRefusal(answer->body);
    if (answer && answer->kind == Message::welcome && (answer->body.empty() || isLocalChannelName(answer->body)))
      return Joined{std::move(connection), answer->body, ""};
    if (answer || !connection.open())
      return std::nullopt;
    look();
  }
  throw LaunchError(exitRankLost, say(Sentence::hostSilent, join.rank));
}

// A listener with another secret may be a stranger: its refusal is not believed and does not end the rank. Its presence
// is reported early, since a rank with a wrong PAR_TOKEN would otherwise be silent until the time is up.
Joined par::comm::joinServer(const LaunchEnvironment &place, const std::string &token, const Join &join, double timeout,
                             const std::function<void(const std::string &)> &warn) {
  int64_t deadline = now() + int64_t(timeout * 1e9), otherSince = 0;
  std::string reason;
  bool warned = false;
  do {
    for (uint16_t port : portsOf(place)) {
      Connection connection(connectTo(place.host, port, connectTime));
      if (!connection.open())
        continue;
      std::string key;
      Knock answer = knock(connection, token, place.job, port, knockTime, key);
      if (answer != Knock::admitted) {
        reason = reasonOf(answer);
        otherSince = answer != Knock::otherSecret ? 0 : otherSince ? otherSince : now();
        if (otherSince && !warned && now() - otherSince > otherSecretTime) {
          warn(say(Sentence::waitsForSecret, join.rank, place.host, place.port, reason, uint64_t(timeout)));
          warned = true;
        }
        continue;
      }
      if (std::optional<Joined> joined = enrol(std::move(connection), join, timeout, [] {})) {
        joined->key = key;
        return std::move(*joined);
      }
    }
    usleep(50'000);
  } while (now() < deadline);
  throw LaunchError(exitRankLost, say(Sentence::noHost, join.rank, place.host, place.port, reason));
}
