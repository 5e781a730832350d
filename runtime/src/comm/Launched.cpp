//===- Launched.cpp - a rank that a launcher started -----------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "comm/Diagnosis.h"
#include "comm/Interrupt.h"
#include "comm/Local.h"
#include "comm/Processes.h"
#include "comm/Pulse.h"
#include "comm/Remote.h"
#include "par/comm/Sentences.h"
#include "par/format/Sha256.h"

#include <csignal>
#include <unistd.h>

using namespace par;
using namespace par::comm;

namespace {

/// Drives the host until the last answers have been sent.
class HostThread {
public:
  explicit HostThread(Host &host) : host(host), thread([this] { loop(); }) {}
  ~HostThread() {
    ending.store(true);
    thread.join();
  }

private:
  void loop() {
    while (!ending.load())
      host.step(50);
    int64_t deadline = now() + 2'000'000'000;
    while (!host.quiet() && now() < deadline)
      host.step(50);
  }

  Host &host;
  std::atomic<bool> ending{false};
  std::thread thread;
};

/// The job's board and files: made by rank 0, passed to the others on a local socket.
struct Shared {
  SharedFiles files;
  Mapping memory;
  Board *board = nullptr;
};

/// Ranks of one job have it, others hardly.
std::string tokenOf(const Place &place) {
  const char *secret = std::getenv("PAR_TOKEN");
  return format::sha256("par " + place.job + "\n" + (secret ? secret : ""));
}

Shared fetch(const std::string &localName, uint32_t world) {
  int socket = connectLocal(localName);
  if (socket < 0)
    throw LaunchError(exitRankLost, say(Sentence::notPassed));
  Shared shared;
  shared.files = SharedFiles::from(receiveDescriptors(socket, world + 2));
  close(socket);
  shared.memory = shared.files.board.map(Board::bytesFor(world));
  shared.board = reinterpret_cast<Board *>(shared.memory.bytes.data());
  return shared;
}

int runJoined(const Launch &launch, const Place &place, Shared &shared, Connection connection,
              const std::function<int(Control &)> &rankMain) {
  Interrupt interrupt(*shared.board);
  Pulse pulse(*shared.board, place.rank, launch.timeout, launch.bundle);
  RemoteControl control(*shared.board, launch.bundle, place.rank, place.localRank, std::move(connection),
                        shared.files);
  int code = runRank(control, *shared.board, rankMain);
  if (shared.board->aborted())
    return shared.board->code();
  return code ? code : interruptCode(*shared.board);
}

} // namespace

int par::comm::runLaunched(const Launch &launch, const Place &place,
                           const std::function<int(Control &)> &rankMain) {
  Join join{tokenOf(place), hostName(),  place.rankSource,  place.worldSource,
            place.rank,     place.world, uint64_t(getpid())};
  try {
    if (place.rank != 0) {
      Joined joined = joinHost(place, join, launch.joinTimeout);
      Shared shared = fetch(joined.localName, place.world);
      return runJoined(launch, place, shared, std::move(joined.connection), rankMain);
    }
    Listener listener = Listener::rendezvous(place);
    Place found = place;
    found.port = listener.port();
    found.agentStore = false;
    Shared shared{SharedFiles::create(place.world), {}, nullptr};
    shared.memory = shared.files.board.map(Board::bytesFor(place.world));
    shared.board = Board::make(shared.memory.bytes.data(), place.world);
    shared.board->deadlockAfter.store(uint32_t(launch.timeout * 20));
    Host host(std::move(listener), launch.bundle, join.token, launch.joinTimeout, *shared.board,
              &shared.files);
    HostThread thread(host);
    Joined joined = joinHost(found, join, launch.joinTimeout);
    return runJoined(launch, place, shared, std::move(joined.connection), rankMain);
  } catch (const Refused &refused) {
    printLine(refused.what());
    return refused.code;
  }
}
