// Under --restart a rank that is lost is started again, and the job goes on.
#include "Harness.h"

#include "comm/shared/Diagnosis.h"

#include <regex>

using namespace par::test;

namespace {

/// Four ranks that par-run started.
struct Job : Process {
  explicit Job(std::vector<std::string> more = {}, const std::string &restarts = "-1")
      : Process(argumentsOf(std::move(more), restarts)) {}

  static std::vector<std::string> argumentsOf(std::vector<std::string> more, const std::string &restarts) {
    std::vector<std::string> arguments{jobTool, "-n", "4", "--timeout", "2", "--restart", restarts};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// Waits until all ranks have made a step for the `times`th time.
  void runs(size_t times = 1) { ASSERT_TRUE(sees(amongSteps, 4 * times)) << errors(); }
  /// Waits until another process of the rank than `lost` has made a step.
  void goesOn(int rank, pid_t lost) {
    auto runs = [&] { return ranksOf(out(), "rank %d runs as %d"); };
    for (auto begin = Clock::now(); runs()[rank] == lost && secondsSince(begin) < enough && wait(0.01) == -1;)
      ;
    ASSERT_NE(runs()[rank], lost) << errors();
  }
  pid_t pidOf(int rank) const { return pidOfRank(out(), rank); }
  /// The process that it was done to.
  pid_t harm(int rank, int signal = SIGKILL) const {
    pid_t pid = pidOf(rank);
    ::kill(pid, signal);
    return pid;
  }
  /// Asks the job to stop, and waits for its end.
  void stops() {
    signal(SIGTERM);
    EXPECT_EQ(wait(enough), 128 + SIGTERM) << errors();
    EXPECT_NE(out().find("stopped after step "), std::string::npos) << out();
  }
};

std::string lost(int rank, const std::string &how, const std::string &number = "") {
  return "job\\.par: rank " + std::to_string(rank) + " \\(dp " + std::to_string(rank) + "\\) " + how +
         " in step [0-9]+, at job/[a-z]+:[01]; starting it again" + number + "\n";
}
const std::string goesOn = "job\\.par: goes on after step [0-9]+, [0-9]+\\.[0-9]+ s after the loss\n";

} // namespace

// Any rank: also rank 0, which is the host of the rendezvous.
TEST(Restarts, KilledRank) {
  for (int victim : {2, 0}) {
    Job job({"--steps", "100"}, "5");
    job.runs();
    job.harm(victim);
    EXPECT_EQ(job.wait(enough), 0) << job.errors();
    EXPECT_NE(job.out().find("done after step 100"), std::string::npos) << job.out();
    expectMatch(job.errors(), lost(victim, "was killed by signal 9", " \\(1 of 5\\)") + goesOn);
  }
}

// A stopped rank is replaced when it has been stopped for a moment.
TEST(Restarts, StoppedRank) {
  Job job({"--steps", "100"});
  job.runs();
  job.harm(1, SIGSTOP);
  EXPECT_EQ(job.wait(enough), 0) << job.errors();
  expectMatch(job.errors(), lost(1, "was stopped for 0\\.[0-9] s") + goesOn);
}

// Ctrl-Z and fg: where all have been stopped, none is lost. As by a terminal, one signal is for all.
TEST(Restarts, StoppedTogether) {
  std::vector<std::string> command{"/usr/bin/setsid"};
  for (const std::string &argument : Job::argumentsOf({"--steps", "100"}, "-1"))
    command.push_back(argument);
  Process job(command);
  ASSERT_TRUE(job.sees(amongSteps, 4)) << job.errors();
  kill(-job.pid(), SIGSTOP);
  sleep(3);
  kill(-job.pid(), SIGCONT);
  EXPECT_EQ(job.wait(enough), 0);
  EXPECT_EQ(job.errors(), "");
}

// Two at once, all at once, and again and again.
TEST(Restarts, SeveralRanks) {
  Job job;
  job.runs();
  for (std::vector<int> ranks : {std::vector{1, 0}, {0, 1, 2, 3}, {3}}) {
    std::map<int, pid_t> lost;
    for (int rank : ranks)
      lost[rank] = job.harm(rank);
    for (auto [rank, pid] : lost)
      job.goesOn(rank, pid);
  }
  job.stops();
  EXPECT_EQ(count(job.errors(), "starting it again"), 7u) << job.errors();
}

// A rank that is killed while lost ranks are being started again: the job goes on all the same.
TEST(Restarts, KilledWhileMending) {
  Job job;
  job.runs();
  for (int i = 0; i < 12; ++i) {
    int first = i % 4, second = (i + 2) % 4;
    pid_t gone = job.harm(first);
    usleep(unsigned(1000 * i));
    pid_t goneToo = job.harm(second);
    job.goesOn(first, gone);
    job.goesOn(second, goneToo);
  }
  job.stops();
}

// --restart=1: the second loss ends the job.
TEST(Restarts, NoneLeft) {
  Job job({}, "1");
  job.runs();
  job.harm(2);
  job.runs(2);
  job.harm(3);
  EXPECT_EQ(job.wait(enough), 4);
  expectMatch(job.errors(), lost(2, "was killed by signal 9", " \\(1 of 1\\)") + goesOn +
                                "job\\.par: error: rank 3 \\(dp 3\\) was killed by signal 9 in step [0-9]+, at "
                                "job/[a-z]+:[01]; it is not started again: 1 of 1 restarts were made "
                                "\\(--restart=1\\)\n");
}

// A rank that dies three times in one step ends the job, which tells how.
TEST(Restarts, ThreeTimesInOneStep) {
  Job job({"--abort", "2"});
  EXPECT_EQ(job.wait(enough), 4);
  std::string how = "was killed by signal 6, at job/ring:1";
  size_t story = job.errors().find("job.par: error: rank 2 (dp 2) was lost three times in step 3: it " + how + "; " +
                                   how + "; " + how + "\n");
  EXPECT_NE(story, std::string::npos) << job.errors();
  EXPECT_EQ(count(job.errors(), "starting it again"), 2u) << job.errors();
}

// Errors that are no loss end the job at once, as without --restart.
TEST(Restarts, FailuresEndTheJob) {
  for (auto [flags, code, says] :
       {std::tuple(
            std::vector<std::string>{"--plan", "81d0ee@1"}, 1,
            "job\\.par: error: rank 1 holds plan 81d0ee, the 3 others 3f9c2a: its copy of the bundle is stale\n"),
        {std::vector<std::string>{"--throw", "no luck@1"}, 4, "job\\.par: error: no luck\n"},
        {std::vector<std::string>{"--exit", "5@2"}, 5, ""},
        {std::vector<std::string>{"--forget-barrier", "3"}, 4,
         "job\\.par: error: rank 0 is in broadcast \"start\", rank 3 in gather \"loss\"\n"},
        {std::vector<std::string>{"--vanish", "3@2"}, 4,
         "job\\.par: error: rank 2 \\(dp 2\\) ended with exit code 3 in step 3, without a word\n"},
        {std::vector<std::string>{"--vanish", "1@2"}, 1,
         "job\\.par: error: rank 2 \\(dp 2\\) ended with exit code 1 in step 3, without a word\n"}}) {
    Job job(flags);
    EXPECT_EQ(job.wait(10), code) << flags[0] << " " << job.errors();
    expectMatch(job.errors(), says);
  }
}

// Signals that ask the job to stop: in its midst, and while a rank is started again.
TEST(Restarts, AskedToStop) {
  for (int signal : {SIGINT, SIGTERM}) {
    Job job;
    job.runs();
    job.signal(signal);
    EXPECT_EQ(job.wait(10), 128 + signal) << job.errors();
    EXPECT_NE(job.out().find("stopped after step "), std::string::npos);
    expectMatch(job.errors(), "job\\.par: SIG(INT|TERM) came to par-run \\(pid [0-9]+\\): the job ended after step "
                              "[0-9]+; (nothing was saved|last save ckpt/[0-9]+)\n");
  }
  for (int milliseconds : {0, 2, 5, 10}) {
    Job job;
    job.runs();
    job.harm(1);
    usleep(unsigned(1000 * milliseconds));
    job.signal(SIGTERM);
    EXPECT_EQ(job.wait(10), 143) << job.errors();
    EXPECT_NE(job.out().find("stopped after step "), std::string::npos);
    EXPECT_EQ(count(job.errors(), "SIGTERM came to par-run"), 1u) << job.errors();
  }
}

// The second signal ends all at once, whatever the ranks do.
TEST(Restarts, AskedTwice) {
  Job job({"--busy", "30"});
  ASSERT_TRUE(job.sees("pid", 4));
  std::map<int, pid_t> ranks = ranksOf(job.out());
  job.harm(2, SIGSTOP);
  job.signal(SIGTERM);
  usleep(50'000);
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(5), 143) << job.errors();
  EXPECT_NE(job.errors().find("error: a second signal, SIGTERM: this process ends at once\n"), std::string::npos);
  for (auto [rank, pid] : ranks) {
    for (auto begin = Clock::now(); secondsSince(begin) < 5 && alive(pid);)
      usleep(10'000);
    EXPECT_FALSE(alive(pid)) << rank;
  }
}

// par-run itself killed: its ranks end with it.
TEST(Restarts, SupervisorKilled) {
  Job job;
  job.runs();
  std::map<int, pid_t> ranks = ranksOf(job.out());
  job.signal(SIGKILL);
  EXPECT_EQ(job.wait(5), 1000 + SIGKILL);
  for (auto [rank, pid] : ranks) {
    for (auto begin = Clock::now(); secondsSince(begin) < 5 && alive(pid);)
      usleep(10'000);
    EXPECT_FALSE(alive(pid)) << rank;
  }
}

// A way between ranks that breaks again and again, with no rank lost, is no way.
TEST(Restarts, NoProgress) {
  Launch launch = jobOf(Transport::shm, 2);
  launch.restarts = UINT64_MAX;
  std::string errors =
      errorsOf([&] { EXPECT_EQ(run(launch, [](Control &) -> int { throw Lost("the way is gone"); }), exitRankLost); });
  EXPECT_NE(
      errors.find("test.par: error: rank 0 has joined its job 7 times since step 0 and was stopped by a loss each "
                  "time: test.par: error: the way is gone\n"),
      std::string::npos)
      << errors;
}

// Communicators that cannot replace a rank.
TEST(Restarts, CommunicatorsThatCannot) {
  auto refusal = [](Transport transport) {
    Launch launch = jobOf(transport, 2);
    launch.restarts = 1;
    return errorsOf([&] { EXPECT_EQ(run(launch, [](Control &) { return 0; }), 2); });
  };
  EXPECT_EQ(refusal(Transport::inproc), "test.par: error: --restart does not work with --comm inproc: ranks are "
                                        "threads, which are lost together\n");
  EXPECT_EQ(refusal(Transport::mpi), "test.par: error: --restart does not work with --comm mpi: Open MPI 4 cannot "
                                     "replace a rank; give --comm tcp, which works under mpirun, too\n");
}
