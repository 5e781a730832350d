// The thread that listens, reads and writes beside the one that computes.
#pragma once

#include "Connection.h"
#include "Listener.h"

#include <thread>

namespace par::serve {

class Server {
public:
  /// `address`: "-" for the standard streams, or a Listener's. `rows`: of a call. Throws Failure. All arguments outlive
  /// it.
  Server(const std::string &address, uint64_t rows, const MessageReader &requests, Queue &queue,
         Statistics &statistics);
  ~Server();

  /// "/run/par.sock".
  std::string name() const { return listener ? listener->name() : "stdin"; }
  /// Begins to take requests. A signal that ends jobs stops that; requests that are there are still answered.
  void start();
  /// Tells that answers are done.
  void wake() const;
  /// Takes no more requests; from any thread.
  void stop();
  /// Waits until all answers have gone out, or clients stopped to take them.
  void finish();

private:
  void loop();
  void poll();
  void admit();
  void work();
  void workFor(Connection &connection);
  void leave();

  const uint64_t rows;
  const MessageReader &requests;
  Queue &queue;
  Statistics &statistics;
  std::unique_ptr<Listener> listener;
  std::vector<std::unique_ptr<Connection>> connections;
  int waker, signals;
  bool draining = false;
  std::atomic<bool> isStopping = false, isEnding = false; ///< nothing more is read; nothing more is computed
  Clock::time_point endAt{};
  std::thread thread;
};

} // namespace par::serve
