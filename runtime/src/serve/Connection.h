// One client: bytes in, requests that wait for their answers, bytes out in the order of the requests.
#pragma once

#include "Queue.h"
#include "Statistics.h"

namespace par::serve {

/// Used by the thread that reads and writes. It never waits.
class Connection {
public:
  /// Closes the descriptors, unless they are this process's standard streams.
  Connection(int in, int out, const MessageReader &requests);
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;
  ~Connection();

  int in() const { return source; }
  int out() const { return sink; }
  /// Whether it would take more bytes: requests of two batches may wait.
  bool wantsInput(uint64_t rows) const;
  bool wantsOutput() const { return sent < output.size(); }
  /// Whether nothing more is to be done for it.
  bool isFinished() const;
  /// Whether the client has sent a part of a message, or taken a part of an answer, and stopped so long ago.
  bool isStalled(Clock::time_point now) const;

  /// Reads bytes that are there.
  void receive();
  /// Requests that have come whole, as many as may wait at once. One with a mistake has its answer.
  std::vector<PendingRequest> requests(uint64_t rows, Statistics &statistics);
  /// Puts answers that are done, and tokens of the first that is not, after those that have gone.
  void answer(Statistics &statistics);
  /// Writes as much as the client takes.
  void send();
  /// Whether the client is a socket's, and so can be seen to go.
  bool isSocket() const { return source == sink; }
  /// The client has closed its socket: nothing of it is wanted any more.
  void leave() { isGone = true; }
  /// No more input is read.
  void stopReading() { hasEnded = true; }
  /// Ends a client that does not go on, with a last line.
  void giveUp(const std::string &error);

private:
  uint64_t rowsWaiting() const;
  PendingRequest read(const Frame &frame, Statistics &statistics);

  int source, sink;
  const MessageReader &reader;
  FrameReader messages;
  std::deque<PendingRequest> waiting;
  std::string output;
  size_t sent = 0;
  bool hasEnded = false; ///< no more bytes come
  bool isGone = false;   ///< nor is anything read
  Clock::time_point moved = Clock::now();
};

} // namespace par::serve
