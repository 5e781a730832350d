// SIGINT, SIGTERM and SIGHUP in every state of a job: it ends soon and cleanly, and a line says which rank got the
// signal and how the job ended.
#include "Rendezvous.h"
#include "comm/job/Interrupt.h"
#include "comm/shared/Memory.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <regex>
#include <sys/mman.h>
#include <thread>

using namespace par::test;

namespace {

const std::map<int, std::string> signalNames = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};

std::string idOf(const std::string &who, pid_t pid) { return who + " (pid " + std::to_string(pid) + ")"; }

std::string before(int signal, const std::string &who) {
  return "job.par: " + signalNames.at(signal) + " came to " + who +
         " before the first step: the job ended, and there was nothing to save\n";
}

void expectAfter(const std::string &said, int signal, const std::string &who) {
  std::string start = "job.par: " + signalNames.at(signal) + " came to " + who + ": the job ended after step ";
  EXPECT_EQ(said.substr(0, start.size()), start);
  EXPECT_TRUE(
      std::regex_match(said.substr(start.size()), std::regex("[0-9]+; (nothing was saved|last save ckpt/[0-9]+)\n")))
      << said;
}

std::vector<std::string> job(const std::string &comm, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{jobTool, "-n", "4", "--comm", comm};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

} // namespace

// Among steps: the step is finished, by all ranks alike.
TEST(Signals, AmongSteps) {
  for (std::string comm : {"shm", "inproc"})
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
      Process started(job(comm));
      ASSERT_TRUE(started.sees(amongSteps, 4));
      started.signal(signal);
      EXPECT_EQ(started.wait(10), 128 + signal) << started.errors();
      EXPECT_NE(started.out().find("stopped after step "), std::string::npos);
      expectAfter(started.errors(), signal, idOf("par-run", started.pid()));
    }
}

// Results that were still written are listed.
TEST(Signals, AfterResultsWereWritten) {
  Process started(job("shm", {"--wrote", "o.safetensors"}));
  ASSERT_TRUE(started.sees(amongSteps, 4));
  started.signal(SIGTERM);
  EXPECT_EQ(started.wait(10), 143) << started.errors();
  EXPECT_TRUE(std::regex_match(started.errors(),
                               std::regex("job\\.par: SIGTERM came to [^:]+: the job ended after step [0-9]+; "
                                          "(last save ckpt/[0-9]+; )?wrote o\\.safetensors\n")))
      << started.errors();
}

// A rank that gets the signal is named.
TEST(Signals, ToOneRank) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Process started(job("shm"));
    ASSERT_TRUE(started.sees(amongSteps, 4));
    pid_t rank = pidOfRank(started.out(), 2);
    kill(rank, signal);
    EXPECT_EQ(started.wait(10), 128 + signal) << started.errors();
    expectAfter(started.errors(), signal, idOf("rank 2", rank));
  }
}

// Before the first step, while ranks are busy with something long: the job ends all the same.
TEST(Signals, BeforeTheFirstStep) {
  for (std::string comm : {"shm", "inproc"})
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
      Process started(job(comm, {"--busy", "60"}));
      ASSERT_TRUE(started.sees("pid", 4));
      started.signal(signal);
      EXPECT_EQ(started.wait(5), 128 + signal) << started.errors();
      EXPECT_EQ(started.errors(), before(signal, idOf("par-run", started.pid())));
    }
  for (int signal : {SIGINT, SIGTERM}) {
    Process started(job("shm", {"--busy", "60"}));
    ASSERT_TRUE(started.sees("pid", 4));
    pid_t rank = pidOfRank(started.out(), 3);
    kill(rank, signal);
    EXPECT_EQ(started.wait(5), 128 + signal);
    EXPECT_EQ(started.errors(), before(signal, idOf("rank 3", rank)));
  }
}

