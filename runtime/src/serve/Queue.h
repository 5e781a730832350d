// Requests between the thread that reads them and the one that computes.
#pragma once

#include "Answer.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

namespace par::serve {

using Clock = std::chrono::steady_clock;

/// Lines of an answer that goes out while it is made. Used from any thread.
class Lines {
public:
  void add(std::string_view line);
  /// The lines that have come since the last time.
  std::string take();

private:
  std::mutex mutex;
  std::string lines;
};

/// A request on its way. `answer` belongs to the computing thread until isDone.
struct Pending {
  Request request;
  Clock::time_point arrived = Clock::now();
  Answer answer;
  Lines tokens; ///< before the answer
  std::atomic<bool> isDone = false;
  std::atomic<bool> isAbandoned = false; ///< its client has gone
};
using PendingRequest = std::shared_ptr<Pending>;

class Queue {
public:
  /// `gathers`: whether several requests make a batch of `rows`.
  Queue(uint64_t rows, bool gathers, Clock::duration maxWait) : rows(rows), gathers(gathers), maxWait(maxWait) {}

  void add(PendingRequest request);
  /// No more requests come: those that wait are given out at once.
  void close();
  /// The next requests that fit into a batch, in order. Waits for the first one, and from its arrival on at most
  /// maxWait for others that fill the batch. None: closed and empty.
  std::vector<PendingRequest> gather();
  /// The next request if there is one, of any number of rows.
  PendingRequest takeNow();

private:
  bool isFull() const;

  const uint64_t rows;
  const bool gathers;
  const Clock::duration maxWait;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<PendingRequest> waiting;
  bool isClosed = false;
};

} // namespace par::serve
