// A child makes one call after the other and writes its progress. If a call traps, the handler writes the reason and
// ends the child; a new child goes on with the next call.
#include "KernelRun.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <ucontext.h>

namespace par::kernel_check {
namespace {

/// Seconds that one call may take.
constexpr unsigned patience = 120;
constexpr size_t handlerStack = 64 << 10;

/// Messages of a child to its parent, in shared memory.
struct Progress {
  std::atomic<uint32_t> ended;
  std::atomic<uint32_t> end; ///< of the run that was not Done
  uint64_t address;
  uint32_t wrote, signal;
};

/// Thread-local, as a signal handler has no argument of ours; the child has one thread.
thread_local Progress *progress;

void note(int number, siginfo_t *info, void *context) {
  bool outside = (number == SIGSEGV || number == SIGBUS) && info->si_code > 0;
  progress->end = number == SIGALRM ? KernelRun::TooLong : outside ? KernelRun::Outside : KernelRun::Trap;
  progress->address = reinterpret_cast<uint64_t>(info->si_addr);
  progress->signal = number;
#if defined(__x86_64__)
  // Bit 1 of a page fault's error code: a write.
  progress->wrote = (static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] >> 1) & 1;
#endif
  _exit(1);
}

void listen() {
  stack_t stack{};
  stack.ss_size = handlerStack;
  stack.ss_sp = mmap(nullptr, handlerStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = note;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigset_t all;
  sigemptyset(&all);
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGALRM}) {
    sigaction(number, &action, nullptr);
    sigaddset(&all, number);
  }
  sigprocmask(SIG_UNBLOCK, &all, nullptr);
}

[[noreturn]] void makeCalls(llvm::ArrayRef<KernelRun *> runs) {
  listen();
  for (KernelRun *run : runs) {
    KernelRun::Pointers pointers;
    for (size_t i = 0; i < run->operands.size(); ++i) {
      if (run->readOnly[i])
        run->operands[i]->forbidWrites();
      pointers.push_back(run->operands[i]->as<void>());
    }
    alarm(patience);
    if (!run->call(pointers.data(), run->immediates.data())) {
      progress->end = KernelRun::Deadlock;
      _exit(1);
    }
    alarm(0);
    ++progress->ended;
  }
  _exit(0);
}

} // namespace

bool runApart(llvm::ArrayRef<KernelRun *> runs, std::string &reason) {
  void *shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    reason = std::strerror(errno);
    return false;
  }
  progress = new (shared) Progress{};
  while (!runs.empty()) {
    progress->ended = 0;
    progress->end = KernelRun::Unknown;
    pid_t child = fork();
    if (child == 0)
      makeCalls(runs);
    if (child < 0) {
      reason = std::strerror(errno);
      break;
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    for (KernelRun *done : runs.take_front(progress->ended))
      done->end = KernelRun::Done;
    runs = runs.drop_front(progress->ended);
    if (runs.empty())
      break;
    KernelRun &failed = *runs.front();
    failed.end =
        progress->end == KernelRun::Unknown ? KernelRun::Trap : static_cast<KernelRun::End>(progress->end.load());
    failed.address = progress->address;
    failed.wrote = progress->wrote;
    failed.signal = WIFSIGNALED(status) ? WTERMSIG(status) : static_cast<int>(progress->signal);
    runs = runs.drop_front();
  }
  munmap(shared, sizeof(Progress));
  return reason.empty();
}

} // namespace par::kernel_check
