// Exchanges between ranks on the control plane.
#include "Harness.h"

using namespace par;
using namespace par::test;

namespace {
class Exchanges : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(Comm, Exchanges, testing::Values(Transport::inproc, Transport::shm, Transport::tcp),
                         transportName);
} // namespace

// Broadcast, gather and all_gather of byte strings, longer than a frame too.
TEST_P(Exchanges, ByteStrings) {
  Launch launch = jobOf(GetParam(), 3);
  launch.timeout = 60; // megabytes take their time on a busy machine
  ASSERT_EQ(runJob(launch,
                   [](Control &control) {
                     auto valueOf = [](uint32_t rank, size_t size) {
                       return std::string(size, char('a' + rank)) + '\0';
                     };
                     for (size_t size : {size_t(0), size_t(10), size_t(3) << 20}) {
                       std::string mine = valueOf(control.rank(), size);
                       if (control.broadcast("choice", mine, 1) != valueOf(1, size))
                         throw std::runtime_error("broadcast");
                       std::vector<std::string> gathered = control.gather("loss", mine, 2),
                                                all = control.allGather("digest", mine);
                       expectEqual(gathered.size(), control.rank() == 2 ? 3u : 0u, "gathered");
                       expectEqual(all.size(), 3u, "all gathered");
                       for (uint32_t rank = 0; rank < 3; ++rank)
                         if (all[rank] != valueOf(rank, size) || (control.rank() == 2 && gathered[rank] != all[rank]))
                           throw std::runtime_error("value of rank " + std::to_string(rank));
                       control.barrier("next");
                     }
                     return 0;
                   }),
            0);
}

// Every rank that looks before a step gets the same answer, whenever the stop is asked for.
TEST_P(Exchanges, StopIsAgreedOn) {
  for (int trial = 0; trial < 20; ++trial)
    ASSERT_EQ(runJob(jobOf(GetParam(), 4),
                     [&](Control &control) {
                       uint64_t step = 1;
                       for (; control.startStep(step); ++step)
                         if (step == uint64_t(trial) && control.rank() == uint32_t(trial) % 4)
                           control.requestStop();
                         else if (trial == 0 && control.rank() == 3)
                           control.requestStop();
                       expectEqual(control.stopped(), true, "stopped");
                       std::string mine = std::to_string(step);
                       if (control.broadcast("step", mine) != mine)
                         throw std::runtime_error("ranks stopped before different steps");
                       return 0;
                     }),
              0);
}

// fail() ends the job on all ranks with its code and is said once.
TEST_P(Exchanges, FailIsSaidOnce) {
  std::string errors = errorsOf([&] {
    EXPECT_EQ(runJob(jobOf(GetParam(), 4),
                     [](Control &control) -> int {
                       if (control.rank() % 2)
                         control.fail(5, "step 412: error: loss is NaN on rank 2");
                       control.barrier("never");
                       return 0;
                     }),
              5);
  });
  EXPECT_EQ(distinctLines(errors), "step 412: error: loss is NaN on rank 2\n");
}

// Ranks that give different tables of communicators are refused.
TEST(ExchangesTest, TablesMustAgree) {
  std::string errors = errorsOf([&] {
    EXPECT_EQ(run(jobOf(Transport::shm, 2),
                  [](Control &control) {
                    std::vector<Members> table(1 + control.rank(), {"all", {0, 1}});
                    control.connect(table, 64);
                    return 0;
                  }),
              exitRankLost);
  });
  bool either = errors == "test.par: error: rank 0 has other communicators than rank 1\n" ||
                errors == "test.par: error: rank 1 has other communicators than rank 0\n";
  EXPECT_TRUE(either) << errors;
}
