// All ranks as threads of one process.
#include "Local.h"
#include "Base.h"
#include "Interrupt.h"
#include "comm/engine/Exchange.h"
#include "comm/shared/Diagnosis.h"
#include "comm/shared/Memory.h"
#include "comm/shared/Threads.h"
#include "par/comm/shared/SignalStack.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace par::comm;

namespace {

/// The threads' place to exchange values and build their fabric.
class Hub {
public:
  Hub(SharedState &sharedState)
      : sharedState(sharedState), parts(sharedState.world()), fabric(std::make_shared<Fabric>()) {
    fabric->sharedState = &sharedState;
    fabric->arenas.resize(sharedState.world());
  }

  std::vector<std::string> share(uint32_t rank, Sharing sharing, std::string_view label, std::string_view value,
                                 uint32_t root);

  SharedState &sharedState;

private:
  struct Part {
    Sharing sharing;
    std::string label, value;
  };
  void check() const;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Part> parts;
  std::vector<std::string> values; ///< of the last complete exchange
  uint32_t arrived = 0;
  uint64_t exchanges = 0;

public:
  std::shared_ptr<Fabric> fabric;
};

class LocalControl final : public SharedStateControl {
public:
  LocalControl(Hub &hub, std::string bundle, uint32_t rank)
      : SharedStateControl(hub.sharedState, std::move(bundle), rank), hub(hub) {}

  uint32_t localRank() const override { return rank(); }
  std::unique_ptr<Endpoint> connect(std::span<const Members> table, size_t arenaBytes) override;

protected:
  std::vector<std::string> exchange(Sharing sharing, std::string_view label, std::string_view value,
                                    uint32_t root) override {
    return hub.share(rank(), sharing, label, value, root);
  }

private:
  Hub &hub;
};

} // namespace

void Hub::check() const {
  for (uint32_t rank = 1; rank < parts.size(); ++rank)
    if (parts[rank].sharing != parts[0].sharing || parts[rank].label != parts[0].label)
      throw Mismatch(
          differentExchange(0, parts[0].sharing, parts[0].label, rank, parts[rank].sharing, parts[rank].label));
}

std::vector<std::string> Hub::share(uint32_t rank, Sharing sharing, std::string_view label, std::string_view value,
                                    uint32_t root) {
  std::unique_lock lock(mutex);
  parts[rank] = {sharing, std::string(label), std::string(value)};
  uint64_t mine = exchanges;
  if (++arrived == parts.size()) {
    check();
    values.clear();
    for (Part &part : parts)
      values.push_back(std::move(part.value));
    arrived = 0;
    ++exchanges;
    changed.notify_all();
  }
  while (exchanges == mine) {
    if (sharedState.aborted())
      throw Aborted(sharedState.message());
    changed.wait_for(lock, std::chrono::milliseconds(100));
    sharedState[rank].idle.fetch_add(1, std::memory_order_relaxed);
  }
  if (sharing == Sharing::broadcast)
    return {values.at(root)};
  if (sharing == Sharing::gather && rank != root)
    return {};
  return values;
}

std::unique_ptr<Endpoint> LocalControl::connect(std::span<const Members> table, size_t arenaBytes) {
  Fabric &fabric = *hub.fabric;
  Mapping arena = mapPrivate(arenaBytes);
  fabric.arenas[rank()] = arena.bytes;
  barrier("arenas");
  if (rank() == 0) {
    fabric.table.assign(table.begin(), table.end());
    Mapping exchange = mapPrivate(exchangeBytes(table));
    fabric.areas = exchangeAreas(fabric.table, exchange.bytes.data());
    fabric.mappings.push_back(exchange.owner);
  }
  barrier("communicators");
  std::unique_ptr<Endpoint> endpoint = makeEndpoint(hub.fabric, rank());
  for (uint32_t other = 0; other < world(); ++other) {
    // One at a time: the list of mappings belongs to all threads.
    if (other == rank())
      fabric.mappings.push_back(arena.owner);
    barrier("mappings");
  }
  return endpoint;
}

static int failed(SharedStateControl &control, SharedState &sharedState, const std::string &why) {
  try {
    control.fail(exitRankLost, errorLine(control.bundleName(), why));
  } catch (const Aborted &) {
    return sharedState.code();
  }
}

int par::comm::runRank(SharedStateControl &control, SharedState &sharedState,
                       const std::function<int(Control &)> &rankMain) {
  useSignalStack();
  sharedState[control.rank()].pid.store(getpid());
  try {
    int code = rankMain(control);
    // A rank that was stopped may say so by its code; all of them are, so that this is no reason to hurry.
    if (code != 0 && !control.stopped())
      sharedState.abort(code, errorLine(control.bundleName(), "rank " + std::to_string(control.rank()) +
                                                                  " ended with exit code " + std::to_string(code)));
    else
      control.barrier(endLabel);
    control.finish();
    return code;
  } catch (const Aborted &) {
    return sharedState.code();
  } catch (const Lost &lost) {
    if (mends(sharedState)) {
      lose(sharedState, control.bundleName(), lost.what());
      return sharedState.code();
    }
    return failed(control, sharedState, lost.what());
  } catch (const std::exception &error) {
    return failed(control, sharedState, error.what());
  }
}

int par::comm::runThreads(const Launch &launch, uint32_t world, const std::function<int(Control &)> &rankMain) {
  Mapping memory = mapPrivate(SharedState::bytesFor(world));
  SharedState &sharedState = *SharedState::make(memory.bytes.data(), world);
  sharedState.deadlockAfter.store(uint32_t(launch.timeout * 20));
  Interrupt interrupt(sharedState, -1);
  SignalWatch watch(sharedState, launch.bundle);
  Hub hub(sharedState);
  std::vector<int> codes(world);
  auto body = [&](uint32_t rank) {
    LocalControl control(hub, launch.bundle, rank);
    codes[rank] = runRank(control, sharedState, rankMain);
  };
  std::vector<std::thread> threads;
  try {
    for (uint32_t rank = 1; rank < world; ++rank)
      threads.push_back(startThread([&body, rank] { body(rank); }));
  } catch (const std::exception &error) { // those that have begun would wait for the others
    std::string line = errorLine(launch.bundle, error.what());
    if (sharedState.claim())
      printLine(line);
    sharedState.abort(exitRankLost, line);
  }
  if (!sharedState.aborted())
    body(0);
  for (std::thread &thread : threads)
    thread.join();
  if (sharedState.aborted())
    return sharedState.code();
  int code = *std::max_element(codes.begin(), codes.end());
  return code ? code : interruptCode(sharedState, launch.bundle);
}
