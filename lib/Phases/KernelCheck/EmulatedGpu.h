#pragma once

#include "par/Phases/Codegen/Emulation.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <vector>

/// Runs a kernel that was compiled for a GPU on the CPU. Every thread of a block is a coroutine, which stops at each
/// meeting (a sync, an exchange) until all threads of it have arrived. Blocks run one after the other. Between two
/// meetings threads run one at a time, by ascending number in the first block, by descending number in the next, and so
/// on. Threads that miss a meeting then read memory that is not written yet.
namespace par::emulated_gpu {

class Block {
public:
  using Body = void (*)(void *const *, const uint64_t *);

  Block(Body body, void *const *pointers, const uint64_t *immediates, unsigned threads, unsigned number)
      : body(body), pointers(pointers), immediates(immediates), number(number), threads(threads), all(threads) {}

  /// False where some threads wait for others that never come.
  bool run() {
    current = this;
    for (unsigned i = 0; i < threads; ++i)
      start(i);
    while (resumeReady()) {
    }
    for (const Thread &thread : all)
      if (thread.state != Done)
        return false;
    return true;
  }

  static const EmulatedCalls &calls() {
    static const EmulatedCalls table{[] { return int32_t(current->running); }, [] { return int32_t(current->number); },
                                     [] { current->wait(AtWarp); }, [] { current->wait(AtBlock); },
                                     [](int32_t value, int32_t mask) { return current->exchange(value, mask); }};
    return table;
  }

private:
  enum State { Ready, AtWarp, AtBlock, Done };
  static constexpr unsigned warp = 32, stackBytes = 256 << 10;
  struct Thread {
    State state = Ready;
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    int32_t given = 0;
  };

  void start(unsigned i) {
    Thread &thread = all[i];
    thread.stack.reset(new char[stackBytes]);
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = stackBytes;
    thread.context.uc_link = &scheduler;
    makecontext(
        &thread.context,
        [] {
          Block *block = current;
          block->body(block->pointers, block->immediates);
          block->all[block->running].state = Done;
        },
        0);
  }

  void resume(unsigned i) {
    running = i;
    swapcontext(&scheduler, &all[i].context);
  }

  /// Lets every thread that may go on run to its next meeting. False where none may.
  bool resumeReady() {
    bool any = false;
    for (unsigned n = 0; n < threads; ++n) {
      unsigned i = number % 2 ? threads - 1 - n : n;
      if (all[i].state == Ready) {
        any = true;
        resume(i);
      }
    }
    return release() || any;
  }

  /// Threads go on together, when all of their warp, or of the block, wait for the same.
  bool release() {
    bool any = releaseRange(0, threads, AtBlock);
    for (unsigned first = 0; first < threads; first += warp)
      any |= releaseRange(first, std::min(first + warp, threads), AtWarp);
    return any;
  }

  bool releaseRange(unsigned from, unsigned to, State meeting) {
    for (unsigned i = from; i < to; ++i)
      if (all[i].state != meeting)
        return false;
    for (unsigned i = from; i < to; ++i)
      all[i].state = Ready;
    return true;
  }

  void wait(State meeting) {
    unsigned self = running;
    all[self].state = meeting;
    swapcontext(&all[self].context, &scheduler);
  }

  int32_t exchange(int32_t value, int32_t mask) {
    unsigned self = running;
    all[self].given = value;
    wait(AtWarp);
    int32_t got = all[self ^ unsigned(mask)].given;
    wait(AtWarp); // no thread gives the next value before all have taken this one
    return got;
  }

  inline static Block *current = nullptr;
  Body body;
  void *const *pointers;
  const uint64_t *immediates;
  unsigned number, threads, running = 0;
  std::vector<Thread> all;
  ucontext_t scheduler;
};

/// The whole grid. `shared` is the blocks' shared memory, which holds nothing that can be used at the begin
/// of a block. False where threads of a block wait for ever.
inline bool run(Block::Body body, void *const *pointers, const uint64_t *immediates, unsigned grid, unsigned threads,
                void *shared, size_t sharedBytes) {
  for (unsigned number = 0; number < grid; ++number) {
    if (shared)
      std::memset(shared, 0xff, sharedBytes);
    if (!Block(body, pointers, immediates, threads, number).run())
      return false;
  }
  return true;
}

} // namespace par::emulated_gpu
