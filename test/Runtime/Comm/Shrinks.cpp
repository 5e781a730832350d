// Under --shrink a job goes on without ranks that do not come again, and takes them in when they do.
#include "Harness.h"

using namespace par::test;

namespace {

/// Ranks that a launcher started, each with a supervisor, on as many hosts as there are letters: this one by several
/// names. The last ones may be spares.
struct ShrinkingJob {
  explicit ShrinkingJob(std::string hosts, std::vector<std::string> more = {}, std::string members = "4,3,2",
                        size_t spares = 0)
      : port(unusedPort()), spares(spares), hosts(std::move(hosts)), more(std::move(more)) {
    std::vector<std::string> usual{"--restart", "-1",        "--timeout", "2",       "--shrink",
                                   "1",         "--members", members,     "--pause", "5"};
    if (spares)
      usual.insert(usual.end(), {"--spares", std::to_string(spares)});
    this->more.insert(this->more.begin(), usual.begin(), usual.end());
    for (size_t rank = 0; rank < this->hosts.size(); ++rank)
      ranks.push_back(nullptr);
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      start(rank);
  }
  void start(size_t rank) {
    std::string world = std::to_string(hosts.size());
    std::vector<std::string> arguments{jobTool,
                                       "--rank",
                                       std::to_string(rank),
                                       "--world",
                                       world,
                                       "--ranks",
                                       std::to_string(hosts.size() - spares),
                                       "--master",
                                       "127.0.0.1:" + std::to_string(port)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ranks[rank] = std::make_unique<Process>(arguments, Environment{{"PAR_HOST", std::string(1, hosts[rank])}});
  }
  void runs() {
    for (size_t rank = 0; rank + spares < ranks.size(); ++rank)
      EXPECT_TRUE(ranks[rank]->sees(amongSteps));
    usleep(500'000); // hosts tell each other of their steps from time to time
  }
  void lose(const std::vector<size_t> &gone) {
    for (size_t rank : gone)
      ranks[rank]->signal(SIGKILL);
  }
  /// Whether rank 0 says so in time.
  bool says(const std::string &what, double seconds = enough) { return ranks[0]->says(what, seconds); }
  /// All ranks but `gone` end with `code`.
  void ends(int code, const std::vector<size_t> &gone = {}) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      int ended = ranks[rank]->wait(enough);
      if (std::find(gone.begin(), gone.end(), rank) == gone.end())
        EXPECT_EQ(ended, code) << "rank " << rank << ": " << ranks[rank]->errors();
    }
  }
  std::string errors() {
    std::string all;
    for (auto &rank : ranks)
      all += rank->errors();
    return all;
  }
  int port;
  size_t spares;
  std::string hosts;
  std::vector<std::string> more;
  std::vector<std::unique_ptr<Process>> ranks;
};

size_t timesIn(const std::string &text, const std::string &piece) {
  size_t n = 0;
  for (size_t at = text.find(piece); at != text.npos; at = text.find(piece, at + 1))
    ++n;
  return n;
}

const std::vector<std::string> shortJob{"--steps", "200"};

} // namespace

// A host that does not come again within --shrink: the ranks of the other one go on as a member for fewer ranks.
TEST(Shrinks, LostHost) {
  for (auto [hosts, gone, with] : {std::tuple("aabb", std::vector<size_t>{2, 3}, "2"),
                                   {"abcd", {1}, "3"},
                                   {"abcd", {3}, "3"},
                                   {"abab", {1, 3}, "2"}}) {
    ShrinkingJob job(hosts, shortJob);
    job.runs();
    job.lose(gone);
    job.ends(0, gone);
    std::string said = job.ranks[0]->errors();
    EXPECT_NE(said.find("; it is waited for (--shrink)\n"), std::string::npos) << said;
    EXPECT_NE(said.find("job.par: goes on after step "), std::string::npos) << said;
    EXPECT_NE(said.find(" with " + std::string(with) + " of 4 ranks, "), std::string::npos) << said;
    EXPECT_EQ(timesIn(job.errors(), "error"), 0u) << job.errors();
    EXPECT_NE(job.ranks[0]->out().find("done after step 200"), std::string::npos);
  }
}