// The terminal's Ctrl-C reaches par-run and all ranks, and is one signal: par-run's.
TEST(Signals, CtrlC) {
  int terminal;
  pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) {
    execl(jobTool.c_str(), jobTool.c_str(), "-n", "4", nullptr);
    _exit(127);
  }
  std::string text;
  auto reads = [&] {
    char buffer[4096];
    ssize_t n = read(terminal, buffer, sizeof buffer);
    text.append(buffer, size_t(std::max<ssize_t>(n, 0)));
    return n > 0;
  };
  while (ranksOf(text, "rank %d runs as %d").size() < 4 && reads())
    ;
  EXPECT_EQ(write(terminal, "\x03", 1), 1);
  while (reads())
    ;
  close(terminal);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << status << text;
  EXPECT_NE(text.find("SIGINT came to " + idOf("par-run", child)), std::string::npos) << text;
}

// The board of a job that ends while another thread's handler writes to it: the handler is held at its first write, as
// a thread may be that has no core, until the job would have ended.
static std::atomic<int> heldWrites{0};
static std::span<std::byte> heldBoard;

static void holdWrite(int) {
  if (heldWrites.fetch_add(1) != 0) // the board is gone
    _exit(1);
  usleep(200'000);
  mprotect(heldBoard.data(), heldBoard.size(), PROT_READ | PROT_WRITE);
}

static void endJobBesideHandler() {
  using namespace par::comm;
  std::atomic<bool> ending{false};
  std::thread other([&] {
    while (!ending.load())
      usleep(1000);
  });
  {
    par::comm::Mapping memory = mapPrivate(SharedState::bytesFor(1));
    Interrupt interrupt(*SharedState::make(memory.bytes.data(), 1), 0);
    heldBoard = memory.bytes;
    std::signal(SIGSEGV, holdWrite);
    mprotect(heldBoard.data(), heldBoard.size(), PROT_READ);
    pthread_kill(other.native_handle(), SIGHUP);
    while (!heldWrites.load())
      usleep(1000);
  }
  ending.store(true);
  other.join();
  _exit(0);
}

// It stays until the handler is done.
TEST(Signals, AtTheEndOfTheJob) { EXPECT_EXIT(endJobBesideHandler(), testing::ExitedWithCode(0), ""); }

// Ranks of a launcher, before all have connected: one rank leaves by itself and says so; with rank 0 the others end,
// and say so, too.
TEST(Signals, BeforeTheRendezvous) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    int port = unusedPort();
    Process alone = byHand(1, 2, port);
    ASSERT_TRUE(handles(alone.pid(), signal));
    alone.signal(signal);
    EXPECT_EQ(alone.wait(5), 128 + signal);
    EXPECT_EQ(alone.errors(), before(signal, idOf("rank 1", alone.pid())));

    Process first = byHand(0, 4, port);
    ASSERT_TRUE(listens(port));
    Process leaves = byHand(1, 4, port), stays = byHand(2, 4, port);
    ASSERT_TRUE(handles(leaves.pid(), signal));
    ASSERT_TRUE(handles(stays.pid(), signal));
    leaves.signal(signal);
    EXPECT_EQ(leaves.wait(5), 128 + signal);
    EXPECT_EQ(first.wait(0.3), -1) << first.errors();
    first.signal(signal);
    EXPECT_EQ(first.wait(5), 128 + signal);
    EXPECT_EQ(stays.wait(5), 128 + signal);
    EXPECT_EQ(first.errors(), before(signal, idOf("rank 0", first.pid())));
    EXPECT_EQ(stays.errors(), first.errors());
  }
}

// Ranks of a launcher among steps: one signal ends all of them, and is said once.
TEST(Signals, LaunchedRanks) {
  int port = unusedPort();
  Process first = byHand(0, 2, port, {"--steps", "1000000"}), second = byHand(1, 2, port, {"--steps", "1000000"});
  ASSERT_TRUE(first.sees(amongSteps));
  ASSERT_TRUE(second.sees(amongSteps));
  second.signal(SIGHUP);
  EXPECT_EQ(first.wait(10), 128 + SIGHUP);
  EXPECT_EQ(second.wait(10), 128 + SIGHUP);
  expectAfter(first.errors() + second.errors(), SIGHUP, idOf("rank 1", second.pid()));
}

