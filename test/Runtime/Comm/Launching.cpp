// Identity of ranks and their rendezvous: environments, and messages of failures.
#include "Harness.h"
#include "Process.h"
#include "Rendezvous.h"

#include <sys/resource.h>

using namespace par::test;

namespace {

const Environment underTorchrun = {{"RANK", "3"},
                                   {"WORLD_SIZE", "8"},
                                   {"LOCAL_RANK", "1"},
                                   {"MASTER_ADDR", "node1"},
                                   {"MASTER_PORT", "29500"},
                                   {"TORCHELASTIC_RUN_ID", "job7"}};
const Environment underOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                                  {"OMPI_COMM_WORLD_SIZE", "8"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                  {"PMIX_NAMESPACE", "ns12"}};
const Environment underPmi = {{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}};
const Environment underSlurm = {{"SLURM_PROCID", "3"},
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

} // namespace

// Every launcher's variables are read, and where the rendezvous is.
TEST(Launching, Environments) {
  EXPECT_FALSE(findPlace({}, {}));
  auto torchrun = findPlace({}, underTorchrun);
  ASSERT_TRUE(torchrun);
  EXPECT_EQ(torchrun->rank, 3u);
  EXPECT_EQ(torchrun->world, 8u);
  EXPECT_EQ(torchrun->localRank, 1u);
  EXPECT_EQ(torchrun->host, "node1");
  EXPECT_EQ(torchrun->port, 29500);
  EXPECT_EQ(torchrun->job, "job7");
  EXPECT_FALSE(torchrun->agentStore);
  EXPECT_TRUE(findPlace({}, joined(underTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}))->agentStore);
  auto mpi = findPlace({}, underOpenMpi);
  EXPECT_EQ(mpi->rank, 3u);
  EXPECT_EQ(mpi->host, "127.0.0.1");
  EXPECT_EQ(mpi->worldSource, "OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(findPlace({}, underPmi)->world, 8u);
  EXPECT_EQ(findPlace({}, underSlurm)->host, "node03");
  // The batch step of Slurm knows the number of tasks and is none of them.
  EXPECT_FALSE(findPlace({}, {{"SLURM_NTASKS", "8"}}));
}

// Ranks on several hosts must all know that of rank 0.
TEST(Launching, EnvironmentsOfSeveralHosts) {
  EXPECT_EQ(
      refusal({}, joined(underOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}})),
      "OMPI_COMM_WORLD_LOCAL_SIZE says that 4 of 8 ranks run on this host, and MASTER_ADDR is not set: the others "
      "would not find rank 0; set it to the address of rank 0's host on all hosts (mpirun -x MASTER_ADDR)");
  EXPECT_NE(refusal({}, joined(underPmi, {{"MPI_LOCALNRANKS", "2"}})), "");
  EXPECT_EQ(findPlace({}, joined(underOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}}))->host, "127.0.0.1");
  Environment addressed = joined(underOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"MASTER_ADDR", "node1"}});
  EXPECT_EQ(findPlace({}, addressed)->host, "node1") << "the port comes from the job's name";
  EXPECT_EQ(findPlace({}, joined(underPmi, underSlurm))->host, "node03") << "srun --mpi=pmi2";
}

// Two launchers that agree are fine, and so is Slurm that started one launcher a node; others are an error.
TEST(Launching, EnvironmentsThatDisagree) {
  EXPECT_EQ(findPlace({}, joined(underTorchrun, underOpenMpi))->worldSource, "WORLD_SIZE");
  EXPECT_EQ(findPlace({}, joined(underTorchrun, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}))->world, 8u);
  EXPECT_EQ(refusal({}, joined(underTorchrun, {{"PMI_RANK", "2"}, {"PMI_SIZE", "8"}})),
            "RANK and WORLD_SIZE say rank 3 of 8, PMI_RANK and PMI_SIZE say rank 2 of 8");
  Launch flags;
  flags.rank = 1;
  flags.world = 8;
  EXPECT_EQ(refusal(flags, underTorchrun), "--rank and --world say rank 1 of 8, RANK and WORLD_SIZE say rank 3 of 8");
}

