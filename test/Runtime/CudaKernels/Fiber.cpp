// A few instructions where the architecture is known, ucontext elsewhere.
#include "Fiber.h"

#include <cstdint>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace emulation {

// Stacks do not begin at the same place of their pages: caches would keep few of them at a time.
constexpr size_t stackBytes = 128 << 10, steps = 61, step = 1088;

#ifdef __x86_64__
// Saves the callee-saved registers on the stack, switches the stack, and restores them from there.
extern "C" void parSwitchStack(void **from, void *to);
asm(".text\n.globl parSwitchStack\n.type parSwitchStack,@function\n"
    "parSwitchStack:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size parSwitchStack,.-parSwitchStack\n");
#endif

struct Fiber::Stack {
  void *memory = mmap(nullptr, stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void (*function)(void *) = nullptr;
  void *argument = nullptr;
#ifdef __x86_64__
  void *own = nullptr, *other = nullptr;
#else
  ucontext_t own, other;
#endif
  ~Stack() { munmap(memory, stackBytes); }
};

namespace {
/// Function of the fiber that begins; set just before.
void (*beginFunction)(void *);
void *beginArgument;
[[noreturn]] void beginFiber() {
  beginFunction(beginArgument);
  __builtin_trap(); // a fiber pauses at its end
}
} // namespace

Fiber::Fiber() : stack(std::make_unique<Stack>()) {}
Fiber::~Fiber() = default;
Fiber::Fiber(Fiber &&) noexcept = default;

void Fiber::start(void (*function)(void *), void *argument) {
  stack->function = function;
  stack->argument = argument;
#ifdef __x86_64__
  static unsigned count = 0;
  auto *top = reinterpret_cast<uint64_t *>(static_cast<char *>(stack->memory) + stackBytes - count++ % steps * step);
  *--top = 0; // a function begins 8 bytes after a multiple of 16
  *--top = reinterpret_cast<uint64_t>(&beginFiber);
  for (int i = 0; i < 6; ++i)
    *--top = 0;
  stack->own = top;
#else
  getcontext(&stack->own);
  stack->own.uc_stack.ss_sp = stack->memory;
  stack->own.uc_stack.ss_size = stackBytes;
  stack->own.uc_link = nullptr;
  makecontext(&stack->own, beginFiber, 0);
#endif
}

void Fiber::resume() {
  beginFunction = stack->function;
  beginArgument = stack->argument;
#ifdef __x86_64__
  parSwitchStack(&stack->other, stack->own);
#else
  swapcontext(&stack->other, &stack->own);
#endif
}

void Fiber::pause() {
#ifdef __x86_64__
  parSwitchStack(&stack->own, stack->other);
#else
  swapcontext(&stack->own, &stack->other);
#endif
}

} // namespace emulation
