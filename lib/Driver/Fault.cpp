//===- Fault.cpp - what is said when Par itself is at fault
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "par/Driver/Fault.h"

#include "par/Driver/Flags.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;

namespace par {

std::string Whereabouts::sentence(StringRef reason) const {
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

bool Whereabouts::writeReproducer() const {
  if (reproducerFile.empty())
    return true;
  int file = ::open(reproducerFile.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool written = file >= 0 && writeAll(file, reproducer.data(), reproducer.size());
  if (file >= 0)
    ::close(file);
  return written;
}

namespace {

/// What the handlers know. A handler is a function of the process, so its knowledge cannot be an object's.
struct Caught {
  const char *tool = nullptr;
  const Whereabouts *whereabouts = nullptr;
} caught;

void say(const char *text) { writeAll(STDERR_FILENO, text, std::strlen(text)); }

/// The sentence piece by piece, as no memory may be asked for here, and the end.
[[noreturn]] void end(const char *reason) {
  const Whereabouts &at = *caught.whereabouts;
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

/// An overflow of the stack needs another one to be said on.
void useOwnStack() {
  static char stack[64 << 10];
  stack_t own = {};
  own.ss_sp = stack;
  own.ss_size = sizeof stack;
  ::sigaltstack(&own, nullptr);
}

} // namespace

void catchFaults(const char *tool, const Whereabouts &whereabouts) {
  caught = {tool, &whereabouts};
  // A reader of the output that goes ends the tool without a word. Brings handlers of LLVM's for all signals: before ours.
  sys::SetOneShotPipeSignalFunction(sys::DefaultOneShotPipeSignalHandler);
  install_fatal_error_handler(onFatalError);
  useOwnStack();
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP})
    ::sigaction(signal, &action, nullptr);
}

int endOutput(StringRef tool, int code) {
  outs().flush();
  errs().clear_error(); // whom should that be told?
  if (!outs().has_error())
    return code;
  std::string why = outs().error().message();
  outs().clear_error();
  errs() << tool << ": error: standard output: cannot write: " << why << '\n';
  return code == Done ? int(WrongInput) : code;
}

} // namespace par
