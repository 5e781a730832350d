// Memory that all ranks of a host and their parent see.
#include "SharedState.h"

#include <linux/futex.h>
#include <new>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

using namespace par::comm;

int64_t par::comm::now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void RankState::ring() {
  if (asleep.load() == 0)
    return;
  bell.fetch_add(1);
  syscall(SYS_futex, &bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void RankState::sleep(uint32_t seen, int64_t nanoseconds) {
  timespec limit{0, nanoseconds};
  syscall(SYS_futex, &bell, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void RankState::wait(const Waiting &waiting) {
  waitingInstruction.set(waiting.instruction);
  std::array<uint64_t, 4> bits{};
  for (uint32_t rank : waiting.ranks)
    if (rank < 256)
      bits[rank / 64] |= uint64_t(1) << (rank % 64);
  for (size_t i = 0; i < bits.size(); ++i)
    waitingRanks[i].store(bits[i], std::memory_order_relaxed);
  waitingKind.set(waiting.kind);
}

void RankState::run() {
  idle.store(0, std::memory_order_relaxed);
  waitingKind.set("");
}

Waiting RankState::waiting() const {
  Waiting result;
  result.kind = waitingKind.get();
  if (result.kind.empty())
    return result;
  result.instruction = waitingInstruction.get();
  for (uint32_t rank = 0; rank < 256; ++rank)
    if (waitingRanks[rank / 64].load(std::memory_order_relaxed) >> (rank % 64) & 1)
      result.ranks.push_back(rank);
  return result;
}

SharedState *SharedState::make(void *memory, uint32_t world) {
  SharedState *sharedState = new (memory) SharedState;
  sharedState->ranks = world;
  for (uint32_t rank = 0; rank < world; ++rank)
    new (&(*sharedState)[rank]) RankState;
  return sharedState;
}

void SharedState::abort(int code, std::string_view message, bool isLoss) {
  if (written.exchange(1) != 0)
    return;
  lost.store(isLoss);
  exitCode.store(code);
  text.set(message);
  state.store(1);
  for (uint32_t rank = 0; rank < world(); ++rank)
    (*this)[rank].ring();
}

bool SharedState::claim() {
  uint32_t nobody = 0;
  return claimed.compare_exchange_strong(nobody, uint32_t(getpid()));
}

bool SharedState::isClaimedHere() const { return claimed.load() == uint32_t(getpid()); }

std::string SharedState::message() const { return text.get(); }

// A rank publishes that it starts a step before it checks whether the job stops; a process that stops the job publishes
// that before it checks which steps have started. So either the rank sees the stop or the stop sees the step.
bool SharedState::startStep(uint32_t rank, uint64_t step) {
  std::atomic<uint64_t> &started = (*this)[rank].startedSteps;
  uint64_t before = started.load();
  started.store(step + 1);
  if (stopping.load() == 0)
    return true;
  started.store(before);
  while (stopping.load() == 1 && !aborted())
    sched_yield();
  if (step >= allowed.load())
    return false;
  started.store(step + 1);
  return true;
}

void SharedState::stop() {
  uint32_t no = 0;
  if (stopping.compare_exchange_strong(no, 1) && hosts.load() == 1)
    settleStop(lastStep());
}

void SharedState::settleStop(uint64_t last) {
  allowed.store(last);
  stopping.store(2);
}

uint64_t Signal::bits() const { return uint64_t(uint32_t(pid)) << 32 | uint64_t(rank + 1) << 8 | uint64_t(number); }

Signal Signal::of(uint64_t bits) { return {int(bits & 255), int(bits >> 8 & 0xffffff) - 1, int32_t(bits >> 32)}; }

void SharedState::note(const Signal &signal) {
  uint64_t none = 0;
  signalled.compare_exchange_strong(none, signal.bits());
}

Signal SharedState::signal() const { return Signal::of(signalled.load()); }

uint64_t SharedState::lastStep() {
  uint64_t most = goesOnFrom.load();
  for (uint32_t rank = 0; rank < world(); ++rank)
    most = std::max(most, (*this)[rank].startedSteps.load());
  return most;
}
