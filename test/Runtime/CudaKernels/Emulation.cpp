// The scheduler of the emulated threads, their barriers, and checks of accesses to shared memory.
#include "Emulation.h"
#include "Fiber.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>

namespace emulation {
namespace {

constexpr unsigned lanesOfWarp = 32;

/// Threads that wait for each other: of a block, or of a warp.
struct ThreadBarrier {
  unsigned size = 0, arrived = 0, turn = 0;
  Place place;
  std::vector<unsigned> waiting;
};

struct Warp {
  ThreadBarrier meeting;
  unsigned barriers = 0;
  uint64_t values[2][lanesOfWarp]; ///< of this shuffle and the one before, which slower lanes may still read
};

struct Thread {
  unsigned number = 0;
  bool ended = false;
};

struct Block {
  const std::function<void()> *kernel = nullptr;
  std::deque<Fiber> fibers; ///< kept from one launch to the next
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  ThreadBarrier meeting;
  unsigned barriers = 0, ended = 0, current = 0;
  std::vector<unsigned> runnable;
  std::vector<std::byte> dynamic;
  std::string fault;
  std::mt19937_64 random;
};

Block block;

std::vector<SharedBase *> &sharedArrays() {
  static std::vector<SharedBase *> all;
  return all;
}

std::string describe(unsigned thread) {
  return "thread " + std::to_string(thread) + " of block (" + std::to_string(blockIdx.x) + ", " +
         std::to_string(blockIdx.y) + ")";
}

std::string describe(const Place &place) {
  std::string file = place.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(place.line());
}

void setIndex(unsigned thread) {
  block.current = thread;
  threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}

/// The running thread arrives, and goes on when all have.
void meet(ThreadBarrier &meeting, const Place &place, const char *what) {
  if (meeting.arrived == 0)
    meeting.place = place;
  else if (meeting.place.line() != place.line() || std::strcmp(meeting.place.file_name(), place.file_name()) != 0)
    throw std::runtime_error(describe(block.current) + " waits for its " + what + " at " + describe(place) +
                             ", others at " + describe(meeting.place));
  if (++meeting.arrived == meeting.size) {
    meeting.arrived = 0;
    ++meeting.turn;
    block.runnable.insert(block.runnable.end(), meeting.waiting.begin(), meeting.waiting.end());
    meeting.waiting.clear();
    return;
  }
  unsigned self = block.current;
  meeting.waiting.push_back(self);
  block.fibers[self].pause();
  setIndex(self);
}

void runThread(void *argument) {
  auto self = static_cast<unsigned>(reinterpret_cast<uintptr_t>(argument));
  setIndex(self);
  try {
    (*block.kernel)();
  } catch (const std::exception &error) {
    block.fault = error.what();
  }
  block.threads[self].ended = true;
  ++block.ended;
  block.fibers[self].pause();
}

void begin(unsigned threads, uint32_t shared) {
  block.threads.assign(threads, Thread());
  block.warps.assign(threads / lanesOfWarp, Warp());
  for (Warp &warp : block.warps)
    warp.meeting.size = lanesOfWarp;
  block.meeting = ThreadBarrier();
  block.meeting.size = threads;
  block.barriers = block.ended = 0;
  block.fault.clear();
  block.dynamic.assign(shared + 64, std::byte(0xff));
  for (SharedBase *array : sharedArrays())
    array->begin();
  while (block.fibers.size() < threads)
    block.fibers.emplace_back();
  block.runnable.resize(threads);
  std::iota(block.runnable.begin(), block.runnable.end(), 0u);
  for (unsigned thread = 0; thread < threads; ++thread)
    block.fibers[thread].start(runThread, reinterpret_cast<void *>(uintptr_t(thread)));
}

void runBlock(unsigned threads, uint32_t shared) {
  begin(threads, shared);
  while (!block.runnable.empty()) {
    std::swap(block.runnable[block.random() % block.runnable.size()], block.runnable.back());
    unsigned next = block.runnable.back();
    block.runnable.pop_back();
    block.fibers[next].resume();
    if (!block.fault.empty())
      throw std::runtime_error(block.fault);
  }
  if (block.ended == threads)
    return;
  auto waiting = [](const ThreadBarrier &meeting) { return !meeting.waiting.empty(); };
  auto warp = std::ranges::find_if(block.warps, [&](const Warp &warp) { return waiting(warp.meeting); });
  const ThreadBarrier &stuck = warp != block.warps.end() ? warp->meeting : block.meeting;
  throw std::runtime_error(describe(stuck.waiting.front()) + " waits at " + describe(stuck.place) +
                           " for threads that do not come");
}

bool ordered(const Access &before, int thread) {
  if (before.thread < 0 || before.thread == thread || before.barriers < block.barriers)
    return true;
  unsigned warp = unsigned(thread) / lanesOfWarp;
  return unsigned(before.thread) / lanesOfWarp == warp && before.warpBarriers < block.warps[warp].barriers;
}

Access accessNow() { return {int(block.current), block.barriers, block.warps[block.current / lanesOfWarp].barriers}; }

[[noreturn]] void race(const Access &other, const char *name, size_t index) {
  throw std::runtime_error("race: " + describe(block.current) + " and thread " + std::to_string(other.thread) +
                           " touch " + name + "[" + std::to_string(index) + "] without a barrier between");
}

} // namespace

SharedBase::SharedBase() { sharedArrays().push_back(this); }

unsigned currentLane() { return block.current % lanesOfWarp; }
void *dynamicShared() {
  return reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(block.dynamic.data()) + 15) / 16 * 16);
}