// Terminals hang up more than once, and schedulers follow SIGHUP up: the step is finished. A job that was started with
// nohup does not end.
TEST(Signals, HangUps) {
  Process started(job("shm"));
  ASSERT_TRUE(started.sees(amongSteps, 4));
  kill(pidOfRank(started.out(), 2), SIGSTOP); // the step does not end yet
  for (int signal : {SIGHUP, SIGHUP, SIGTERM, SIGHUP}) {
    started.signal(signal);
    usleep(20'000);
  }
  kill(pidOfRank(started.out(), 2), SIGCONT);
  EXPECT_EQ(started.wait(10), 128 + SIGHUP);
  expectAfter(started.errors(), SIGHUP, idOf("par-run", started.pid()));

  Process deaf(job("shm", {"--nohup", "1", "--steps", "60"}));
  ASSERT_TRUE(deaf.sees("pid", 4));
  deaf.signal(SIGHUP);
  EXPECT_EQ(deaf.wait(enough), 0) << deaf.errors();
}

namespace {

/// A pipe without a reader.
struct FullPipe {
  FullPipe() {
    EXPECT_EQ(pipe(ends), 0); // inherited by the job
    fcntl(ends[1], F_SETPIPE_SZ, 8192);
  }
  ~FullPipe() {
    close(ends[0]);
    close(ends[1]);
  }
  /// Waits until nothing more goes in.
  bool fills() const {
    for (auto begin = Clock::now(); secondsSince(begin) < 20; usleep(10'000)) {
      pollfd polled{ends[1], POLLOUT, 0};
      if (poll(&polled, 1, 0) == 0)
        return true;
    }
    return false;
  }
  std::string to() const { return std::to_string(ends[1]); }
  int ends[2];
};

} // namespace

// Output without a reader keeps no job from ending: the step is finished, and its outcome is reported. If stderr is the
// same pipe no report is possible, and the job ends all the same.
TEST(Signals, OutputThatNobodyReads) {
  for (std::string comm : {"shm", "inproc"})
    for (bool errorsToo : {false, true}) {
      FullPipe full;
      std::vector<std::string> flags{"--chatty", full.to()};
      if (errorsToo)
        flags.insert(flags.end(), {"--errors", full.to()});
      Process started(job(comm, flags));
      ASSERT_TRUE(full.fills());
      started.signal(SIGTERM);
      EXPECT_EQ(started.wait(10), 143) << comm;
      EXPECT_NE(started.out().find("stopped after step "), std::string::npos);
      if (!errorsToo)
        expectAfter(started.errors(), SIGTERM, idOf("par-run", started.pid()));
    }
  // If no job runs any more the handler itself writes.
  FullPipe full;
  fcntl(full.ends[1], F_SETFL, O_NONBLOCK);
  while (write(full.ends[1], "x", 1) == 1)
    ;
  fcntl(full.ends[1], F_SETFL, 0);
  Process done(job("shm", {"--steps", "2", "--linger", "60", "--errors", full.to()}));
  ASSERT_TRUE(done.sees("lingers"));
  done.signal(SIGTERM);
  EXPECT_EQ(done.wait(10), 143);
}

// A second SIGINT or SIGTERM does not wait, and says so; a signal after the end changes nothing.
TEST(Signals, SecondAndLate) {
  Process started(job("shm", {"--timeout", "60"}));
  ASSERT_TRUE(started.sees(amongSteps, 4));
  kill(pidOfRank(started.out(), 2), SIGSTOP);
  usleep(50'000);
  started.signal(SIGINT);
  usleep(300'000);
  started.signal(SIGTERM);
  EXPECT_EQ(started.wait(5), 143);
  EXPECT_EQ(started.errors(), "error: a second signal, SIGTERM: this process ends at once\n");

  Process done(job("shm", {"--steps", "2", "--linger", "60"}));
  ASSERT_TRUE(done.sees("lingers"));
  done.signal(SIGTERM);
  EXPECT_EQ(done.wait(5), 143);
  EXPECT_EQ(done.errors(), "job.par: SIGTERM came to " + idOf("par-run", done.pid()) + " after the job had ended\n");
}