// An incomplete or invalid environment is refused with the variable's name.
TEST(Launching, EnvironmentsThatAreWrong) {
  EXPECT_EQ(refusal({}, {{"RANK", "1"}}), "RANK is set and WORLD_SIZE is not");
  EXPECT_EQ(refusal({}, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}), "RANK is set and MASTER_ADDR is not");
  EXPECT_EQ(refusal({}, {{"RANK", "8"}, {"WORLD_SIZE", "8"}}), "RANK is 8 and WORLD_SIZE is 8; ranks count from 0");
  EXPECT_EQ(refusal({}, {{"RANK", "x"}, {"WORLD_SIZE", "8"}}), "RANK is \"x\", not a number from 0 to 1048576");
  Launch flags;
  flags.rank = 1;
  EXPECT_EQ(refusal(flags, {}), "--rank needs --world");
  flags.world = 2;
  EXPECT_EQ(refusal(flags, {}), "--rank and --world need --master HOST:PORT");
  flags.master = "node1";
  EXPECT_EQ(refusal(flags, {}), "--master is \"node1\", expected HOST:PORT");
  flags.master = "\x1b[31mnode1\n";
  EXPECT_EQ(refusal(flags, {}), "--master is \"?[31mnode1?\", expected HOST:PORT")
      << "what a terminal takes for commands";
  flags.master = "node1:0";
  EXPECT_EQ(refusal(flags, {}), "the port of --master is \"0\", not a number from 1 to 65535");
  flags.world = 1048577;
  EXPECT_EQ(refusal(flags, {}), "--world is \"1048577\", not a number from 1 to 1048576");
  flags.world = 2;
  flags.master.clear();
  flags.rank = 2;
  EXPECT_EQ(refusal(flags, {}), "--rank is 2 and --world is 2; ranks count from 0");
  Launch started;
  started.n = 8;
  EXPECT_EQ(refusal(started, underTorchrun),
            "-n 8 starts ranks, and WORLD_SIZE says that a launcher has done so; leave one of them out");
}

// Error 13, from a launcher and from -n.
TEST(Launching, WrongNumberOfRanks) {
  std::vector<std::string> arguments{jobTool, "--ranks", "8", "--mesh", "pp 2 x dp 2 x tp 2"};
  Process launched(arguments, {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}});
  EXPECT_EQ(launched.wait(10), 2);
  EXPECT_EQ(launched.errors(), "job.par: error: this bundle is for 8 ranks (pp 2 x dp 2 x tp 2), the launcher started "
                               "4 (WORLD_SIZE)\n");
  arguments.insert(arguments.end(), {"-n", "4"});
  Process local(arguments);
  EXPECT_EQ(local.wait(10), 2);
  EXPECT_EQ(local.errors(), "job.par: error: this bundle is for 8 ranks (pp 2 x dp 2 x tp 2), -n asks for 4\n");
}

// A world far beyond the bundle's takes no place for each of its ranks: it is said at once, and to those who
// come soon.
TEST(Launching, HugeWorld) {
  std::string master = "127.0.0.1:" + std::to_string(unusedPort());
  std::vector<std::string> flags{"--ranks", "2", "--world", "1048576", "--master", master};
  std::vector<std::string> first{jobTool, "--rank", "0"}, second{jobTool, "--rank", "1"};
  first.insert(first.end(), flags.begin(), flags.end());
  second.insert(second.end(), flags.begin(), flags.end());
  Process zero(first), one(second);
  EXPECT_EQ(zero.wait(10), 2) << zero.errors();
  EXPECT_EQ(one.wait(10), 2) << one.errors();
  EXPECT_EQ(zero.errors(), "job.par: error: this bundle is for 2 ranks, the launcher started 1048576 (--world)\n");
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage); // of the largest child so far
  EXPECT_LT(usage.ru_maxrss, 100 << 10) << "KiB";
}

