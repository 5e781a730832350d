// State that all ranks of a host and their parent share: each rank's position, who waits for whom, whether the job
// ends. It is in memory shared by all processes (or threads) of the job, so that a killed rank's last position can
// still be read, and an abort is seen at once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace par::comm {

/// CLOCK_MONOTONIC in nanoseconds: one clock for all processes of a host.
int64_t now();

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free,
              "atomics in shared memory must not need a lock");

/// Text with one writer. A reader may see the begin of a new text and the end of an old one, never bytes
/// outside.
template <size_t capacity>
class SharedText {
public:
  void set(std::string_view text) {
    std::array<uint64_t, capacity / 8> copy{};
    std::memcpy(copy.data(), text.data(), std::min(text.size(), capacity - 1));
    for (size_t i = 0; i < copy.size(); ++i)
      words[i].store(copy[i], std::memory_order_relaxed);
  }
  std::string get() const {
    std::array<uint64_t, capacity / 8> copy;
    for (size_t i = 0; i < copy.size(); ++i)
      copy[i] = words[i].load(std::memory_order_relaxed);
    const char *text = reinterpret_cast<const char *>(copy.data());
    return std::string(text, strnlen(text, capacity));
  }

private:
  std::array<std::atomic<uint64_t>, capacity / 8> words{};
};

/// A rank's wait: the awaited ranks among the first 256 as bits, the operation, and the instruction.
struct Waiting {
  std::vector<uint32_t> ranks;
  std::string kind, instruction;
};

/// One rank's part. `bell` is the futex on which the rank sleeps; a process that changes the awaited state wakes it.
struct alignas(64) RankState {
  std::atomic<uint32_t> bell{0}, asleep{0};
  std::atomic<int32_t> pid{0};
  std::atomic<uint32_t> finished{0};     ///< left as it should; its process may end
  std::atomic<int64_t> beat{0};          ///< monotonic nanoseconds of its last sign of life; 0: none yet
  std::atomic<uint32_t> idle{0};         ///< tenths of a second that it has waited since anything moved
  std::atomic<uint64_t> startedSteps{0}; ///< last started step + 1; 0: none
  std::atomic<uint32_t> remote{0};       ///< on another host, whose board is the original of this
  std::atomic<int32_t> supervisor{0};    ///< pid of the process that starts this rank again and no other; 0: none
  SharedText<64> host;                   ///< its name; "" where all ranks have one host
  SharedText<64> coordinates;            ///< "pp 1, dp 0, tp 1"
  SharedText<32> entry;
  SharedText<64> instruction;
  SharedText<32> waitingKind;
  SharedText<64> waitingInstruction;
  std::array<std::atomic<uint64_t>, 4> waitingRanks{};

  /// Wakes the rank if it sleeps. To be called after the change that it may wait for, made with seq_cst.
  void ring();
  /// Sleeps until rung or the time (below a second) has passed, unless the bell is not `seen` any more.
  void sleep(uint32_t seen, int64_t nanoseconds);
  void wait(const Waiting &waiting);
  void run(); ///< waits no more
  Waiting waiting() const;
};

/// A signal that asked the job to stop, and the process that got it.
struct Signal {
  int number = 0; ///< 0: none came
  int rank = -1;  ///< -1: par-run
  int32_t pid = 0;

  /// Pid, rank + 1 and number, in 32, 24 and 8 bits; 0: none.
  uint64_t bits() const;
  static Signal of(uint64_t bits);
};

/// Shared by the job. Made in zeroed memory of bytesFor(world) bytes.
class SharedState {
public:
  static size_t bytesFor(uint32_t world) { return sizeof(SharedState) + world * sizeof(RankState); }
  static SharedState *make(void *memory, uint32_t world);

  /// An attempt may have fewer than there is room for: set before any of them sees the state.
  std::atomic<uint32_t> ranks{0};
  uint32_t world() const { return ranks.load(std::memory_order_relaxed); }
  RankState &operator[](uint32_t rank) { return reinterpret_cast<RankState *>(this + 1)[rank]; }

  /// Ends the job for all ranks that wait or poll, with this exit code. The first caller's code and message stay.
  /// `isLoss`: because a rank or host is lost, after which a job that mends() goes on in its next attempt.
  void abort(int code, std::string_view message, bool isLoss = false);
  bool aborted() const { return state.load(std::memory_order_relaxed) != 0; }
  /// The first abort's.
  int code() const { return exitCode.load(); }
  std::string message() const;
  /// True once: that caller may print why the job ends.
  bool claim();
  bool isClaimed() const { return claimed.load() != 0; }
  /// Whether it was this process that claimed, and so has printed why the job ends.
  bool isClaimedHere() const;

  /// False: the job ends before `step`. Every rank gets the same answer for the same step.
  bool startStep(uint32_t rank, uint64_t step);
  /// Lets started steps finish and refuses later ones. On several hosts the boards agree on the last step first
  /// (HostRelay.h): until then ranks that would start one wait.
  void stop();
  /// Whether the boards have yet to agree on the last step.
  bool isStopping() const { return stopping.load() == 1; }
  /// The last step of a job that isStopping(), as lastStep().
  void settleStop(uint64_t last);
  bool stops() const { return stopping.load() != 0; }
  /// The largest step that any rank has started + 1; 0: none. In an attempt that goes on from a step and has started
  /// none: that step + 1.
  uint64_t lastStep();
  /// The job's attempt that these ranks make (Attempts.h), from 1; 0 if lost ranks are not started again.
  std::atomic<uint64_t> attempt{0};
  std::atomic<uint32_t> lost{0};     ///< the abort is because of a loss
  std::atomic<uint32_t> shrinks{0};  ///< the job goes on without ranks that do not come again
  std::atomic<uint32_t> lossTold{0}; ///< it was said which rank or host is waited for
  /// All ranks have reached the end of the job: none is missed from here on.
  std::atomic<uint32_t> over{0};
  /// The step after which a later attempt goes on, + 1; 0 in the first attempt.
  std::atomic<uint64_t> goesOnFrom{0};
  /// At rank 0's host, in an attempt of fewer ranks: others have come again.
  std::atomic<uint32_t> mayGrow{0};

  /// Tenths of a second after which ranks that all wait, and of whom none moves, are in a deadlock.
  std::atomic<uint32_t> deadlockAfter{100};
  /// Notes a signal that asks the job to stop; the first one stays.
  void note(const Signal &signal);
  Signal signal() const;
  /// The newest complete save, "" if none.
  SharedText<256> saved;
  /// The newest file of results that is whole, "" if none.
  SharedText<256> wrote;
  /// par-run's parent process where it started the ranks; 0 where a launcher did.
  std::atomic<int32_t> parent{0};
  std::atomic<int64_t> parentBeat{0};
  std::atomic<uint32_t> hosts{1}; ///< that the job runs on

private:
  std::atomic<uint32_t> state{0}, written{0};
  std::atomic<uint32_t> claimed{0}; ///< pid of the claimer
  std::atomic<int32_t> exitCode{0};
  std::atomic<uint32_t> stopping{0}; ///< 0 no, 1 being agreed on, 2 after `allowed` steps
  std::atomic<uint64_t> allowed{0};
  std::atomic<uint64_t> signalled{0}; ///< Signal::bits()
  alignas(64) SharedText<1024> text;
};

/// Whether lost ranks are started again.
inline bool mends(const SharedState &sharedState) { return sharedState.attempt.load() != 0; }
/// Whether this attempt of the job has ended because a rank or host was lost.
inline bool isLost(const SharedState &sharedState) { return sharedState.aborted() && sharedState.lost.load() != 0; }

} // namespace par::comm
