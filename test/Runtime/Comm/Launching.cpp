// How ranks find out who they are and meet: environments, rendezvous, and what is said when it goes wrong.
#include "Harness.h"
#include "Process.h"

#include <arpa/inet.h>

using namespace par::test;

namespace {

const std::string kJob = PAR_TEST_BIN "/par-test-job";
using Environment = std::map<std::string, std::string>;

const Environment kTorchrun = {{"RANK", "3"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},
                               {"MASTER_ADDR", "node1"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_RUN_ID", "job7"}};
const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                              {"OMPI_COMM_WORLD_SIZE", "8"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                              {"PMIX_NAMESPACE", "ns12"}};
const Environment kPmi = {{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}};
const Environment kSlurm = {{"SLURM_PROCID", "3"},
                            {"SLURM_NTASKS", "8"},
                            {"SLURM_LOCALID", "1"},
                            {"SLURM_JOB_ID", "77"},
                            {"SLURM_JOB_NODELIST", "node[03-05,9],login"}};

Environment joined(const Environment &a, const Environment &b) {
  Environment both = a;
  both.insert(b.begin(), b.end());
  return both;
}

std::string refusal(const Launch &launch, const Environment &environment) {
  try {
    findPlace(launch, environment);
  } catch (const LaunchError &error) {
    EXPECT_EQ(error.code, 2);
    return error.what();
  }
  return "";
}

/// A listening socket on a free loopback port.
struct Occupied {
  Occupied(int wanted = 0) : fd(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(uint16_t(wanted));
    socklen_t size = sizeof address;
    bind(fd, reinterpret_cast<sockaddr *>(&address), size);
    listen(fd, 8);
    getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size);
    port = ntohs(address.sin_port);
  }
  ~Occupied() { close(fd); }
  int fd, port;
};

Process byHand(int rank, int world, int port, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{kJob,
                                     "--rank",
                                     std::to_string(rank),
                                     "--world",
                                     std::to_string(world),
                                     "--master",
                                     "127.0.0.1:" + std::to_string(port),
                                     "--ranks",
                                     std::to_string(world),
                                     "--steps",
                                     "5"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Process(arguments);
}

int unusedPort() { return Occupied().port; }

} // namespace

// Every launcher's variables are read, and where the rendezvous is.
TEST(Launching, Environments) {
  EXPECT_FALSE(findPlace({}, {}));
  auto torchrun = findPlace({}, kTorchrun);
  ASSERT_TRUE(torchrun);
  EXPECT_EQ(torchrun->rank, 3u);
  EXPECT_EQ(torchrun->world, 8u);
  EXPECT_EQ(torchrun->localRank, 1u);
  EXPECT_EQ(torchrun->host, "node1");
  EXPECT_EQ(torchrun->port, 29500);
  EXPECT_EQ(torchrun->job, "job7");
  EXPECT_FALSE(torchrun->agentStore);
  EXPECT_TRUE(findPlace({}, joined(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}))->agentStore);
  auto mpi = findPlace({}, kOpenMpi);
  EXPECT_EQ(mpi->rank, 3u);
  EXPECT_EQ(mpi->host, "127.0.0.1");
  EXPECT_EQ(mpi->worldSource, "OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(findPlace({}, kPmi)->world, 8u);
  EXPECT_EQ(findPlace({}, kSlurm)->host, "node03");
  // The batch step of Slurm knows the number of tasks and is none of them.
  EXPECT_FALSE(findPlace({}, {{"SLURM_NTASKS", "8"}}));
}

// Two launchers that agree are fine, and so is Slurm that started one launcher a node; others are an error.
TEST(Launching, EnvironmentsThatDisagree) {
  EXPECT_EQ(findPlace({}, joined(kTorchrun, kOpenMpi))->worldSource, "WORLD_SIZE");
  EXPECT_EQ(findPlace({}, joined(kTorchrun, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}))->world, 8u);
  EXPECT_EQ(refusal({}, joined(kTorchrun, {{"PMI_RANK", "2"}, {"PMI_SIZE", "8"}})),
            "RANK and WORLD_SIZE say rank 3 of 8, PMI_RANK and PMI_SIZE say rank 2 of 8");
  Launch flags;
  flags.rank = 1;
  flags.world = 8;
  EXPECT_EQ(refusal(flags, kTorchrun),
            "--rank and --world say rank 1 of 8, RANK and WORLD_SIZE say rank 3 of 8");
}

// What is incomplete or makes no sense is refused with the variable's name.
TEST(Launching, EnvironmentsThatAreWrong) {
  EXPECT_EQ(refusal({}, {{"RANK", "1"}}), "RANK is set and WORLD_SIZE is not");
  EXPECT_EQ(refusal({}, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}), "RANK is set and MASTER_ADDR is not");
  EXPECT_EQ(refusal({}, {{"RANK", "8"}, {"WORLD_SIZE", "8"}}),
            "RANK is 8 and WORLD_SIZE is 8; ranks count from 0");
  EXPECT_EQ(refusal({}, {{"RANK", "x"}, {"WORLD_SIZE", "8"}}),
            "RANK is \"x\", not a number from 0 to 1048576");
  Launch flags;
  flags.rank = 1;
  EXPECT_EQ(refusal(flags, {}), "--rank needs --world");
  flags.world = 2;
  EXPECT_EQ(refusal(flags, {}), "--rank and --world need --master HOST:PORT");
  flags.master = "node1";
  EXPECT_EQ(refusal(flags, {}), "--master is \"node1\", expected HOST:PORT");
  Launch started;
  started.n = 8;
  EXPECT_EQ(refusal(started, kTorchrun),
            "-n 8 starts ranks, and WORLD_SIZE says that a launcher has done so; leave one of them out");
}

