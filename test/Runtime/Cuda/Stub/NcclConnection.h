// The stub NCCL between processes: with PAR_STUB_NCCL_TCP set, an id carries the address of its maker, as NCCL's does.
// The maker's process has a thread that matches the sides of each communication; ranks send theirs there by TCP, and
// get their results. That thread ends with its process.
#pragma once

#include "Machine.h"
#include "NcclMatch.h"

#include <memory>
#include <optional>
#include <string>

namespace par::stub {

/// Whether ranks are processes.
bool byTcp();
/// Listens on the interface of NCCL_SOCKET_IFNAME, or the first that leads out: "ADDRESS PORT SECRET".
std::string listenAsRoot();

/// This process's connection to the maker of one id, whose ranks are a world: a process that has left one may join
/// another. All functions need the machine's lock.
class RootConnection {
public:
  /// Begins to join; a thread, which holds the connection, too, connects, and reads what comes.
  static std::shared_ptr<RootConnection> join(const std::string &id, int rank, int ranks);
  /// Calls a split, of a group's members the `number`-th.
  void split(uint64_t group, uint64_t number, int color, int key);
  /// Sends one side of a communication that needs `wanted` of them; the number by which to ask for its result.
  uint64_t send(uint64_t group, const std::string &key, size_t wanted, int side, const Part &part);
  /// No further operations come from here; waits until all ranks have said so.
  void finish(std::unique_lock<std::mutex> &held);
  /// Hangs up, of which the others hear.
  void leave();

  struct Made {
    uint64_t group = 0;
    int size = 0;
    std::string name;
  };
  /// The group that a join (0, 0) or a split has made, when all its members have called.
  std::optional<Made> made(uint64_t group, uint64_t number) const;
  /// The output of a side, when all sides have come.
  const std::string *result(uint64_t number) const;
  void forget(uint64_t number) { results.erase(number); }
  /// 0, or why there is no connection any more.
  int error() const { return failed; }

private:
  void run(int socket);
  void sendWaiting(int socket);
  void take(const std::string &message);
  void write(const std::string &message);

  int failed = 0;
  bool finished = false, allFinished = false, left = false;
  int connected = -1; ///< the socket
  uint64_t numbers = 0;
  std::string waiting; ///< messages that are to be sent
  std::condition_variable hasWaiting;
  std::map<std::pair<uint64_t, uint64_t>, Made> groups;
  std::map<uint64_t, std::string> results;
};

} // namespace par::stub
