// The report of a fault of Par itself.
#include "par/Driver/Fault.h"

#include "par/Driver/Flags.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <fcntl.h>
#include <new>
#include <sys/resource.h>
#include <typeinfo>
#include <unistd.h>

using namespace llvm;

namespace par {

std::string CompileState::sentence(StringRef reason) const {
  std::string text = std::string("internal error in ") + phase.load() + ": " + reason.str() + "; please report ";
  return text + (reproducerFile.empty() ? "with --emit-reproducer" : "it with " + reproducerFile);
}

/// All of it, or false. Calls nothing that a signal handler must not.
static bool writeAll(int file, const char *data, size_t size) {
  while (size > 0) {
    ssize_t written = ::write(file, data, size);
    if (written <= 0)
      return false;
    data += written;
    size -= written;
  }
  return true;
}

bool CompileState::writeReproducer() const {
  if (reproducerFile.empty())
    return true;
  int file = ::open(reproducerFile.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool written = file >= 0 && writeAll(file, reproducer.data(), reproducer.size());
  if (file >= 0)
    ::close(file);
  return written;
}

namespace {

/// State of the signal handlers. A handler is a plain function, so this cannot be a member of an object.
struct Caught {
  const char *tool = nullptr;
  const CompileState *compileState = nullptr;
} caught;

void say(const char *text) { writeAll(STDERR_FILENO, text, std::strlen(text)); }

/// The sentence piece by piece, as no memory may be asked for here, and the end.
[[noreturn]] void end(const char *reason) {
  const CompileState &at = *caught.compileState;
  say(caught.tool);
  say(": error: internal error in ");
  say(at.phase.load());
  say(": ");
  say(reason);
  if (at.reproducerFile.empty()) {
    say("; please report with --emit-reproducer\n");
  } else {
    say("; please report it with ");
    say(at.reproducerFile.c_str());
    say(at.writeReproducer() ? "\n" : ", which cannot be written\n");
  }
  ::_exit(Bug);
}

void say(uint64_t number) {
  char text[24], *at = text + sizeof text;
  *--at = '\0';
  do
    *--at = char('0' + number % 10);
  while (number /= 10);
  say(at);
}

/// KiB of the process's address space; 0 if the system does not say.
uint64_t usedKiB() {
  char text[64] = {};
  int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0 || ::read(file, text, sizeof text - 1) <= 0)
    return 0;
  return std::strtoull(text, nullptr, 10) * uint64_t(::sysconf(_SC_PAGESIZE)) >> 10;
}

/// Not an internal error: the model is too large for the process's memory limit.
[[noreturn]] void endForMemory() {
  say(caught.tool);
  say(": error: out of memory in ");
  say(caught.compileState->phase.load());
  say(": ");
  say(usedKiB());
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    say(" KiB are in use, and the limit of the process is ");
    say(limit.rlim_cur >> 10);
    say(" KiB; raise it (ulimit -v)\n");
  } else {
    say(" KiB are in use, and the system gives no more\n");
  }
  ::_exit(WrongInput);
}

/// Libraries with exceptions also throw when memory or threads run out.
[[noreturn]] void onTerminate() {
  const std::type_info *thrown = abi::__cxa_current_exception_type();
  StringRef name = thrown ? thrown->name() : "";
  if (name == "St9bad_alloc" || name == "St12system_error" || name.ends_with("OutOfMemoryE"))
    endForMemory();
  std::abort();
}

const char *nameOf(int signal) {
  switch (signal) {
  case SIGSEGV:
    return "segmentation fault";
  case SIGBUS:
    return "bus error";
  case SIGFPE:
    return "arithmetic fault";
  case SIGILL:
  case SIGTRAP:
    return "unreachable code";
  default:
    return "aborted";
  }
}

void onSignal(int signal) { end(nameOf(signal)); }

void onFatalError(void *, const char *reason, bool) { end(reason); }

/// The handler of a stack overflow needs a stack of its own.
void useOwnStack() {
  static char stack[64 << 10];
  stack_t own = {};
  own.ss_sp = stack;
  own.ss_size = sizeof stack;
  ::sigaltstack(&own, nullptr);
}

} // namespace

void catchFaults(const char *tool, const CompileState &compileState) {
  caught = {tool, &compileState};
  // If the reader of the output closes it, the tool ends silently. This also installs LLVM's handlers for all signals,
  // so it comes before ours.
  sys::SetOneShotPipeSignalFunction(sys::DefaultOneShotPipeSignalHandler);
  install_fatal_error_handler(onFatalError);
  install_bad_alloc_error_handler([](void *, const char *, bool) { endForMemory(); });
  std::set_new_handler(endForMemory);
  std::set_terminate(onTerminate);
  useOwnStack();
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP})
    ::sigaction(signal, &action, nullptr);
}

int endOutput(StringRef tool, int code) {
  outs().flush();
  errs().clear_error(); // no stream is left to report this on
  if (!outs().has_error())
    return code;
  std::string why = outs().error().message();
  outs().clear_error();
  errs() << tool << ": error: standard output: cannot write: " << why << '\n';
  return code == Done ? int(WrongInput) : code;
}

} // namespace par