// Error 13, from a launcher and from -n.
TEST(Launching, WrongNumberOfRanks) {
  std::vector<std::string> arguments{kJob, "--ranks", "8", "--mesh", "pp 2 x dp 2 x tp 2"};
  Process launched(arguments,
                   {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}});
  EXPECT_EQ(launched.wait(10), 2);
  EXPECT_EQ(launched.errors(),
            "job.par: error: this bundle is for 8 ranks (pp 2 x dp 2 x tp 2), the launcher started "
            "4 (WORLD_SIZE)\n");
  arguments.insert(arguments.end(), {"-n", "4"});
  Process local(arguments);
  EXPECT_EQ(local.wait(10), 2);
  EXPECT_EQ(local.errors(),
            "job.par: error: this bundle is for 8 ranks (pp 2 x dp 2 x tp 2), -n asks for 4\n");
}

// Ranks started one by one meet, whoever comes first.
TEST(Launching, ByHand) {
  int port = unusedPort();
  Process second = byHand(1, 2, port);
  usleep(100'000);
  Process first = byHand(0, 2, port);
  EXPECT_EQ(first.wait(20), 0) << first.errors();
  EXPECT_EQ(second.wait(20), 0) << second.errors();
  EXPECT_NE(first.out().find("done after step 5"), std::string::npos);
}

// torchrun's agent holds MASTER_PORT: rank 0 takes the first free port above it, the others find it.
TEST(Launching, AgentHoldsThePort) {
  Occupied agent, next(agent.port + 1);
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.push_back(std::make_unique<Process>(std::vector<std::string>{kJob, "--ranks", "2", "--steps", "5"},
                                              Environment{{"RANK", std::to_string(rank)},
                                                          {"WORLD_SIZE", "2"},
                                                          {"MASTER_ADDR", "127.0.0.1"},
                                                          {"MASTER_PORT", std::to_string(agent.port)},
                                                          {"TORCHELASTIC_USE_AGENT_STORE", "True"}}));
  for (auto &rank : ranks)
    EXPECT_EQ(rank->wait(20), 0) << rank->errors();
}

// Error 19: said once, whichever way the ranks were started.
TEST(Launching, StaleBundle) {
  for (std::string comm : {"shm", "inproc"}) {
    Process job({kJob, "-n", "8", "--ranks", "8", "--comm", comm, "--plan", "81d0ee77@3"});
    EXPECT_EQ(job.wait(10), 1);
    EXPECT_EQ(job.errors(),
              "job.par: error: rank 3 holds plan 81d0ee, the 7 others 3f9c2a: its copy of the bundle is "
              "stale\n");
  }
}

// Error 20.
TEST(Launching, PortInUse) {
  Occupied other;
  Process first = byHand(0, 2, other.port);
  EXPECT_EQ(first.wait(10), 2);
  EXPECT_EQ(first.errors(),
            "job.par: error: port " + std::to_string(other.port) +
                " on 127.0.0.1 is in use; give --master 127.0.0.1:PORT, or stop the job that holds it\n");
}

// Error 21: both processes are named, and the job ends for all.
TEST(Launching, DuplicateRank) {
  int port = unusedPort();
  Process first = byHand(0, 3, port);
  ASSERT_TRUE(first.sees("rank 0"));
  Process second = byHand(1, 3, port);
  ASSERT_TRUE(second.sees("rank 1"));
  Process third = byHand(1, 3, port);
  EXPECT_EQ(third.wait(10), 2);
  EXPECT_EQ(first.wait(10), 2);
  EXPECT_EQ(second.wait(10), 2);
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::string expected = "job.par: error: two processes say that they are rank 1: pid " +
                         std::to_string(second.pid()) + " on " + host + " and pid " +
                         std::to_string(third.pid()) + " on " + host + "; check --rank\n";
  EXPECT_EQ(first.errors(), expected);
  EXPECT_EQ(third.errors(), expected);
  EXPECT_EQ(second.errors(), "");
}

// A job that is complete does not end because somebody else knocks.
TEST(Launching, LateDuplicateIsRefusedAlone) {
  int port = unusedPort();
  Process first = byHand(0, 2, port, {"--steps", "1000000"}),
          second = byHand(1, 2, port, {"--steps", "1000000"});
  ASSERT_TRUE(first.sees("rank 0"));
  ASSERT_TRUE(second.sees("rank 1"));
  usleep(100'000);
  Process late = byHand(1, 2, port);
  EXPECT_EQ(late.wait(10), 2);
  EXPECT_NE(late.errors().find("two processes say that they are rank 1"), std::string::npos);
  first.signal(SIGINT);
  EXPECT_EQ(first.wait(10), 130);
  EXPECT_EQ(second.wait(10), 130);
}

// Ranks that do not agree on the number of ranks.
TEST(Launching, WorldsDiffer) {
  int port = unusedPort();
  Process first = byHand(0, 3, port), second = byHand(1, 2, port);
  EXPECT_EQ(second.wait(10), 2);
  EXPECT_EQ(first.wait(10), 2);
  EXPECT_NE(first.errors().find("says that there are 2 ranks, rank 0 says 3; check --world"),
            std::string::npos)
      << first.errors();
}

// Who does not come is named.
TEST(Launching, MissingRank) {
  int port = unusedPort();
  Process first = byHand(0, 3, port, {"--join-timeout", "0.5"}), third = byHand(2, 3, port);
  EXPECT_EQ(first.wait(10), 4);
  EXPECT_EQ(third.wait(10), 4);
  EXPECT_EQ(first.errors(), "job.par: error: only 2 of 3 ranks came in time; missing: 1\n");
}

// Bytes that are not ours end their connection and nothing else.
TEST(Launching, HostileBytes) {
  int port = unusedPort();
  Process first = byHand(0, 2, port);
  ASSERT_TRUE(first.sees("rank 0"));
  for (std::string bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\xff'),
                            std::string("\x10\0\0\0\x01\0PR", 8) + std::string(16, '\x7f'),
                            std::string("\xff\xff\xff\x7f\x01\0PR", 8), std::string("\0\0\0\0\x04\0PR", 8)}) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(uint16_t(port));
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
    ASSERT_GT(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    // The host hangs up: after its greeting the stream ends.
    timeval limit{5, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char buffer[4096];
    ssize_t n;
    while ((n = recv(fd, buffer, sizeof buffer, 0)) > 0)
      ;
    EXPECT_TRUE(n == 0 || errno == ECONNRESET);
    close(fd);
  }
  Process second = byHand(1, 2, port);
  EXPECT_EQ(first.wait(20), 0) << first.errors();
  EXPECT_EQ(second.wait(20), 0) << second.errors();
}
