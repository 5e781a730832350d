// A spare that has been told something is kept until it hangs up: what it was told may still be on its way.
#include "Spares.h"
#include "Processes.h"
#include "RendezvousClient.h"
#include "comm/shared/Diagnosis.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <unistd.h>

using namespace par::comm;

/// Microseconds until a spare that was hung up on comes again.
static constexpr useconds_t knockAgainTime = 20'000;

/// How long a rank that is to come again is waited for beyond the last that came, before a spare takes its place.
static constexpr int64_t spareTime = 2'000'000'000;

void Spares::adopt(const Join &join, Connection connection) {
  keepAlive(connection.socket());
  std::string name = "spare " + std::to_string(join.rank) + " (" + processOf(join) + ")";
  waiting.push_back({join.rank, join.holder, name, std::move(connection)});
}

void Spares::watch(std::vector<pollfd> &polled) const {
  for (const Spare &spare : waiting)
    polled.push_back({spare.connection.socket(), short(spare.connection.pending() ? POLLIN | POLLOUT : POLLIN), 0});
}

void Spares::step() {
  for (Spare &spare : waiting) {
    spare.connection.pump();
    if (spare.connection.next()) // a spare says nothing more
      spare.connection.close();
  }
  std::erase_if(waiting, [](const Spare &spare) { return !spare.connection.open(); });
}

void Spares::noteHolder(const Join &join) {
  if (join.rank < holders.size())
    holders[join.rank].store(join.holder);
}

std::string Spares::comesTooLate(const Join &join) const {
  if (!join.attempts || join.rank >= holders.size())
    return "";
  uint64_t holder = holders[join.rank].load();
  return holder && holder != join.holder ? say(Sentence::placeTaken, join.rank, processOf(join)) : "";
}

/// The one with the smallest number: those of one host follow each other.
Spares::Spare *Spares::next() {
  Spare *first = nullptr;
  for (Spare &spare : waiting)
    if (!spare.told && (!first || spare.number < first->number))
      first = &spare;
  return first;
}

void Spares::fill(const std::vector<uint32_t> &missing) {
  if (now() - last < spareTime)
    return;
  for (uint32_t rank : missing) {
    Spare *spare = next();
    if (!spare)
      return;
    spare->connection.send({Message::place, Writer().number(rank).take()});
    spare->told = true;
    last = now();
    if (rank < holders.size())
      holders[rank].store(spare->holder);
    printLine(noteLine(bundle, say(Sentence::spareTakes, spare->name, rank)));
  }
}

void Spares::dismiss() {
  for (Spare &spare : waiting)
    if (!std::exchange(spare.told, true))
      spare.connection.send({Message::bye, ""});
}

bool Spares::quiet() const {
  return std::none_of(waiting.begin(), waiting.end(), [](const Spare &spare) { return spare.connection.pending(); });
}

std::optional<Message> par::comm::awaitOrder(Connection connection, const Join &join) {
  connection.send({Message::join, join.write()});
  keepAlive(connection.socket());
  while (connection.open())
    if (std::optional<Message> answer = connection.await(1000)) {
      if (answer->kind == Message::refuse)
        throw readRefusal(answer->body);
      if (answer->kind == Message::place || answer->kind == Message::bye)
        return answer;
      return std::nullopt;
    }
  return std::nullopt;
}

std::optional<uint32_t> par::comm::waitAsSpare(const Launch &launch, const LaunchEnvironment &place) {
  Join join{hostName(), place.rankSource, place.worldSource, place.rank, place.world, uint64_t(getpid())};
  join.holder = holderOfProcess();
  join.spare = true;
  auto warn = [&](const std::string &what) { printLine(noteLine(launch.bundle, what)); };
  for (;;) {
    std::optional<Message> order;
    // The time until rank 0 must be found begins again with each that was.
    seekServer(
        place, tokenOfEnvironment(), join, launch.joinTimeout, warn, [] {},
        [&](Connection connection, const std::string &, uint16_t) {
          order = awaitOrder(std::move(connection), join);
          return true;
        });
    if (order && order->kind == Message::bye)
      return std::nullopt;
    if (order)
      if (uint64_t rank = Reader(order->body).number(); rank < place.world)
        return uint32_t(rank);
    usleep(knockAgainTime);
  }
}
