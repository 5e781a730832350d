// The rendezvous's side of spares (par-run --spares): processes beyond the ranks of a job, which wait to take the place
// of a rank that does not come back.
#pragma once

#include "Serialization.h"
#include "comm/shared/SharedState.h"

#include <atomic>
#include <list>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <vector>

namespace par::comm {

struct Join;

/// Spares that wait at this attempt's rendezvous.
class Spares {
public:
  /// `holders`: by rank, who holds its state, in memory that outlives this process; empty where lost ranks are not
  /// started again.
  Spares(std::string bundle, std::span<std::atomic<uint64_t>> holders) : bundle(std::move(bundle)), holders(holders) {}

  /// A spare has come.
  void adopt(const Join &join, Connection connection);
  /// Appends the descriptors to poll.
  void watch(std::vector<pollfd> &polled) const;
  /// Lets words go out, and forgets spares that have hung up.
  void step();
  /// Tells all that the job is over.
  void dismiss();
  /// True when everything queued has been sent.
  bool quiet() const;

  /// A rank has come, of its own.
  void rankCame() { last = now(); }
  /// All ranks have come, this one among them.
  void noteHolder(const Join &join);
  /// Why a rank has no place any more: a spare has it, and the newer state. "" where it has one.
  std::string comesTooLate(const Join &join) const;
  /// Gives the places of ranks to spares if none has come for a while.
  void fill(const std::vector<uint32_t> &missing);

private:
  struct Spare {
    uint64_t number, holder;
    std::string name; ///< "spare 4 (pid 71 on c)"
    Connection connection;
    bool told = false; ///< that it takes a place, or that the job is over
  };
  Spare *next();

  std::string bundle;
  std::span<std::atomic<uint64_t>> holders;
  std::list<Spare> waiting;
  int64_t last = now(); ///< when a rank has come, or a spare was given a place
};

} // namespace par::comm
