// Jobs on several hosts: what ends them, and that each host says so. The hosts are this one by several names.
#include "Harness.h"

#include "comm/carrier/TcpCarrier.h"
#include "comm/carrier/TcpConnections.h"
#include "comm/shared/Diagnosis.h"
#include "comm/shared/Memory.h"
#include "par/comm/shared/Output.h"

#include <fcntl.h>
#include <regex>

using namespace par::test;

namespace {

/// Four ranks of a job, two on each of the hosts a and b, that run until they are told to end.
struct TwoHosts {
  explicit TwoHosts(std::vector<std::string> more = {}, std::string steps = "1000000", Environment environment = {},
                    Environment ofLast = {}, int processes = 4)
      : port(unusedPort()), processes(processes) {
    more.insert(more.end(), {"--steps", steps});
    for (int rank = 0; rank < 4; ++rank) {
      environment["PAR_HOST"] = rank < 2 ? "a" : "b";
      for (const auto &[name, value] : rank == 3 ? ofLast : Environment())
        environment[name] = value;
      ranks.push_back(std::make_unique<Process>(argumentsOf(rank, more), environment));
    }
  }
  std::vector<std::string> argumentsOf(int rank, const std::vector<std::string> &more) const {
    std::vector<std::string> arguments{jobTool,
                                       "--rank",
                                       std::to_string(rank),
                                       "--world",
                                       std::to_string(processes),
                                       "--ranks",
                                       "4",
                                       "--master",
                                       "127.0.0.1:" + std::to_string(port)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  void runs() {
    for (auto &rank : ranks)
      EXPECT_TRUE(rank->sees(amongSteps));
    usleep(500'000); // hosts tell each other of their steps from time to time
  }
  /// All ranks but `gone` end with `code`; the output of each host.
  std::vector<std::string> outputs(int code, int gone = -1) {
    std::vector<std::string> result(2);
    auto begin = Clock::now();
    double most = code ? 10 : enough; // a job that goes on may take as long as its steps do
    for (int rank = 0; rank < 4; ++rank) {
      int ended = ranks[size_t(rank)]->wait(most);
      if (rank != gone)
        EXPECT_EQ(ended, code) << "rank " << rank << ": " << ranks[size_t(rank)]->errors();
      result[rank / 2] += ranks[size_t(rank)]->errors();
    }
    EXPECT_LT(secondsSince(begin), most);
    return result;
  }
  int port, processes; ///< processes: with spares
  std::vector<std::unique_ptr<Process>> ranks;
};

} // namespace

// The carrier's bytes are all there, and the job ends as one on a single host does.
TEST(Hosts, JobEnds) {
  TwoHosts job({}, "30");
  for (const std::string &output : job.outputs(0))
    EXPECT_EQ(output, "");
  EXPECT_NE(job.ranks[0]->out().find("done after step 30"), std::string::npos);
}

// A killed rank is named once on each host, with its host: the leader of one, and a rank that leads none.
TEST(Hosts, KilledRank) {
  for (int victim : {3, 2, 1, 0}) {
    TwoHosts job;
    job.runs();
    job.ranks[size_t(victim)]->signal(SIGKILL);
    std::string host = victim < 2 ? "a" : "b";
    for (const std::string &output : job.outputs(4, victim)) {
      EXPECT_EQ(count(output, "error: "), 1u) << output;
      EXPECT_NE(output.find("rank " + std::to_string(victim) + " (dp " + std::to_string(victim) + ") on " + host +
                            " ended in step "),
                std::string::npos)
          << output;
      EXPECT_NE(output.find("noticed by rank "), std::string::npos) << output;
    }
  }
}

// A leader that is stopped takes its host's link with it: the others of its host name the rank, and end it; the other
// host sees that, or misses the whole host before.
TEST(Hosts, StoppedLeader) {
  TwoHosts job({"--timeout", "2"});
  job.runs();
  job.ranks[2]->signal(SIGSTOP);
  std::vector<std::string> outputs = job.outputs(4, 2);
  std::regex either(
      "error: (host b \\(ranks 2, 3\\) stopped answering in step [0-9]+: its network is down, or rank 2 "
      "there is stopped|rank 2 \\(dp 2\\) on b (ended|stopped answering) in step [0-9]+); noticed by rank ");
  EXPECT_TRUE(std::regex_search(outputs[0], either)) << outputs[0];
  EXPECT_NE(outputs[1].find("rank 2 (dp 2) on b stopped answering in step "), std::string::npos) << outputs[1];
}

// mpirun that has lost a host kills the ranks of the others: first by a signal that asks them to stop. A host that has
// been silent for two seconds is named then, whatever --timeout says.
TEST(Hosts, SilentHostAtASignal) {
  TwoHosts job({"--timeout", "60"});
  job.runs();
  for (size_t rank : {2, 3})
    job.ranks[rank]->signal(SIGSTOP);
  usleep(2'500'000);
  auto begin = Clock::now();
  job.ranks[1]->signal(SIGTERM);
  std::string output;
  for (size_t rank : {0, 1}) {
    EXPECT_EQ(job.ranks[rank]->wait(10), 4);
    output += job.ranks[rank]->errors();
  }
  EXPECT_LT(secondsSince(begin), 3);
  EXPECT_NE(output.find("error: host b (ranks 2, 3) stopped answering in step "), std::string::npos) << output;
  EXPECT_EQ(output.find("has been silent"), std::string::npos) << "not before 30 s: " << output;
  for (size_t rank : {2, 3})
    job.ranks[rank]->signal(SIGKILL);
}

namespace {

/// Host b is silent for 4 s, where 6 are admitted: what host a says of it.
std::string saidOfSilence(std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--timeout", "6"});
  TwoHosts job(flags);
  job.runs();
  auto toHost = [&](int signal) {
    for (size_t rank : {2, 3})
      job.ranks[rank]->signal(signal); // under --restart the supervisor, which must not see that its rank is stopped
    for (int rank : {2, 3})
      kill(pidOfRank(job.ranks[size_t(rank)]->out(), rank), signal);
  };
  toHost(SIGSTOP);
  usleep(4'000'000);
  toHost(SIGCONT);
  usleep(500'000);
  job.ranks[0]->signal(SIGTERM);
  for (auto &rank : job.ranks)
    EXPECT_EQ(rank->wait(10), 143) << rank->errors();
  return job.ranks[0]->errors();
}

} // namespace

// A silence of half the time is said, and once it is over the job goes on.
TEST(Hosts, SilenceIsSaid) {
  for (const auto &[flags, end] : {std::pair(std::vector<std::string>(), "the job ends"),
                                   {std::vector<std::string>{"--restart", "-1"}, "it counts as lost"}}) {
    std::string output = saidOfSilence(flags);
    EXPECT_EQ(count(output, "warning: host b (ranks 2, 3) has been silent for 3."), 1u) << output;
    EXPECT_NE(output.find(" s in step "), std::string::npos) << output;
    EXPECT_NE(output.find(std::string("; after 6.0 s ") + end + " (--timeout)"), std::string::npos) << output;
  }
}

// A rank that waits for no other is a witness by the instruction that it is at: it computes, or is inside MPI.
TEST(Hosts, WitnessThatWaitsForNobody) {
  Mapping memory = mapPrivate(SharedState::bytesFor(2));
  SharedState &board = *SharedState::make(memory.bytes.data(), 2);
  EXPECT_NE(lostRank(board, 0, "ended", 0.1).find("noticed by par-run, after 0.1 s"), std::string::npos);
  board[1].entry.set("step");
  board[1].instruction.set("s0/train.forward:3");
  EXPECT_NE(lostRank(board, 0, "ended", 0.1).find("noticed by rank 1 in step, s0/train.forward:3, after 0.1 s"),
            std::string::npos);
}

// The step of a lost rank of another host, of which the last news is old, is that of the rank that waits for it here.
TEST(Hosts, StepOfALostRankElsewhere) {
  Mapping memory = mapPrivate(SharedState::bytesFor(3));
  SharedState &board = *SharedState::make(memory.bytes.data(), 3);
  board.startStep(2, 472);
  board[2].remote.store(1);
  board.startStep(0, 476);
  EXPECT_NE(lostRank(board, 2, "ended", 0.1).find("ended in step 472; noticed by par-run"), std::string::npos);
  board[0].wait({{2}, "all_gather", "step"});
  EXPECT_NE(lostRank(board, 2, "ended", 0.1).find("ended in step 476; noticed by rank 0"), std::string::npos);
  // The word of other hosts about their ranks is as old, and a rank of this host has said itself where it was.
  board[0].remote.store(1);
  EXPECT_NE(lostRank(board, 2, "ended", 0.1).find("ended in step 472; noticed by rank 0"), std::string::npos);
  board[0].remote.store(0);
  board[2].remote.store(0);
  EXPECT_NE(lostRank(board, 2, "ended", 0.1).find("ended in step 472; noticed by rank 0"), std::string::npos);
}

// Any rank may be asked to stop: all end after the same step, with the signal's code.
TEST(Hosts, StopIsAgreedOn) {
  for (int asked : {0, 3}) {
    TwoHosts job;
    job.runs();
    job.ranks[size_t(asked)]->signal(SIGTERM);
    for (const std::string &output : job.outputs(143))
      EXPECT_NE(output.find("SIGTERM came to rank " + std::to_string(asked)), std::string::npos) << output;
    EXPECT_NE(job.ranks[0]->out().find("stopped after step "), std::string::npos);
  }
}

// A rank with another bundle, and one that ends by itself, are named on both hosts.
TEST(Hosts, RanksThatFail) {
  TwoHosts stale({"--plan", "81d0eeee@3"});
  for (const std::string &output : stale.outputs(1))
    EXPECT_NE(output.find("rank 3 on b holds plan 81d0ee, the 3 others 3f9c2a: its copy of the bundle is stale"),
              std::string::npos)
        << output;
  TwoHosts thrown({"--throw", "no such file@2"});
  for (const std::string &output : thrown.outputs(4))
    EXPECT_NE(output.find("error: no such file"), std::string::npos) << output;
}

// Under --restart a rank that is lost is started again, whichever it is: the leader of a host, and rank 0.
TEST(Hosts, LostRankIsStartedAgain) {
  for (auto [victim, signal] : {std::pair(3, SIGKILL), {2, SIGKILL}, {1, SIGSTOP}, {0, SIGKILL}, {2, SIGSTOP}}) {
    TwoHosts job({"--restart", "-1", "--timeout", "2"}, "300");
    job.runs();
    kill(pidOfRank(job.ranks[size_t(victim)]->out(), victim), signal);
    std::vector<std::string> outputs = job.outputs(0);
    std::string rank = "job.par: rank " + std::to_string(victim) + " (dp " + std::to_string(victim) + ") was ";
    EXPECT_EQ(count(outputs[victim / 2], rank), 1u) << outputs[victim / 2];
    EXPECT_EQ(count(outputs[victim / 2], "starting it again\n"), 1u) << outputs[victim / 2];
    EXPECT_EQ(count(outputs[0], "job.par: goes on after step "), 1u) << outputs[0];
    EXPECT_EQ(count(outputs[0] + outputs[1], "error"), 0u) << outputs[0] << outputs[1];
  }
}

// A rank that is lost with its supervisor is named at once by rank 0's host, and by its own, whoever has noticed it.
TEST(Hosts, LostSupervisor) {
  for (size_t victim : {3, 2, 1}) {
    TwoHosts job({"--restart", "-1", "--timeout", "2", "--join-timeout", "3"});
    job.runs();
    job.ranks[victim]->signal(SIGKILL);
    auto begin = Clock::now();
    std::string name = std::to_string(victim), waits = "; it is waited for (--join-timeout)\n", output;
    if (victim == 1)
      EXPECT_TRUE(job.ranks[0]->says(waits, 2)) << "after " << secondsSince(begin) << " s";
    for (size_t rank : {0, 1})
      if (rank != victim)
        EXPECT_EQ(job.ranks[rank]->wait(10), 4) << job.ranks[rank]->errors();
    output = job.ranks[0]->errors();
    std::string where = ") on " + std::string(victim == 1 ? "a" : "b") + " ended in step ";
    EXPECT_NE(output.find("job.par: rank " + name + " (dp " + name + where), std::string::npos) << output;
    EXPECT_EQ(count(output, waits), 1u) << output;
    EXPECT_NE(output.find("error: only 3 of 4 ranks came in time; missing: " + name + "\n"), std::string::npos)
        << output;
  }
}

// On the only host of a job, too: by one of the other ranks. Under --shrink it is that which waits.
TEST(Hosts, LostSupervisorOfOneHost) {
  for (const char *flag : {"--join-timeout", "--shrink"}) {
    int port = unusedPort();
    std::vector<std::unique_ptr<Process>> ranks;
    for (int rank = 0; rank < 3; ++rank)
      ranks.push_back(std::make_unique<Process>(
          std::vector<std::string>{jobTool, "--rank", std::to_string(rank), "--world", "3", "--ranks", "3", "--master",
                                   "127.0.0.1:" + std::to_string(port), "--restart", "-1", "--join-timeout", "3",
                                   "--steps", "1000000", flag, "3"}));
    for (auto &rank : ranks)
      EXPECT_TRUE(rank->sees(amongSteps));
    ranks[2]->signal(SIGKILL);
    std::string output;
    for (size_t rank : {0, 1}) {
      EXPECT_EQ(ranks[rank]->wait(10), 4) << ranks[rank]->errors();
      output += ranks[rank]->errors();
    }
    EXPECT_EQ(count(output, "job.par: rank 2 (dp 2) ended in step "), 1u) << output;
    EXPECT_EQ(count(output, "; it is waited for (" + std::string(flag) + ")\n"), 1u) << output;
  }
}

// Rank 0's host, of which nothing is left, is named by the others, and waited for until --join-timeout, also where
// other ranks are waited for no longer than --shrink.
TEST(Hosts, LostFirstHost) {
  for (std::vector<std::string> shrink : {std::vector<std::string>(), {"--shrink", "1"}}) {
    shrink.insert(shrink.end(), {"--restart", "-1", "--timeout", "2", "--join-timeout", "3"});
    TwoHosts job(shrink);
    job.runs();
    for (size_t rank : {0, 1})
      job.ranks[rank]->signal(SIGKILL);
    auto begin = Clock::now();
    std::string output;
    for (size_t rank : {2, 3}) {
      EXPECT_EQ(job.ranks[rank]->wait(10), 4) << job.ranks[rank]->errors();
      output += job.ranks[rank]->errors();
      EXPECT_NE(output.find("error: rank " + std::to_string(rank) + " found no rank 0 of this job at "),
                std::string::npos)
          << output;
    }
    EXPECT_GT(secondsSince(begin), 2.9);
    EXPECT_EQ(count(output, "; it is waited for (--join-timeout)\n"), 1u) << output;
  }
}

namespace {

/// Ends both processes of a host and of its ranks. Stopped first: none of them tells others of another one's end.
void loseHost(TwoHosts &job, const std::array<size_t, 2> &ranks) {
  std::vector<pid_t> lost;
  for (size_t rank : ranks)
    for (const auto &[number, process] : ranksOf(job.ranks[rank]->out()))
      lost.push_back(process);
  for (int signal : {SIGSTOP, SIGKILL}) {
    for (size_t rank : ranks)
      job.ranks[rank]->signal(signal);
    for (pid_t process : lost)
      kill(process, signal);
  }
}

void startAgain(TwoHosts &job, const std::array<size_t, 2> &ranks, const std::vector<std::string> &flags,
                const char *host) {
  for (size_t rank : ranks)
    job.ranks[rank] = std::make_unique<Process>(job.argumentsOf(int(rank), flags), Environment{{"PAR_HOST", host}});
}

} // namespace

// A host of which nothing is left is waited for until its ranks are started again, there or on another host.
TEST(Hosts, LostHostIsWaitedFor) {
  for (const char *host : {"b", "c"}) {
    std::vector<std::string> flags{"--restart", "-1", "--timeout", "2", "--steps", "300"};
    TwoHosts job(flags, "300");
    job.runs();
    loseHost(job, {2, 3});
    usleep(500'000);
    startAgain(job, {2, 3}, flags, host);
    std::vector<std::string> outputs = job.outputs(0);
    EXPECT_NE(outputs[0].find(" on b ended in step "), std::string::npos) << outputs[0];
    EXPECT_NE(outputs[0].find("; it is waited for (--join-timeout)\n"), std::string::npos) << outputs[0];
    EXPECT_EQ(count(outputs[0], "job.par: goes on after step "), 1u) << outputs[0];
  }
}

// So is that of rank 0, whose ranks are started again where its address leads. Its new rendezvous takes the number of
// the attempt from those that have lived on, a second time, too, and under --shrink.
TEST(Hosts, FirstHostComesAgain) {
  for (std::vector<std::string> flags : {std::vector<std::string>(), {"--shrink", "30"}}) {
    flags.insert(flags.end(), {"--restart", "-1", "--timeout", "2", "--steps", "600"});
    TwoHosts job(flags, "600");
    job.runs();
    for (const char *host : {"a", "c"}) {
      loseHost(job, {0, 1});
      usleep(300'000);
      startAgain(job, {0, 1}, flags, host);
      EXPECT_TRUE(job.ranks[0]->says("job.par: goes on after step ", 8)) << job.ranks[0]->errors();
      EXPECT_TRUE(job.ranks[0]->sees(amongSteps)) << job.ranks[0]->errors();
    }
    std::vector<std::string> outputs = job.outputs(0);
    EXPECT_EQ(count(outputs[1], "; it is waited for (--join-timeout)\n"), 2u) << outputs[1];
  }
}

namespace {

/// Two hosts, and three spares on a third one.
struct WithSpares : TwoHosts {
  explicit WithSpares(const std::string &steps) : TwoHosts(flags, steps, {}, {}, 7) {
    std::vector<std::string> more = flags;
    more.insert(more.end(), {"--steps", steps});
    for (int number = 4; number < processes; ++number)
      spares.push_back(std::make_unique<Process>(argumentsOf(number, more), Environment{{"PAR_HOST", "c"}}));
  }
  static inline const std::vector<std::string> flags{"--restart", "-1", "--timeout", "2", "--spares", "3"};
  std::vector<std::unique_ptr<Process>> spares;
};

} // namespace

// Spares that wait take the place of a host of which nothing is left; one that is lost before takes none.
TEST(Hosts, SparesTakeThePlaceOfAHost) {
  WithSpares job("300");
  job.runs();
  job.spares[0]->signal(SIGKILL);
  usleep(200'000);
  for (size_t rank : {2, 3})
    job.ranks[rank]->signal(SIGKILL);
  for (size_t rank : {0, 1})
    EXPECT_EQ(job.ranks[rank]->wait(enough), 0) << job.ranks[rank]->errors();
  std::string output = job.ranks[0]->errors();
  for (auto [spare, rank] : {std::pair("spare 5 (pid ", " on c) takes the place of rank 2\n"),
                             {"spare 6 (pid ", " on c) takes the place of rank 3\n"}}) {
    EXPECT_EQ(count(output, spare), 1u) << output;
    EXPECT_EQ(count(output, rank), 1u) << output;
  }
  EXPECT_EQ(count(output, "job.par: goes on after step "), 1u) << output;
  EXPECT_NE(job.ranks[0]->out().find("done after step 300"), std::string::npos) << output;
  for (size_t spare : {1, 2})
    EXPECT_EQ(job.spares[spare]->wait(10), 0) << job.spares[spare]->errors();
}

// A host that comes back after spares have taken its place is told so. A spare that is not needed ends with the job.
TEST(Hosts, HostThatComesBackTooLate) {
  WithSpares job("1000000");
  job.runs();
  std::vector<pid_t> stopped;
  for (int rank : {2, 3})
    for (pid_t pid : {ranksOf(job.ranks[size_t(rank)]->out())[rank], job.ranks[size_t(rank)]->pid()})
      stopped.push_back(pid);
  for (pid_t pid : stopped)
    kill(pid, SIGSTOP);
  EXPECT_TRUE(job.spares[1]->sees("rank 3 pid"));
  for (pid_t pid : stopped)
    kill(pid, SIGCONT);
  for (size_t rank : {2, 3}) {
    EXPECT_EQ(job.ranks[rank]->wait(20), 4);
    EXPECT_NE(job.ranks[rank]->errors().find(
                  " on b) comes back too late: a spare has taken its place, and has the newer state\n"),
              std::string::npos)
        << job.ranks[rank]->errors();
  }
  job.ranks[0]->signal(SIGTERM);
  for (Process *process : {job.ranks[0].get(), job.ranks[1].get(), job.spares[0].get(), job.spares[1].get()})
    EXPECT_EQ(process->wait(10), 143) << process->errors();
  EXPECT_EQ(job.spares[2]->wait(10), 0);
  EXPECT_EQ(job.spares[2]->out() + job.spares[2]->errors(), "");
}

// A rank that is started although the job has another process for it is told so, and once the job has ended, that no
// rank 0 is left.
TEST(Hosts, RankWhosePlaceIsTaken) {
  TwoHosts job({"--restart", "-1", "--timeout", "2", "--join-timeout", "4"});
  job.runs();
  Process late(job.argumentsOf(2, {"--restart", "-1", "--join-timeout", "4", "--steps", "1000000"}),
               Environment{{"PAR_HOST", "b"}});
  const char *taken = ": another process is rank 2 of the job, and this one takes the place if that is lost";
  EXPECT_TRUE(late.says(taken, 4)) << late.errors();
  EXPECT_EQ(late.wait(10), 4);
  EXPECT_NE(late.errors().find("error: rank 2 found no place in the job at 127.0.0.1:"), std::string::npos)
      << late.errors();
  EXPECT_EQ(count(late.errors(), taken), 2u) << late.errors();
  Process last(job.argumentsOf(2, {"--restart", "-1", "--join-timeout", "4", "--steps", "1000000"}),
               Environment{{"PAR_HOST", "b"}});
  EXPECT_TRUE(last.says(taken, 4)) << last.errors();
  job.ranks[0]->signal(SIGTERM);
  job.outputs(143);
  EXPECT_EQ(last.wait(10), 4);
  EXPECT_NE(last.errors().find("error: rank 2 found no rank 0 of this job at 127.0.0.1:"), std::string::npos);
  EXPECT_EQ(count(last.errors(), taken), 1u) << last.errors();
  EXPECT_EQ(count(last.errors(), "who listens there"), 0u) << last.errors();
}

// Ways of starting in which spares cannot wait.
TEST(Hosts, SparesThatCannot) {
  Launch launch = jobOf(Transport::shm, 2);
  launch.spares = 1;
  auto refusal = [&] { return errorsOf([&] { EXPECT_EQ(run(launch, [](Control &) { return 0; }), 2); }); };
  EXPECT_EQ(refusal(), "test.par: error: --spares needs --restart\n");
  launch.restarts = 1;
  EXPECT_EQ(refusal(), "test.par: error: --spares needs a launcher, or --rank and --world\n");
  launch.spares = 0;
  launch.mirror = true;
  EXPECT_EQ(refusal(), "test.par: error: --mirror needs a launcher, or --rank and --world\n");
  launch.n.reset();
  launch.rank = 0;
  launch.world = 2;
  launch.spares = 2;
  launch.master = "127.0.0.1:1";
  EXPECT_EQ(refusal(), "test.par: error: --spares=2 leaves no rank: --world is 2\n");
}

// A rank that is lost three times in one step ends the job, and each host tells the story.
TEST(Hosts, ThreeTimesInOneStep) {
  for (const char *victim : {"3", "0"}) {
    TwoHosts job({"--restart", "-1", "--timeout", "2", "--abort", victim});
    for (const std::string &output : job.outputs(4)) {
      EXPECT_NE(output.find("error: rank " + std::string(victim) + " (dp " + victim +
                            ") was lost three times in step 3: "
                            "it was killed by signal 6, at job/ring:1; was killed by signal 6"),
                std::string::npos)
          << output;
    }
  }
}

// A signal before all have come ends the rank that got it at once.
TEST(Hosts, AskedBeforeTheFirstStep) {
  Process rank = byHand(1, 2, unusedPort(), {"--restart", "-1"});
  ASSERT_TRUE(handles(rank.pid(), SIGTERM));
  rank.signal(SIGTERM);
  EXPECT_EQ(rank.wait(5), 143) << rank.errors();
  EXPECT_NE(rank.errors().find("job.par: SIGTERM came to rank 1 (pid "), std::string::npos) << rank.errors();
  EXPECT_NE(rank.errors().find(") before the first step: the job ended, and there was nothing to save\n"),
            std::string::npos)
      << rank.errors();
}

// --restart=1: each host says why the second loss ends the job.
TEST(Hosts, NoRestartLeft) {
  TwoHosts job({"--restart", "1", "--timeout", "2"});
  job.runs();
  kill(pidOfRank(job.ranks[3]->out(), 3), SIGKILL);
  for (auto &rank : job.ranks)
    EXPECT_TRUE(rank->sees(amongSteps, 2));
  kill(pidOfRank(job.ranks[1]->out(), 1), SIGKILL);
  std::vector<std::string> outputs = job.outputs(4);
  for (const std::string &output : outputs) {
    EXPECT_NE(output.find("error: rank 1 (dp 1) "), std::string::npos) << output;
    EXPECT_NE(output.find("; 1 of 1 restarts were made (--restart=1)\n"), std::string::npos) << output;
  }
}

// --comm mpi without MPI, with another library, with two versions, and where MPI knows other ranks: each is said on
// both hosts.
TEST(Hosts, MpiThatDoesNotFit) {
  auto saidOnBoth = [](Environment environment, Environment ofLast, const std::string &expected) {
    TwoHosts job({"--comm", "mpi"}, "5", std::move(environment), std::move(ofLast));
    for (const std::string &output : job.outputs(4))
      EXPECT_NE(output.find(expected), std::string::npos) << output;
  };
  Environment stub{{"PAR_MPI_LIBRARY", PAR_STUB_MPI}};
  saidOnBoth({{"PAR_MPI_LIBRARY", "libnone.so"}}, {},
             "error: --comm mpi cannot open libnone.so: libnone.so: cannot open shared object file: No such file or "
             "directory; install Open MPI 4, name it in PAR_MPI_LIBRARY, or give --comm tcp");
  Environment mpich = stub, failing = stub;
  mpich["PAR_STUB_MPI_VERSION"] = "MPICH Version: 4.0.2";
  saidOnBoth(mpich, {},
             "error: --comm mpi needs Open MPI 4, and " PAR_STUB_MPI " is another library: MPICH Version: 4.0.2");
  saidOnBoth({{"PAR_MPI_LIBRARY", "libm.so.6"}}, {},
             "error: --comm mpi needs Open MPI 4, and libm.so.6 is another library: no MPI_Get_library_version");
  saidOnBoth(
      stub, {{"PAR_STUB_MPI_VERSION", "Open MPI v4.0.3, package: other"}},
      "error: rank 3 on b has Open MPI 4.0.3, rank 0 on a has Open MPI 4.1.4; --comm mpi needs one version on all "
      "hosts");
  saidOnBoth(stub, {}, " of 4, and rank 0 of 1 to MPI; start it by mpirun or srun, or give --comm tcp");
  failing["PAR_STUB_MPI_FAILS"] = "1";
  saidOnBoth(failing, {}, "error: MPI_Init_thread of MPI failed: MPI_ERR_OTHER: known error not in list");
}

// Under mpirun, if it is installed: the same job over Open MPI.
TEST(Hosts, UnderMpirun) {
  if (access("/usr/bin/mpirun", X_OK) != 0)
    GTEST_SKIP() << "needs mpirun";
  std::string rank = "PAR_HOST=host$((OMPI_COMM_WORLD_RANK / 2)) exec " + jobTool + " --comm mpi --steps 50";
  Process job({"/usr/bin/mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", "/bin/sh", "-c", rank});
  EXPECT_EQ(job.wait(enough), 0) << job.errors();
  EXPECT_NE(job.out().find("done after step 50"), std::string::npos);
}

// Under --restart Open MPI starts the supervisors, and their ranks are no processes
// of its own.
TEST(Hosts, LostRankUnderMpirun) {
  if (access("/usr/bin/mpirun", X_OK) != 0)
    GTEST_SKIP() << "needs mpirun";
  std::string rank =
      "PAR_HOST=host$((OMPI_COMM_WORLD_RANK / 2)) exec " + jobTool + " --comm tcp --restart -1 --timeout 2";
  Process job({"/usr/bin/mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "4", "/bin/sh",
               "-c", rank});
  ASSERT_TRUE(job.sees(amongSteps, 4)) << job.errors();
  kill(pidOfRank(job.out(), 3), SIGKILL);
  EXPECT_TRUE(job.sees(amongSteps, 8)) << job.errors();
  job.signal(SIGTERM);
  job.wait(enough);
  EXPECT_NE(job.errors().find("job.par: rank 3 (dp 3) was killed by signal 9 in step "), std::string::npos)
      << job.errors();
  EXPECT_NE(job.errors().find("job.par: goes on after step "), std::string::npos) << job.errors();
  EXPECT_EQ(job.errors().find("error"), std::string::npos) << job.errors();
}

// A connection that ends is an error once it has been missed for three seconds.
TEST(Hosts, BrokenConnection) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  TcpCarrier carrier({-1, ends[0]});
  close(ends[1]);
  for (auto begin = Clock::now(); secondsSince(begin) < 0.1;)
    carrier.poll();
  std::byte room[8];
  HostCarrier::Ticket ticket = carrier.receive(1, 7, room);
  auto begin = Clock::now();
  try {
    while (secondsSince(begin) < 10)
      carrier.poll();
    ADD_FAILURE() << "nothing was said";
  } catch (const std::runtime_error &error) {
    EXPECT_STREQ(error.what(), "the connection to rank 1 broke: it has hung up");
  }
  EXPECT_GT(secondsSince(begin), 2);
  EXPECT_FALSE(*ticket);
}

// A line that no reader takes holds up its writer for a time only: others wait to hear that the job has ended.
TEST(Hosts, LineThatIsNotRead) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  std::string full(1 << 20, 'x');
  EXPECT_GT(write(ends[1], full.data(), full.size()), 0);
  auto begin = Clock::now();
  EXPECT_FALSE(writeOutput(ends[1], "line\n", 300'000'000));
  EXPECT_EQ(errno, ETIMEDOUT);
  EXPECT_GT(secondsSince(begin), 0.2);
  EXPECT_LT(secondsSince(begin), 2);
  close(ends[0]);
  close(ends[1]);
}

// Ranks that cannot show each other the job's secret are not connected.
TEST(Hosts, NoWay) {
  std::string errors = errorsOf([] {
    EXPECT_EQ(run(jobOf(Transport::inproc, 2),
                  [](Control &control) {
                    HostMap hosts{{"a", "b"}, {0, 1}};
                    connectByTcp({control, hosts, control.rank() ? "one key" : "another", "127.0.0.1", 1});
                    return 0;
                  }),
              exitRankLost);
  });
  EXPECT_NE(errors.find("error: rank 1 on b found no way to rank 0 on a at 127.0.0.1:"), std::string::npos) << errors;
  EXPECT_NE(errors.find("; is a firewall between them?"), std::string::npos) << errors;
}
