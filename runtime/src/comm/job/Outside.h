// Ranks that have come to a job whose attempt goes on without them (Seats.h): they wait for the next one.
#pragma once

#include "Seats.h"
#include "Serialization.h"
#include "comm/shared/SharedState.h"

#include <poll.h>

namespace par::comm {

class Outside {
public:
  Outside(SharedState &sharedState, Seats &seats) : sharedState(sharedState), seats(seats) {}

  bool has(uint32_t seat) const { return waiting.count(seat) != 0; }
  size_t size() const { return waiting.size(); }
  void add(uint32_t seat, Connection connection);
  /// Seats that the attempt goes on without and that have not come, of which spares may take the places. `seatOf`:
  /// those of its ranks.
  std::vector<uint32_t> missing(const std::vector<uint32_t> &seatOf) const;
  void watch(std::vector<pollfd> &polled) const;
  /// Does what is to be done, without waiting: an attempt that could have more ranks is to end after its step, and
  /// ranks are told why the job ends.
  void step();
  /// The attempt ends; `over`: with the job, which has done its work.
  void finish(bool over);
  /// Whether everything has been sent.
  bool quiet() const;

private:
  SharedState &sharedState;
  Seats &seats;
  std::map<uint32_t, Connection> waiting; ///< by seat
  bool told = false;
};

} // namespace par::comm