// Ranks started one by one meet, whoever comes first.
TEST(Launching, ByHand) {
  int port = unusedPort();
  Process second = byHand(1, 2, port);
  usleep(100'000);
  Process first = byHand(0, 2, port);
  EXPECT_EQ(first.wait(enough), 0) << first.errors();
  EXPECT_EQ(second.wait(enough), 0) << second.errors();
  EXPECT_NE(first.out().find("done after step 5"), std::string::npos);
}

// torchrun's agent holds MASTER_PORT: rank 0 takes the first free port above it, the others find it.
TEST(Launching, AgentHoldsThePort) {
  Occupied agent, next(agent.port + 1);
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.push_back(std::make_unique<Process>(std::vector<std::string>{jobTool, "--ranks", "2", "--steps", "5"},
                                              Environment{{"RANK", std::to_string(rank)},
                                                          {"WORLD_SIZE", "2"},
                                                          {"MASTER_ADDR", "127.0.0.1"},
                                                          {"MASTER_PORT", std::to_string(agent.port)},
                                                          {"TORCHELASTIC_USE_AGENT_STORE", "True"}}));
  for (auto &rank : ranks)
    EXPECT_EQ(rank->wait(enough), 0) << rank->errors();
}

// Error 19: said once, whichever way the ranks were started.
TEST(Launching, StaleBundle) {
  for (std::string comm : {"shm", "inproc"}) {
    Process job({jobTool, "-n", "8", "--ranks", "8", "--comm", comm, "--plan", "81d0ee77@3"});
    EXPECT_EQ(job.wait(10), 1);
    EXPECT_EQ(job.errors(), "job.par: error: rank 3 holds plan 81d0ee, the 7 others 3f9c2a: its copy of the bundle is "
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

// Error 21: both processes are named, and the job ends for all, who all say it.
TEST(Launching, DuplicateRank) {
  int port = unusedPort();
  Process first = byHand(0, 3, port);
  ASSERT_TRUE(listens(port));
  Process second = byHand(1, 3, port), third = byHand(1, 3, port);
  for (Process *rank : {&third, &first, &second})
    EXPECT_EQ(rank->wait(10), 2) << rank->errors();
  std::string host = thisHost(), one = "pid " + std::to_string(second.pid()) + " on " + host,
              other = "pid " + std::to_string(third.pid()) + " on " + host;
  auto line = [](const std::string &a, const std::string &b) {
    return "job.par: error: two processes say that they are rank 1: " + a + " and " + b + "; check --rank\n";
  };
  EXPECT_TRUE(first.errors() == line(one, other) || first.errors() == line(other, one)) << first.errors();
  EXPECT_EQ(second.errors(), first.errors());
  EXPECT_EQ(third.errors(), first.errors());
}

// A job that is complete does not end because somebody else knocks.
TEST(Launching, LateDuplicateIsRefusedAlone) {
  int port = unusedPort();
  Process first = byHand(0, 2, port, {"--steps", "1000000"}), second = byHand(1, 2, port, {"--steps", "1000000"});
  ASSERT_TRUE(first.sees(amongSteps));
  ASSERT_TRUE(second.sees(amongSteps));
  Process late = byHand(1, 2, port);
  EXPECT_EQ(late.wait(10), 2);
  EXPECT_NE(late.errors().find("two processes say that they are rank 1"), std::string::npos);
  first.signal(SIGINT);
  EXPECT_EQ(first.wait(10), 130);
  EXPECT_EQ(second.wait(10), 130);
}

// Ranks that do not agree on the number of ranks: all are told at once, those too that come when rank 0 knows.
TEST(Launching, WorldsDiffer) {
  int port = unusedPort();
  auto begin = Clock::now();
  Process first = byHand(0, 4, port), second = byHand(1, 3, port), third = byHand(2, 4, port);
  EXPECT_EQ(second.wait(10), 2);
  Process fourth = byHand(3, 4, port);
  for (Process *rank : {&first, &third, &fourth}) {
    EXPECT_EQ(rank->wait(10), 2);
    EXPECT_NE(rank->errors().find("job.par: error: rank 1 (pid "), std::string::npos) << rank->errors();
    EXPECT_NE(rank->errors().find(") says that there are 3 ranks, rank 0 says 4; check --world\n"), std::string::npos)
        << rank->errors();
  }
  EXPECT_NE(second.errors().find("says that there are 3 ranks"), std::string::npos) << second.errors();
  EXPECT_LT(secondsSince(begin), 10);
}

// One rank's --world does not fit its bundle: it says so, and the others do not wait for it.
TEST(Launching, OneWorldDoesNotFitTheBundle) {
  for (int wrong : {0, 1, 2}) {
    SCOPED_TRACE("rank " + std::to_string(wrong));
    int port = unusedPort();
    auto begin = Clock::now();
    std::vector<std::unique_ptr<Process>> ranks;
    for (int rank = 0; rank < 3; ++rank)
      ranks.push_back(std::make_unique<Process>(
          std::vector<std::string>{jobTool, "--rank", std::to_string(rank), "--world", rank == wrong ? "5" : "3",
                                   "--master", "127.0.0.1:" + std::to_string(port), "--ranks", "3"}));
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(ranks[rank]->wait(10), 2) << rank;
      std::string says = ranks[rank]->errors();
      if (rank == wrong)
        EXPECT_NE(says.find("this bundle is for 3 ranks, the launcher started 5 (--world)\n"), std::string::npos)
            << says;
      else
        EXPECT_NE(says.find(" says that there are "), std::string::npos) << rank << ": " << says;
    }
    EXPECT_LT(secondsSince(begin), 8);
  }
}

// A rank that fails before it joins (a file that is missing on its side) says so to all, at once.
TEST(Launching, OneRankFailsBeforeItJoins) {
  for (int fails : {0, 1, 2}) {
    SCOPED_TRACE("rank " + std::to_string(fails));
    int port = unusedPort();
    auto begin = Clock::now();
    std::string why = "x.safetensors: error: cannot open: No such file or directory", more = "\n  note: another line";
    std::vector<std::unique_ptr<Process>> ranks;
    for (int rank = 0; rank < 3; ++rank)
      ranks.push_back(std::make_unique<Process>(std::vector<std::string>{
          jobTool, "--rank", std::to_string(rank), "--world", "3", "--master", "127.0.0.1:" + std::to_string(port),
          "--ranks", "3", rank == fails ? "--fail" : "--steps", rank == fails ? why + more : "3"}));
    std::string who = "pid " + std::to_string(ranks[size_t(fails)]->pid()) + " on " + thisHost();
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(ranks[size_t(rank)]->wait(10), rank == fails ? 1 : 4);
      EXPECT_EQ(ranks[size_t(rank)]->errors(), rank == fails ? why + more + "\n"
                                                             : "job.par: error: rank " + std::to_string(fails) + " (" +
                                                                   who + ") ended before the job began: " + why + "\n");
    }
    EXPECT_LT(secondsSince(begin), 8);
  }
}

// Rank 0 thinks of fewer ranks than there are: those that come when as many as it thinks of have been told are told
// too.
TEST(Launching, RankZeroSaysTooFew) {
  for (bool knowsTheBundle : {true, false}) {
    int port = unusedPort();
    auto start = [&](int rank, int world) {
      std::vector<std::string> more;
      if (knowsTheBundle)
        more = {"--ranks", "4"};
      return byHand(rank, world, port, more);
    };
    Process first = start(0, 2), second = start(1, 4), third = start(2, 4);
    EXPECT_EQ(second.wait(10), 2);
    EXPECT_EQ(third.wait(10), 2);
    Process fourth = start(3, 4);
    EXPECT_EQ(fourth.wait(10), 2);
    EXPECT_NE(fourth.errors().find(" says that there are "), std::string::npos) << fourth.errors();
    EXPECT_EQ(first.wait(10), 2);
  }
}

// Who does not come is named, on all sides.
TEST(Launching, MissingRank) {
  int port = unusedPort();
  Process third = byHand(2, 3, port);
  ASSERT_TRUE(handles(third.pid(), SIGTERM)); // it seeks rank 0, which does not wait for long
  Process first = byHand(0, 3, port, {"--join-timeout", "1"});
  for (Process *rank : {&first, &third}) {
    EXPECT_EQ(rank->wait(10), 4);
    EXPECT_EQ(rank->errors(), "job.par: error: only 2 of 3 ranks came in time; missing: 1\n");
  }
}

// Until all have come a rank may leave, and another process may come in its place.
TEST(Launching, RejoinBeforeTheStart) {
  int port = unusedPort();
  Process first = byHand(0, 3, port);
  ASSERT_TRUE(listens(port));
  for (int i = 0; i < 3; ++i) {
    Process leaves = byHand(1, 3, port);
    usleep(200'000);
  }
  Process second = byHand(1, 3, port), third = byHand(2, 3, port);
  for (Process *rank : {&first, &second, &third})
    EXPECT_EQ(rank->wait(enough), 0) << rank->errors();
}

// Without a rendezvous, or with one that cannot exist.
TEST(Launching, NoRendezvous) {
  int port = unusedPort();
  Process second = byHand(1, 2, port, {"--join-timeout", "0.3"});
  EXPECT_EQ(second.wait(10), 4);
  EXPECT_EQ(second.errors(),
            "job.par: error: rank 1 found no rank 0 of this job at 127.0.0.1:" + std::to_string(port) + "\n");
  Process nowhere({jobTool, "--rank", "0", "--world", "2", "--ranks", "2", "--master", "no such host:29500"});
  EXPECT_EQ(nowhere.wait(10), 2);
  EXPECT_EQ(nowhere.errors(), "job.par: error: host \"no such host\" of the rendezvous is unknown here\n");
  Process elsewhere({jobTool, "--rank", "0", "--world", "2", "--ranks", "2", "--master", "192.0.2.1:29500"});
  EXPECT_EQ(elsewhere.wait(10), 2);
  EXPECT_EQ(elsewhere.errors(), "job.par: error: cannot listen on 192.0.2.1:29500: Cannot assign requested address; "
                                "rank 0 must run on that host\n");
  Process threads(
      {jobTool, "--rank", "0", "--world", "2", "--ranks", "2", "--master", "127.0.0.1:1", "--comm", "inproc"});
  EXPECT_EQ(threads.wait(10), 2);
  EXPECT_EQ(threads.errors(), "job.par: error: --comm inproc runs all ranks in one process, and --world says that a "
                              "launcher has started them\n");
}

// Resources that the system refuses.
TEST(Launching, SystemLimits) {
  Process processes({jobTool, "-n", "4", "--processes", "1"});
  EXPECT_EQ(processes.wait(10), 4);
  EXPECT_EQ(processes.errors(), "job.par: error: cannot start rank 0: Resource temporarily unavailable\n");
  Process threads({jobTool, "-n", "4", "--comm", "inproc", "--processes", "1"});
  EXPECT_EQ(threads.wait(10), 4);
  std::string start = "job.par: error: cannot start a thread with a stack of ";
  EXPECT_EQ(threads.errors().substr(0, start.size()), start);
  EXPECT_TRUE(threads.errors().ends_with(" bytes: Resource temporarily unavailable\n")) << threads.errors();
  Process files({jobTool, "-n", "4", "--files", "4"});
  EXPECT_EQ(files.wait(10), 4);
  EXPECT_EQ(files.errors(), "job.par: error: cannot create shared memory of 0 bytes: Too many open files\n");
  std::string errors = errorsOf([&] {
    EXPECT_EQ(run(jobOf(Transport::inproc, 1),
                  [](Control &control) {
                    control.connect(std::vector<Members>{{"all", {0}}}, size_t(1) << 60);
                    return 0;
                  }),
              exitRankLost);
  });
  EXPECT_EQ(errors, "test.par: error: cannot map 1152921504606846976 bytes: Cannot allocate memory\n");
}