// A rank's process that is lost is started again, and is no reason to go on without it: nor is one in the smaller job.
TEST(Shrinks, LostRankIsStartedAgain) {
  ShrinkingJob job("abcd", {"--steps", "700"});
  job.runs();
  kill(pidOfRank(job.ranks[2]->out(), 2), SIGKILL);
  EXPECT_TRUE(job.says(" with 4 of 4 ranks, ")) << job.errors();
  job.lose({1});
  EXPECT_TRUE(job.says(" with 3 of 4 ranks, ")) << job.errors();
  EXPECT_TRUE(job.ranks[3]->sees("rank 2" + amongSteps)); // its rank now
  kill(pidOfRank(job.ranks[3]->out(), 2), SIGKILL);
  job.ends(0, {1});
  EXPECT_EQ(timesIn(job.ranks[0]->errors(), " with 3 of 4 ranks, "), 2u) << job.errors();
  EXPECT_EQ(timesIn(job.ranks[3]->errors(), "starting it again"), 1u) << job.errors();
}

// A host that comes again waits for the end of a step; then all go on.
TEST(Shrinks, GrowsBack) {
  for (auto [hosts, gone, with] : {std::tuple("aabb", std::vector<size_t>{2, 3}, "2"), {"abcd", {1}, "3"}}) {
    ShrinkingJob job(hosts, {"--steps", "800"});
    job.runs();
    job.lose(gone);
    EXPECT_TRUE(job.says(" with " + std::string(with) + " of 4 ranks, ")) << job.errors();
    for (size_t rank : gone)
      job.start(rank);
    EXPECT_TRUE(job.says(" with 4 of 4 ranks, ")) << job.errors();
    job.ends(0);
    std::string said = job.ranks[0]->errors();
    EXPECT_NE(said.find(" s after that step\n"), std::string::npos) << said;
    EXPECT_GE(timesIn(said, "goes on after step "), 2u) << said; // two that come may be taken in one by one
    EXPECT_NE(job.errors().find("job.par: rank " + std::to_string(gone.front()) + " waits: the job goes on with "),
              std::string::npos)
        << job.errors();
    EXPECT_NE(job.errors().find(" of 4 ranks and takes more in at the end of a step\n"), std::string::npos)
        << job.errors();
    EXPECT_EQ(timesIn(job.errors(), "error"), 0u) << job.errors();
  }
}

// A spare comes later than the job shrinks, and takes the place of the lost rank at the end of a step.
TEST(Shrinks, GrowsByASpare) {
  ShrinkingJob job("abcde", {"--steps", "1200"}, "4,3,2", 1);
  job.runs();
  job.lose({2});
  EXPECT_TRUE(job.says(" with 3 of 4 ranks, ")) << job.errors();
  EXPECT_TRUE(job.says(" on e) takes the place of rank 2\n")) << job.errors();
  EXPECT_TRUE(job.says(" with 4 of 4 ranks, ")) << job.errors();
  job.ends(0, {2});
  EXPECT_EQ(timesIn(job.ranks[0]->errors(), "takes the place of rank"), 1u) << job.errors();
  EXPECT_EQ(timesIn(job.errors(), "error"), 0u) << job.errors();
}

// A rank that no member has a place for waits, too, and ends with the job.
TEST(Shrinks, RankWithoutPlace) {
  ShrinkingJob job("abcd", shortJob, "4,2");
  job.runs();
  job.lose({1});
  job.ends(0, {1});
  EXPECT_NE(job.ranks[0]->errors().find(" with 2 of 4 ranks, "), std::string::npos) << job.errors();
  EXPECT_NE(job.ranks[3]->errors().find("job.par: rank 3 waits: the job goes on with 2 of 4 ranks and takes"),
            std::string::npos)
      << job.errors();
  EXPECT_NE(job.ranks[3]->errors().find("the job has ended without rank 3, which waited to take part in it again"),
            std::string::npos)
      << job.errors();
  ShrinkingJob failing("abcd", {"--abort", "2"}, "4,2");
  failing.lose({1});
  failing.ranks[1]->wait(5);
}

