// Handling of Ctrl-C and of schedulers' signals.
#include "Interrupt.h"
#include "comm/shared/Diagnosis.h"
#include "comm/shared/Threads.h"
#include "par/comm/job/Launch.h"
#include "par/comm/shared/Output.h"
#include "par/comm/shared/SignalStack.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <poll.h>
#include <unistd.h>

using namespace par;
using namespace par::comm;

// A signal handler reaches nothing but globals.
static std::atomic<SharedState *> interrupted{nullptr};
static std::atomic<int> signalled{0}, rankHere{-1};
static std::atomic<std::atomic<uint64_t> *> outliving{nullptr}; // of noteSignalsIn()
static std::atomic<int64_t> firstAsked{0};                      // when askedToEnd() first saw a signal to this job
static std::atomic<int> handlers{0};                            // that run now, and may hold `interrupted`
// Messages before and after a job, composed beforehand, as a handler cannot.
struct Line {
  std::array<char, 512> text;
  std::atomic<size_t> bytes{0};
};
static std::array<Line, 2> lonely;
static std::atomic<size_t> past{0};

/// How long a handler takes at most, on a machine with much to do.
static constexpr int64_t maxHandlerTime = 2'000'000'000;

static std::string_view nameOf(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGHUP ? "SIGHUP" : "SIGTERM";
}

static std::string prefixed(const std::string &bundle, const std::string &text) {
  return bundle + (bundle.empty() ? "" : ": ") + text;
}

// Tries for a second at most: stderr may have no reader.
static void writeAll(std::string_view text) {
  for (int tries = 20; !text.empty() && tries > 0; --tries) {
    pollfd polled{STDERR_FILENO, POLLOUT, 0};
    if (poll(&polled, 1, 50) == 0)
      continue;
    ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0)
      return;
    text.remove_prefix(size_t(n));
  }
}

// The sentence with its `{}` for the signal, in pieces: nothing here allocates.
static void sayAndEnd(std::string_view line, int signal) {
  size_t at = std::min(line.find("{}"), line.size());
  writeAll(line.substr(0, at));
  writeAll(nameOf(signal));
  writeAll(line.substr(std::min(at + 2, line.size())));
  _exit(128 + signal);
}

static void noteOutliving(int signal) {
  uint64_t none = 0;
  outliving.load()->compare_exchange_strong(none, Signal{signal, rankHere.load(), getpid()}.bits());
}

namespace {
/// While it lives, the board that `interrupted` points to stays.
class InHandler {
public:
  InHandler() { handlers.fetch_add(1); }
  InHandler(const InHandler &) = delete;
  ~InHandler() { handlers.fetch_sub(1); }
};
} // namespace

static void onSignal(int signal) {
  InHandler here;
  SharedState *sharedState = interrupted.load();
  if (!sharedState && !outliving.load())
    sayAndEnd({lonely[past].text.data(), lonely[past].bytes.load()}, signal);
  // Terminals hang up more than once, and schedulers follow up with SIGTERM: no reason to hurry.
  if (signal != SIGHUP && signalled.exchange(signal) != 0)
    sayAndEnd("error: a second signal, {}: this process ends at once\n", signal);
  if (outliving.load())
    noteOutliving(signal);
  if (!sharedState)
    return;
  sharedState->note({signal, rankHere.load(), getpid()});
  sharedState->stop();
}

// A SIGINT that a process sent to this rank is meant for it; the terminal's comes from the kernel, and the parent gets
// it, too.
static void onSentInterrupt(int signal, siginfo_t *info, void *) {
  if (info->si_code != SI_KERNEL)
    onSignal(signal);
}

// The reader of the job's output has gone (`par-run | head`). The job ends as by Ctrl-C, with its step done and its
// save complete; a second failed write does not hurry it.
static void onClosedPipe(int signal) {
  InHandler here;
  if (SharedState *sharedState = interrupted.load()) {
    sharedState->note({signal, rankHere.load(), getpid()});
    sharedState->stop();
  }
}

