// Ranks that wait for the next attempt.
#include "Outside.h"

#include <algorithm>

using namespace par::comm;

void Outside::add(uint32_t seat, Connection connection) {
  seats.setGone(seat, false);
  connection.send({Message::wait, Writer().number(sharedState.world()).take()});
  waiting.emplace(seat, std::move(connection));
}

std::vector<uint32_t> Outside::missing(const std::vector<uint32_t> &seatOf) const {
  std::vector<uint32_t> found;
  for (uint32_t seat = 0; seat < seats.all() && mends(sharedState) && !sharedState.aborted(); ++seat)
    if (std::find(seatOf.begin(), seatOf.end(), seat) == seatOf.end() && !has(seat))
      found.push_back(seat);
  return found;
}

void Outside::watch(std::vector<pollfd> &polled) const {
  for (const auto &[seat, connection] : waiting)
    polled.push_back({connection.socket(), short(connection.pending() ? POLLIN | POLLOUT : POLLIN), 0});
}

void Outside::step() {
  for (auto &[seat, connection] : waiting)
    connection.pump();
  std::erase_if(waiting, [&](const auto &entry) {
    if (!entry.second.open())
      seats.setGone(entry.first, true);
    return !entry.second.open();
  });
  if (sharedState.aborted() && !isLost(sharedState) && !std::exchange(told, true))
    for (auto &[seat, connection] : waiting)
      connection.send(
          {Message::refuse, Writer().number(uint64_t(sharedState.code())).text(sharedState.message()).take()});
  if (seats.membersFor(sharedState.world() + waiting.size()) > sharedState.world())
    sharedState.mayGrow.store(1);
}

void Outside::finish(bool over) {
  step();
  if (over && !std::exchange(told, true))
    for (auto &[seat, connection] : waiting)
      connection.send({Message::bye, ""});
}

bool Outside::quiet() const {
  return std::none_of(waiting.begin(), waiting.end(), [](const auto &entry) { return entry.second.pending(); });
}