// Fewer than the smallest member: the ranks are waited for, and then the job ends.
TEST(Shrinks, NoSmallerMember) {
  ShrinkingJob job("abcd", {"--join-timeout", "3"}, "4,3");
  job.runs();
  job.lose({1, 2});
  job.ends(4, {1, 2});
  for (size_t rank : {0, 3})
    EXPECT_NE(job.ranks[rank]->errors().find("; the bundle's family has no member for as few ranks as 2: par-compile "
                                             "--also"),
              std::string::npos)
        << job.errors();
}

// A rank that is lost three times in one step leaves the job, which goes on at once.
TEST(Shrinks, LostThreeTimes) {
  ShrinkingJob job("abcd", {"--steps", "300", "--abort", "3", "--shrink", "1000"});
  job.ends(0, {3});
  EXPECT_EQ(job.ranks[3]->wait(1), 4);
  EXPECT_NE(job.ranks[3]->errors().find("error: rank 3 (dp 3) was lost three times in step 3: it was killed by"),
            std::string::npos)
      << job.errors();
  EXPECT_NE(job.ranks[0]->errors().find(" with 3 of 4 ranks, "), std::string::npos) << job.errors();

  Process together({jobTool, "-n", "4", "--steps", "300", "--restart", "-1", "--shrink", "1000", "--members", "4,3",
                    "--abort", "3"});
  EXPECT_EQ(together.wait(enough), 0) << together.errors();
  EXPECT_NE(together.errors().find("; the job goes on without it: it was lost three times in this step\n"),
            std::string::npos)
      << together.errors();
  EXPECT_NE(together.errors().find(" with 3 of 4 ranks, "), std::string::npos) << together.errors();
  EXPECT_NE(together.out().find("done after step 300"), std::string::npos);
}

// --restart=1 --shrink: the second loss is one of a rank.
TEST(Shrinks, RestartsAreSpent) {
  Process job(
      {jobTool, "-n", "4", "--steps", "600", "--restart", "1", "--shrink", "1000", "--members", "4,3", "--pause", "5"});
  EXPECT_TRUE(job.sees(amongSteps, 4));
  kill(pidOfRank(job.out(), 1), SIGKILL);
  EXPECT_TRUE(job.sees(amongSteps, 8));
  kill(pidOfRank(job.out(), 2), SIGKILL);
  EXPECT_EQ(job.wait(enough), 0) << job.errors();
  EXPECT_NE(job.errors().find("the job goes on without it: --restart=1 has been reached\n"), std::string::npos)
      << job.errors();
  EXPECT_NE(job.errors().find(" with 3 of 4 ranks, "), std::string::npos) << job.errors();
}

// A signal ends the smaller job as well as those that wait for it.
TEST(Shrinks, AskedToEnd) {
  ShrinkingJob job("abcd", {}, "4,2");
  job.runs();
  job.lose({1});
  EXPECT_TRUE(job.says(" with 2 of 4 ranks, ")) << job.errors();
  job.ranks[2]->signal(SIGTERM);
  EXPECT_EQ(job.ranks[0]->wait(10), 143) << job.errors();
  EXPECT_EQ(job.ranks[2]->wait(10), 143) << job.errors();
  EXPECT_EQ(job.ranks[3]->wait(10), 0) << job.errors();
}

// Ranks are lost and come again at any time.
TEST(Shrinks, RandomTrials) {
  unsigned seed = getenv("PAR_LONG") ? unsigned(time(nullptr)) : 1;
  SCOPED_TRACE("seed " + std::to_string(seed));
  srand(seed);
  ShrinkingJob job("abcd", {"--shrink", "0.3"});
  job.runs();
  for (int i = 0; i < (getenv("PAR_LONG") ? 60 : 8); ++i) {
    size_t victim = 1 + size_t(rand()) % 3;
    job.lose({victim});
    usleep(useconds_t(rand() % 900'000));
    job.ranks[0]->wait(0.01); // reads which process is rank 0 now
    if (rand() % 3 == 0)
      kill(pidOfRank(job.ranks[0]->out(), 0), SIGKILL);
    usleep(useconds_t(rand() % 300'000));
    job.start(victim);
    usleep(useconds_t(rand() % 900'000));
  }
  EXPECT_TRUE(job.says(" of 4 ranks, ", 1)) << job.errors();
  usleep(1'000'000);
  job.ranks[0]->signal(SIGTERM);
  job.ends(143);
  EXPECT_EQ(timesIn(job.errors(), "error"), 0u) << job.errors();
}
