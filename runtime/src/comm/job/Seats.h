// The seats of a job under --shrink. Each process that is started has a seat: its rank among all that were started. An
// attempt gives ranks to seats: to all, or, where some do not come again, to as many as the family of the bundle has a
// member for.
//
//   4 seats, members of 4, 3 and 2 ranks        seat 0  1  2  3
//   the first attempt                           rank 0  1  2  3
//   seat 1 does not come again within --shrink  rank 0  -  1  2
//   seat 1 has come, at the end of a step       rank 0  1  2  3
//
// Rank 0 has seat 0, whose supervisor holds the port at which ranks meet.
#pragma once

#include "Life.h"
#include "par/comm/job/Launch.h"

namespace par::comm {

/// The last attempt that the rank of a seat has joined, its rank in that, and how many ranks it had.
struct Seated {
  uint64_t attempt = 0;
  uint32_t rank = 0, ranks = 0;
};

class Seats {
public:
  /// `lives` is that of seat 0's supervisor, null where lost ranks are not started again.
  Seats(const Launch &launch, uint32_t all, Lives *lives)
      : seats(all), seconds(launch.shrink), members(launch.members), replicas(launch.replicas), lives(lives),
        since(now()) {}
  /// For a job whose ranks all must come.
  explicit Seats(uint32_t all) : seats(all) {}

  uint32_t all() const { return seats; }
  /// Whether attempts may have fewer ranks than seats.
  bool shrink() const { return seconds && lives; }
  /// The seats of the next attempt's ranks; nullopt while some are waited for, or where no member has as few ranks as
  /// have come. `come`: by seat, if its rank has. `begun`: all have met before.
  std::optional<std::vector<uint32_t>> choose(const std::vector<std::optional<Seated>> &come, bool begun) const;
  /// The largest number of ranks for which there is a member, up to `most`; 0: none.
  uint32_t membersFor(size_t most) const;

  /// The rank of a seat says that it does not come again: whether the job may go on without it.
  bool leave(uint32_t seat);
  /// A seat is not waited for any more, or is again.
  void setGone(uint32_t seat, bool isGone);

private:
  std::vector<uint32_t> pick(std::vector<uint32_t> here, const std::vector<std::optional<Seated>> &come,
                             uint32_t ranks) const;

  uint32_t seats;
  std::optional<double> seconds;
  std::vector<uint32_t> members;
  std::map<uint32_t, std::vector<uint32_t>> replicas;
  Lives *lives = nullptr;
  int64_t since = 0; ///< when the attempt began to look for ranks
};

} // namespace par::comm
