#include "par/Driver/Fault.h"
#include "par/Driver/Flags.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemAlloc.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace par;

namespace {

/// Ends the process as par-compile does, after `fault` in phase `split`.
template <typename Fault>
[[noreturn]] void failIn(const char *reproducer, Fault fault) {
  CompileState compileState;
  compileState.phase = "split";
  compileState.reproducerFile = reproducer;
  compileState.reproducer = "// the program\n";
  catchFaults("par-compile", compileState);
  fault();
  std::exit(0);
}

/// Deeper than any stack.
int descend(volatile int depth) {
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  return descend(depth + 1) + room[0];
}

// A fault is one sentence, with the phase, and exit code 70.
TEST(Fault, SignalsEndWithASentence) {
  const char *rest = "; please report with --emit-reproducer\n$";
  EXPECT_EXIT(failIn("", [] { ::raise(SIGSEGV); }), testing::ExitedWithCode(Bug),
              std::string("^par-compile: error: internal error in split: segmentation fault") + rest);
  EXPECT_EXIT(failIn("", [] { std::abort(); }), testing::ExitedWithCode(Bug),
              std::string("^par-compile: error: internal error in split: aborted") + rest);
  EXPECT_EXIT(failIn("", [] { llvm::report_fatal_error("no such thing"); }), testing::ExitedWithCode(Bug),
              std::string("^par-compile: error: internal error in split: no such thing") + rest);
  EXPECT_EXIT(failIn("", [] { std::exit(descend(0)); }), testing::ExitedWithCode(Bug),
              std::string("^par-compile: error: internal error in split: segmentation fault") + rest);
}

// Too little memory is no fault of Par's.
TEST(Fault, OutOfMemoryIsSaid) {
  auto take = [] { std::exit(::operator new(size_t(1) << 60) == nullptr); };
  EXPECT_EXIT(failIn("", take), testing::ExitedWithCode(WrongInput),
              "^par-compile: error: out of memory in split: [0-9]+ KiB are in use, and .*\n$");
  auto takeInLLVM = [] { std::exit(llvm::safe_malloc(size_t(1) << 60) == nullptr); };
  EXPECT_EXIT(failIn("", takeInLLVM), testing::ExitedWithCode(WrongInput),
              "^par-compile: error: out of memory in split: ");
}

// With --emit-reproducer the sentence names a file with the program.
TEST(Fault, ReproducerIsWritten) {
  std::string file = testing::TempDir() + "par-fault-test.mlir";
  EXPECT_EXIT(failIn(file.c_str(), [] { ::raise(SIGBUS); }), testing::ExitedWithCode(Bug),
              "internal error in split: bus error; please report it with .*par-fault-test.mlir\n$");
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(text.str(), "// the program\n");
  std::remove(file.c_str());
  EXPECT_EXIT(
      failIn("/nowhere/at/all", [] { ::raise(SIGILL); }), testing::ExitedWithCode(Bug),
      "internal error in split: unreachable code; please report it with /nowhere/at/all, which cannot be written\n$");
}

} // namespace
