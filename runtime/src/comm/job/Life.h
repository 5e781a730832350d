// Shared memory that outlives a rank's process under --restart. A supervisor (Supervisor.h) makes it before it forks
// the rank, and again forks a rank that is lost.
#pragma once

#include "comm/shared/Memory.h"
#include "comm/shared/SharedState.h"

#include <span>

namespace par::comm {

/// Facts that a supervisor and the processes of one of its ranks tell each other.
struct alignas(64) RankLife {
  std::atomic<int64_t> beat{0};            ///< the process's last sign of life
  std::atomic<uint64_t> attempts{0};       ///< the number of the last attempt that all ranks have joined
  std::atomic<uint32_t> rank{0}, ranks{0}; ///< in that attempt, and how many it has
  std::atomic<uint64_t> step{0};           ///< the last step started
  std::atomic<uint32_t> finished{0};       ///< this process has reached the end of the job, as all ranks have
  std::atomic<uint32_t> left{0};           ///< this process ends as it should, and other ranks know why
  SharedText<64> coordinates, instruction;
};

/// A number of this process among all of a job, not 0.
uint64_t holderOfProcess();

/// The same for all ranks of a supervisor.
class Lives {
public:
  /// Shared with all processes that are forked from here on.
  Lives(uint32_t ranks, uint32_t world);

  uint32_t size() const { return ranks; }
  RankLife &operator[](uint32_t place) { return reinterpret_cast<RankLife *>(&head() + 1)[place]; }
  /// In rank 0's supervisor: whether the job goes on without this seat and does not wait for it.
  std::atomic<uint32_t> &gone(uint32_t seat) {
    return reinterpret_cast<std::atomic<uint32_t> *>(holders().data() + world)[seat];
  }

  /// The signal that asked the job to stop, as bits of Signal; 0: none has come.
  std::atomic<uint64_t> &asked() { return head().asked; }
  /// Notes when a rank was lost; the first time stays until takeLoss().
  void noteLoss(int64_t when);
  /// When the loss was that this attempt mends; 0 if it has been asked for before.
  int64_t takeLoss() { return head().lostAt.exchange(0); }
  /// The last attempt has ended in good order, for the next one to have more ranks.
  std::atomic<uint32_t> &grows() { return head().grows; }
  /// Who has made this memory.
  uint64_t holder() const { return own; }
  /// By rank of the job, who holds its state, as rank 0's rendezvous has seen.
  std::span<std::atomic<uint64_t>> holders() {
    return {reinterpret_cast<std::atomic<uint64_t> *>(&(*this)[ranks]), world};
  }

private:
  struct alignas(64) Head {
    std::atomic<uint64_t> asked{0};
    std::atomic<int64_t> lostAt{0};
    std::atomic<uint32_t> grows{0};
  };
  Head &head() { return *reinterpret_cast<Head *>(memory.bytes.data()); }

  uint32_t ranks, world;
  uint64_t own;
  Mapping memory;
};

/// A rank's view of its supervisor.
struct Supervised {
  Lives &lives;
  uint32_t place;             ///< of the rank among the supervisor's
  std::vector<int> kept;      ///< by seat: memory that outlives its process, -1 where this process has none of it
  std::vector<int> keptOther; ///< the same again; empty without --shrink
  std::vector<int> arenas;    ///< by seat, where all have this supervisor: memory for its arena in every attempt
  std::array<int, 2> mirrors{-1, -1}; ///< memory for state of another rank, under --mirror
  int listener = -1;                  ///< of rank 0: where ranks come, held open by the supervisor
  bool together = false;              ///< all ranks have this supervisor, which says what they would each say

  RankLife &life() const { return lives[place]; }
};

} // namespace par::comm