static void install(int signal, void (*handler)(int), struct sigaction *before) {
  useSignalStack();
  struct sigaction action{}, old{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(signal, nullptr, &old);
  // nohup: the terminal's end is nothing to this job.
  if (signal != SIGHUP || old.sa_handler != SIG_IGN)
    sigaction(signal, &action, nullptr);
  if (before)
    *before = old;
}

void par::comm::endOnSignals(const std::string &bundle, std::string_view who) {
  past.store(0);
  for (size_t i = 0; i < lonely.size(); ++i) {
    std::string line = format::printable(prefixed(
                           bundle, say(i == 0 ? Sentence::signalledBefore : Sentence::signalledLate, "{}", who))) +
                       "\n";
    lonely[i].bytes.store(0);
    std::copy_n(line.data(), std::min(line.size(), lonely[i].text.size()), lonely[i].text.data());
    lonely[i].bytes.store(std::min(line.size(), lonely[i].text.size()));
  }
  for (int signal : endingSignals)
    install(signal, onSignal, nullptr);
}

void par::comm::noteSignalsIn(std::atomic<uint64_t> &asked, int rank) {
  rankHere.store(rank);
  outliving.store(&asked);
}

Interrupt::Interrupt(SharedState &sharedState, int rank, CtrlC ctrlC) {
  if (!outliving.load())
    signalled.store(0);
  firstAsked.store(0);
  past.store(1);
  rankHere.store(rank);
  interrupted.store(&sharedState);
  for (size_t i = 0; i < endingSignals.size(); ++i)
    install(endingSignals[i], onSignal, &before[i]);
  install(SIGPIPE, onClosedPipe, &before[3]);
  if (ctrlC == CtrlC::inParent) {
    struct sigaction action{};
    action.sa_sigaction = onSentInterrupt;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigaction(SIGINT, &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (size_t i = 0; i < endingSignals.size(); ++i)
    sigaction(endingSignals[i], &before[i], nullptr);
  sigaction(SIGPIPE, &before[3], nullptr);
  interrupted.store(nullptr);
  // A handler of another thread may be about to write to the board. No longer than it can take: in a process that was
  // forked beside one, the count never falls.
  for (int64_t began = now(); handlers.load() && now() - began < maxHandlerTime;)
    usleep(100);
}

/// "rank 2 (pid 4711)", "par-run (pid 4711)".
static std::string whoGot(const Signal &signal) {
  return (signal.rank < 0 ? "par-run" : "rank " + std::to_string(signal.rank)) + " (pid " + std::to_string(signal.pid) +
         ")";
}

std::string par::comm::describeProcess(const std::optional<LaunchEnvironment> &place) {
  return whoGot({0, place ? int(place->rank) : -1, getpid()});
}

std::string par::comm::describeEarly(const Signal &signal, const std::string &bundle) {
  return prefixed(bundle, say(Sentence::signalledBefore, nameOf(signal.number), whoGot(signal)));
}

void par::comm::endIfSignalled(SharedState &sharedState, const std::string &bundle) {
  if (uint64_t asked = outliving.load() ? outliving.load()->load() : 0; asked && !sharedState.stops()) {
    sharedState.note(Signal::of(asked));
    sharedState.stop();
  }
  Signal signal = sharedState.signal();
  if (!signal.number || signal.number == SIGPIPE || sharedState.aborted() || sharedState.lastStep() != 0 ||
      sharedState.attempt.load() > 1)
    return;
  std::string line = describeEarly(signal, bundle);
  if (sharedState.claim())
    printLine(line);
  sharedState.abort(128 + signal.number, line);
}

SignalWatch::SignalWatch(SharedState &sharedState, std::string bundle)
    : thread(startThread([this, &sharedState, bundle = std::move(bundle)] {
        for (int64_t since = 0; !ending.load(); usleep(20'000)) {
          endIfSignalled(sharedState, bundle);
          if (sharedState.aborted() && !since)
            since = now();
          if (since && now() - since > 4'000'000'000) // a job ends within 5 s
            _exit(sharedState.code());
        }
      })) {}

SignalWatch::~SignalWatch() {
  ending.store(true);
  thread.join();
}

int64_t par::comm::askedToEnd() {
  SharedState *sharedState = interrupted.load();
  if (!sharedState || !sharedState->signal().number)
    return 0;
  int64_t never = 0;
  firstAsked.compare_exchange_strong(never, now());
  return firstAsked.load();
}

/// The files that a job leaves: the signal may have come while its results were written.
static std::string keptBy(SharedState &sharedState) {
  std::string saved = sharedState.saved.get(), wrote = sharedState.wrote.get();
  if (saved.empty())
    return wrote.empty() ? "nothing was saved" : "wrote " + wrote;
  return "last save " + saved + (wrote.empty() ? "" : "; wrote " + wrote);
}

int par::comm::interruptCode(SharedState &sharedState, const std::string &bundle) {
  Signal signal = sharedState.signal();
  if (!signal.number)
    return 0;
  uint64_t last = sharedState.lastStep();
  std::string name(nameOf(signal.number)), who = whoGot(signal), kept = keptBy(sharedState);
  if (signal.number != SIGPIPE && sharedState.claim())
    printLine(prefixed(bundle, last ? say(Sentence::signalledAfter, name, who, last - 1, kept)
                                    : say(Sentence::signalledBefore, name, who)));
  return 128 + signal.number;
}
