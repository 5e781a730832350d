// A rank that dies or stops ends the job: soon, on all ranks, with a message that names it, without leftovers.
#include "Process.h"
#include "Rendezvous.h"
#include "TemporaryFolder.h"
#include "TrainingToy.h"

#include <algorithm>
#include <arpa/inet.h>
#include <dirent.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <regex>
#include <set>
#include <sstream>

using namespace par::test;

namespace {

int freePort() {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(fd, reinterpret_cast<sockaddr *>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

Environment torchrun(int rank, int world, int port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

/// Our shared memory files and local sockets that still exist.
std::set<std::string> leftovers() {
  std::set<std::string> found;
  if (DIR *folder = opendir("/dev/shm")) {
    while (dirent *entry = readdir(folder))
      if (std::string(entry->d_name).find("par") != std::string::npos)
        found.insert(entry->d_name);
    closedir(folder);
  }
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);)
    if (line.find("@par-") != std::string::npos)
      found.insert(line.substr(line.find("@par-")));
  return found;
}

/// Names of other tests, which run at the same time, from before this one began.
const std::set<std::string> ofOthers = leftovers();

/// "… rank 3 (dp 3) ended by signal 9 in step 12; noticed by …"
std::string lostPattern(int rank, const std::string &how) {
  return "\\S+: error: rank " + std::to_string(rank) + " (\\(([a-z]+ [0-9]+(, )?)+\\) )?" + how +
         " (in step [0-9]+|before its first step); noticed by (rank [0-9]+ in [a-z_]+, [^;]+|par-run), after "
         "[0-9]+\\.[0-9] s; (nothing was saved|last save \\S+/[0-9]+; go on with --resume auto)\n";
}

/// Seconds until the ranks had ended.
double expectGone(const std::map<int, pid_t> &ranks, Clock::time_point begin) {
  while (std::any_of(ranks.begin(), ranks.end(), [](auto &entry) { return alive(entry.second); }) &&
         secondsSince(begin) < 10)
    usleep(10'000);
  for (auto [rank, pid] : ranks)
    EXPECT_FALSE(alive(pid)) << "rank " << rank;
  double seconds = secondsSince(begin);
  // A file or socket that came after the ranks had ended is another test's, too; one that came meanwhile goes with
  // that test.
  std::set<std::string> left = leftovers();
  while (!left.empty() && secondsSince(begin) < 2 * enough) {
    usleep(50'000);
    std::set<std::string> held = leftovers();
    std::erase_if(left, [&](const std::string &name) { return !held.count(name) || ofOthers.count(name); });
  }
  EXPECT_EQ(left, std::set<std::string>());
  return seconds;
}

std::vector<std::string> jobOf(int world, const std::string &timeout) {
  std::string n = std::to_string(world);
  return {jobTool, "-n", n, "--ranks", n, "--timeout", timeout};
}

/// Waits until a job has forked all its ranks; their pids by rank.
std::map<int, pid_t> childrenOf(pid_t parent, size_t world) {
  std::string path = "/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children";
  std::map<int, pid_t> ranks;
  for (auto begin = Clock::now(); ranks.size() < world && secondsSince(begin) < 20; usleep(1000)) {
    ranks.clear();
    std::ifstream file(path);
    for (pid_t pid; file >> pid;)
      ranks.emplace(int(ranks.size()), pid);
  }
  return ranks;
}

/// Lets a job run for a while, sends one of its ranks `signal`, and expects the end of all. Seconds until
/// then.
double trial(const std::vector<std::string> &command, size_t world, int rank, int signal, int milliseconds) {
  SCOPED_TRACE("signal " + std::to_string(signal) + " to rank " + std::to_string(rank) + " after " +
               std::to_string(milliseconds) + " ms");
  Process job(command);
  std::map<int, pid_t> ranks = childrenOf(job.pid(), world);
  EXPECT_EQ(ranks.size(), world) << job.errors();
  if (ranks.size() != world)
    return 0;
  usleep(1000 * unsigned(milliseconds));
  auto begin = Clock::now();
  kill(ranks[rank], signal);
  EXPECT_EQ(job.wait(10), 4);
  expectMatch(job.errors(), lostPattern(rank, signal == SIGKILL ? "ended by signal 9" : "stopped answering"));
  return expectGone(ranks, begin);
}

} // namespace

TEST(Failures, KilledRank) {
  trial(jobOf(4, "5"), 4, 2, SIGKILL, 300);
  trial(jobOf(4, "5"), 4, 0, SIGKILL, 300);
}

TEST(Failures, StoppedRank) { trial(jobOf(4, "2"), 4, 1, SIGSTOP, 300); }

// From the moment of the fork on a rank is named, before it has met anybody too.
TEST(Failures, LostAtTheStart) {
  for (int milliseconds : {0, 5}) {
    trial(jobOf(4, "2"), 4, 3, SIGKILL, milliseconds);
    trial(jobOf(4, "2"), 4, 0, SIGSTOP, milliseconds);
  }
}

// par-run itself, with random ranks killed and stopped at random moments; its saves are whole, and the next run leaves
// no part of a save. PAR_LONG=1 (the target `kills`): forty trials with the default time-out; else four.
// PAR_KILLS="RANKS par-run BUNDLE ..." kills ranks of that command of so many instead, which must run for a minute.
TEST(Failures, ParRunRandomTrials) {
  const char *isLong = std::getenv("PAR_LONG"), *given = std::getenv("PAR_KILLS");
  bool all = isLong && std::string(isLong) == "1";
  TemporaryFolder folder;
  std::string bundle = folder / "toy.par", text = folder / "text", saves = folder / "ckpt";
  ASSERT_TRUE(par::format::writeBundle(bundle, par::toy::training(8)));
  std::ofstream(text) << std::string(2000, 'b');
  std::vector<std::string> command{PAR_TEST_BIN "/par-run", bundle, "--init", "--text", text};
  std::vector<std::string> more{"--steps",      "1000000", "--save",    saves,
                                "--save-every", "20",      "--timeout", all ? "5" : "2"};
  command.insert(command.end(), more.begin(), more.end());
  size_t world = 8;
  if (given) {
    std::istringstream words(given);
    ASSERT_TRUE(words >> world) << "PAR_KILLS begins with the number of ranks";
    command.assign(std::istream_iterator<std::string>(words), {});
  }
  std::mt19937 random(12345);
  double slowest = 0;
  int trials = 0;
  for (; trials < (all ? 40 : 4); ++trials) {
    double seconds = trial(command, world, int(random() % world), trials % 2 ? SIGSTOP : SIGKILL,
                           20 + int(random() % 1000) * (given ? 5 : 1));
    slowest = std::max(slowest, seconds);
    if (given || !std::filesystem::exists(saves))
      continue;
    Process resumed({PAR_TEST_BIN "/par-run", bundle, "--init", "--text", text, "--steps", "1", "--save", saves,
                     "--resume", "auto"});
    EXPECT_EQ(resumed.wait(enough), 0) << resumed.errors();
    std::filesystem::remove_all(saves); // the next one starts from the beginning, and takes no other run's place
  }
  std::printf("%d ranks killed or stopped; the slowest job had ended after %.1f s\n", trials, slowest);
}

// Exchanges of the control plane that do not match are named.
TEST(Failures, DifferentExchanges) {
  Process job({jobTool, "-n", "4", "--forget-barrier", "3"});
  ASSERT_TRUE(job.sees("pid", 4));
  EXPECT_EQ(job.wait(10), 4);
  EXPECT_EQ(job.errors(), "job.par: error: rank 0 is in broadcast \"start\", rank 3 in gather \"loss\"\n");
}

// The parent's end is the end of all ranks.
TEST(Failures, KilledParent) {
  Process job({jobTool, "-n", "4"});
  ASSERT_TRUE(job.sees(amongSteps, 4));
  auto begin = Clock::now();
  job.signal(SIGKILL);
  expectGone(ranksOf(job.out()), begin);
}

TEST(Failures, StoppedParent) {
  Process job({jobTool, "-n", "4", "--timeout", "2"});
  ASSERT_TRUE(job.sees(amongSteps, 4));
  auto begin = Clock::now();
  job.signal(SIGSTOP);
  EXPECT_EQ(job.wait(10), 1000 + SIGKILL);
  expectMatch(job.errors(), "job\\.par: error: par-run \\(pid [0-9]+\\) stopped answering; noticed by rank [0-9] "
                            "after [0-9]\\.[0-9] s\n");
  expectGone(ranksOf(job.out()), begin);
}

// Under a launcher there is no parent: ranks watch each other, rank 0 included, which hosts the rendezvous.
TEST(Failures, LaunchedRanksWatchEachOther) {
  for (auto [victim, signal] : {std::pair(0, SIGKILL), {0, SIGSTOP}, {2, SIGKILL}, {2, SIGSTOP}}) {
    SCOPED_TRACE("signal " + std::to_string(signal) + " to rank " + std::to_string(victim));
    int port = freePort();
    std::vector<std::unique_ptr<Process>> jobs;
    for (int rank = 0; rank < 3; ++rank)
      jobs.push_back(std::make_unique<Process>(std::vector<std::string>{jobTool, "--ranks", "3", "--timeout", "2"},
                                               torchrun(rank, 3, port)));
    std::map<int, pid_t> ranks;
    for (auto &job : jobs) {
      ASSERT_TRUE(job->sees(amongSteps)) << job->errors();
      ranks.merge(ranksOf(job->out()));
    }
    auto begin = Clock::now();
    kill(ranks[victim], signal);
    std::string errors;
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(jobs[rank]->wait(10), rank == victim ? 1000 + SIGKILL : 4);
      errors += jobs[rank]->errors();
    }
    expectMatch(errors, lostPattern(victim, signal == SIGKILL ? "ended" : "stopped answering"));
    expectGone(ranks, begin);
  }
}

// Ranks that were started one by one may be watched one by one: each reports an end of the job before its first step.
TEST(Failures, SaidOnAllSides) {
  for (auto [flags, code, says] :
       {std::tuple(std::vector<std::string>{"--plan", "81d0ee@1"}, 1, "rank 1 holds plan 81d0ee, "),
        {std::vector<std::string>{"--throw", "no luck@1"}, 4, "no luck\n"},
        {std::vector<std::string>{"--exit", "5@1"}, 5, ""}}) {
    int port = unusedPort();
    Process first = byHand(0, 2, port, flags), second = byHand(1, 2, port, flags);
    EXPECT_EQ(first.wait(10), code) << first.errors();
    EXPECT_EQ(second.wait(10), code) << second.errors();
    if (*says) {
      EXPECT_EQ(first.errors().find(std::string("job.par: error: ") + says), 0u) << first.errors();
      EXPECT_EQ(second.errors(), first.errors());
    } else {
      EXPECT_EQ(first.errors(), "job.par: error: rank 1 ended with exit code 5\n");
    }
  }
}

// A rank that ends by itself ends the job with its code; an exception is said once.
TEST(Failures, RankEndsByItself) {
  Process coded({jobTool, "-n", "4", "--exit", "5@2"});
  EXPECT_EQ(coded.wait(10), 5);
  EXPECT_EQ(coded.errors(), "");
  Process thrown({jobTool, "-n", "4", "--throw", "no luck@1"});
  EXPECT_EQ(thrown.wait(10), 4);
  EXPECT_EQ(thrown.errors(), "job.par: error: no luck\n");
  Process threads({jobTool, "-n", "4", "--comm", "inproc", "--throw", "no luck@3"});
  EXPECT_EQ(threads.wait(10), 4);
  EXPECT_EQ(threads.errors(), "job.par: error: no luck\n");
}

// A rank whose process ends among steps is lost; one that ended with 1 has named the file that went from under it, and
// the job's code is that of any other bad file.
TEST(Failures, RankVanishes) {
  for (int code : {1, 3}) {
    Process job({jobTool, "-n", "4", "--vanish", std::to_string(code) + "@2"});
    EXPECT_EQ(job.wait(10), code == 1 ? 1 : 4);
    expectMatch(job.errors(), lostPattern(2, "ended with exit code " + std::to_string(code)));
  }
}

// Ctrl-C finishes the step on all ranks and exits 130. SIGTERM to all processes, as schedulers send it, does
// too.
TEST(Failures, Interrupt) {
  for (std::string comm : {"shm", "inproc"})
    for (int signal : {SIGINT, SIGTERM}) {
      Process job({jobTool, "-n", "4", "--comm", comm});
      ASSERT_TRUE(job.sees(amongSteps, 4));
      if (signal == SIGTERM && comm == "shm")
        for (auto [rank, pid] : ranksOf(job.out()))
          kill(pid, signal);
      job.signal(signal);
      EXPECT_EQ(job.wait(10), 128 + signal) << job.errors();
      EXPECT_NE(job.out().find("stopped after step "), std::string::npos);
      expectMatch(job.errors(),
                  "job\\.par: SIG(INT|TERM) came to (par-run|rank [0-9]) \\(pid [0-9]+\\): the job ended after "
                  "step [0-9]+; (nothing was saved|last save ckpt/[0-9]+)\n");
    }
}

// The second signal does not wait for the step.
TEST(Failures, SecondInterruptEndsAtOnce) {
  Process job({jobTool, "-n", "4", "--timeout", "60"});
  ASSERT_TRUE(job.sees(amongSteps, 4));
  kill(pidOfRank(job.out(), 2), SIGSTOP);
  usleep(50'000);
  auto begin = Clock::now();
  job.signal(SIGINT);
  usleep(300'000);
  job.signal(SIGINT);
  EXPECT_EQ(job.wait(5), 130);
  expectGone(ranksOf(job.out()), begin);
}
