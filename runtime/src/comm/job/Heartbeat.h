// A rank's second thread.
#pragma once

#include "Life.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace par::comm {

/// Judges others by their last sign of life, but only for time in which the judge itself ran: after Ctrl-Z and fg, or a
/// suspended machine, all waits start again.
class Patience {
public:
  explicit Patience(double timeout) : timeout(int64_t(timeout * 1e9)), since(now()), last(since) {}
  /// To be called often: notes whether this process itself was stopped.
  void look();
  /// Seconds since `beat` if they are too many.
  std::optional<double> exhausted(int64_t beat) const;
  /// Seconds since `beat` if half of the time has gone.
  std::optional<double> worn(int64_t beat) const;
  double seconds() const { return double(timeout) / 1e9; }
  /// No more seconds than these from now on.
  void shorten(double seconds) { timeout = std::min(timeout, int64_t(seconds * 1e9)); }

private:
  int64_t timeout, since, last;
};

/// Beats on the board, ends the process when the job has ended and the main thread does not, and watches:
/// par-run's parent where there is one, else all other ranks. If lost ranks are started again it hears at once of a
/// process that ends.
class Heartbeat {
public:
  Heartbeat(SharedState &sharedState, uint32_t rank, double timeout, std::string bundle,
            const Supervised *supervised = nullptr);
  Heartbeat(const Heartbeat &) = delete;
  ~Heartbeat();

private:
  void loop();
  /// Waits for the next beat; false at the end.
  bool rest();
  /// The job has ended: so must this process, or its attempt.
  void hurry();
  void watchParent();
  void watchRanks();
  void lost(uint32_t rank, std::string_view how, double seconds);

  SharedState &sharedState;
  uint32_t rank;
  std::string bundle;
  Patience patience;
  std::vector<int> processes; ///< pidfd by rank, -1 until the rank has come
  const Supervised *supervised;
  int64_t timeout, abortSeen = 0;
  int ending; ///< an eventfd: readable when this is to end
  std::thread thread;
};

} // namespace par::comm