void waitForBlock(Place place) {
  unsigned turn = block.meeting.turn;
  meet(block.meeting, place, "block");
  if (block.barriers == turn)
    ++block.barriers;
}

void waitForWarp(Place place) {
  Warp &warp = block.warps[block.current / lanesOfWarp];
  meet(warp.meeting, place, "warp");
  warp.barriers = warp.meeting.turn;
}

uint64_t exchange(unsigned mask, uint64_t value, unsigned from, Place place) {
  if (mask != 0xffffffffu)
    throw std::runtime_error(describe(block.current) + " shuffles with part of its warp at " + describe(place));
  Warp &warp = block.warps[block.current / lanesOfWarp];
  uint64_t *values = warp.values[warp.meeting.turn % 2];
  values[currentLane()] = value;
  meet(warp.meeting, place, "warp");
  return values[from % lanesOfWarp];
}

void noteRead(Cell &cell, const char *name, size_t index) {
  if (cell.write.thread < 0)
    throw std::runtime_error(describe(block.current) + " reads " + name + "[" + std::to_string(index) +
                             "], which nothing has written");
  if (!ordered(cell.write, int(block.current)))
    race(cell.write, name, index);
  Access now = accessNow();
  bool readBefore = cell.read.thread >= 0 && cell.read.barriers == now.barriers;
  cell.manyRead = readBefore && (cell.manyRead || cell.read.thread != now.thread);
  cell.read = now;
}

void noteWrite(Cell &cell, const char *name, size_t index) {
  if (!ordered(cell.write, int(block.current)))
    race(cell.write, name, index);
  bool othersRead = cell.manyRead && cell.read.barriers == block.barriers;
  if (othersRead || !ordered(cell.read, int(block.current)))
    race(cell.read, name, index);
  cell.write = accessNow();
}

void launch(const Launch &launch, const std::function<void()> &kernel, uint64_t seed) {
  unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
  if (threads == 0 || threads % lanesOfWarp != 0 || threads > 1024)
    throw std::runtime_error("a block of " + std::to_string(threads) + " threads");
  block.kernel = &kernel;
  block.random.seed(seed);
  gridDim = {launch.grid[0], launch.grid[1], launch.grid[2]};
  blockDim = {launch.block[0], launch.block[1], launch.block[2]};
  std::vector<uint64_t> order(uint64_t(gridDim.x) * gridDim.y * gridDim.z);
  std::iota(order.begin(), order.end(), uint64_t(0));
  std::shuffle(order.begin(), order.end(), block.random);
  for (uint64_t at : order) {
    blockIdx = {unsigned(at % gridDim.x), unsigned(at / gridDim.x % gridDim.y), unsigned(at / gridDim.x / gridDim.y)};
    runBlock(threads, launch.shared);
  }
}

} // namespace emulation
