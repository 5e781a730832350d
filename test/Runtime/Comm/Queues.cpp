// Groups, several queues, mismatches, counts of bytes, and errors of post().
#include "Harness.h"
#include "comm/engine/Exchange.h"

#include <cstring>
#include <random>

using namespace par;
using namespace par::test;

namespace {

Communication transfer(Op op, uint32_t communicator, uint32_t peer, float *data, uint64_t n, uint64_t tag,
                       const char *id = "test:1") {
  Communication c;
  c.op = op;
  c.communicator = communicator;
  c.peer = peer;
  c.tag = tag;
  c.n = n;
  c.in = c.out = data;
  c.id = id;
  return c;
}

Communication allReduce(uint32_t communicator, float *data, uint64_t n, uint64_t tag, const char *id = "test:2") {
  Communication c;
  c.communicator = communicator;
  c.tag = tag;
  c.n = n;
  c.in = c.out = data;
  c.id = id;
  return c;
}

float *floats(Endpoint &endpoint) { return reinterpret_cast<float *>(endpoint.arena().data()); }

class Queues : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(Comm, Queues, testing::Values(Transport::inproc, Transport::shm, Transport::tcp),
                         transportName);

} // namespace

// A ring: every rank sends to the next and receives from the last at once, which only a group can.
TEST_P(Queues, GroupExchanges) {
  for (uint64_t n : {1, 50000})
    ASSERT_EQ(runJob(jobOf(GetParam(), 4),
                     [&](Control &control) {
                       std::vector<Members> table{{"ring", {0, 1, 2, 3}}};
                       auto endpoint = control.connect(table, 2 * n * 4);
                       float *mine = floats(*endpoint), *other = mine + n;
                       uint32_t next = (control.rank() + 1) % 4, last = (control.rank() + 3) % 4;
                       for (uint64_t step = 0; step < 20; ++step) {
                         std::fill_n(mine, n, float(control.rank() * 100 + step));
                         Communication both[] = {transfer(Op::Send, 0, next, mine, n, 2 * step),
                                                 transfer(Op::Recv, 0, last, other, n, 2 * step)};
                         endpoint->wait(endpoint->post(3, both));
                         expectEqual(other[0], float(last * 100 + step), "first received");
                         expectEqual(other[n - 1], float(last * 100 + step), "last received");
                       }
                       return 0;
                     }),
              0);
}

// A bucket: several all_reduces as one unit, small and large ones, with transfers between the same members.
TEST_P(Queues, GroupIsABucket) {
  ASSERT_EQ(runJob(jobOf(GetParam(), 3),
                   [](Control &control) {
                     std::vector<Members> table{{"dp", {0, 1, 2}}};
                     auto endpoint = control.connect(table, 400'000);
                     float *data = floats(*endpoint);
                     for (uint64_t n : {10, 8000}) {
                       std::vector<Communication> bucket;
                       for (uint64_t i = 0; i < 5; ++i) {
                         std::fill_n(data + i * n, n, float(control.rank() + i));
                         bucket.push_back(allReduce(0, data + i * n, n, i));
                       }
                       float *message = data + 5 * n;
                       *message = 42;
                       if (control.rank() == 0)
                         bucket.push_back(transfer(Op::Send, 0, 2, message, 1, 9));
                       if (control.rank() == 2)
                         bucket.push_back(transfer(Op::Recv, 0, 0, message + 1, 1, 9));
                       endpoint->wait(endpoint->post(0, bucket));
                       for (uint64_t i = 0; i < 5 * n; ++i)
                         expectEqual(data[i], float(3 + 3 * (i / n)), "element " + std::to_string(i));
                       if (control.rank() == 2)
                         expectEqual(message[1], 42.0f, "message");
                     }
                     return 0;
                   }),
            0);
}

// Two transfers between the same members in one group arrive in the order of posting.
TEST_P(Queues, GroupKeepsOrderPerPeer) {
  ASSERT_EQ(runJob(jobOf(GetParam(), 2),
                   [](Control &control) {
                     auto endpoint = control.connect(std::vector<Members>{{"p", {0, 1}}}, 64);
                     float *data = floats(*endpoint);
                     std::vector<Communication> group;
                     for (int i = 0; i < 8; ++i) {
                       data[i] = float(control.rank() == 0 ? i : -1);
                       group.push_back(
                           transfer(control.rank() == 0 ? Op::Send : Op::Recv, 0, 1 - control.rank(), data + i, 1, i));
                     }
                     endpoint->wait(endpoint->post(0, group));
                     for (int i = 0; i < 8; ++i)
                       expectEqual(data[i], float(i), "element");
                     return 0;
                   }),
            0);
}

// Rank 0 is blocked on queue 0 until rank 1 has finished with queue 1, which needs rank 0's queue 1 to go on.
TEST_P(Queues, BlockedQueueLetsOthersMove) {
  ASSERT_EQ(runJob(jobOf(GetParam(), 2),
                   [](Control &control) {
                     auto endpoint = control.connect(std::vector<Members>{{"a", {0, 1}}, {"b", {0, 1}}}, 4096);
                     float *data = floats(*endpoint);
                     data[0] = float(control.rank());
                     if (control.rank() == 0) {
                       Communication receive = transfer(Op::Recv, 0, 1, data + 1, 1, 1),
                                     reduce = allReduce(1, data, 1, 2);
                       Operation blocked = endpoint->post(0, {&receive, 1});
                       endpoint->post(1, {&reduce, 1});
                       endpoint->wait(blocked);
                       expectEqual(data[1], 1.0f, "received");
                     } else {
                       Communication reduce = allReduce(1, data, 1, 2);
                       endpoint->wait(endpoint->post(1, {&reduce, 1}));
                       Communication send = transfer(Op::Send, 0, 0, data, 1, 1);
                       endpoint->wait(endpoint->post(0, {&send, 1}));
                     }
                     expectEqual(data[0], 1.0f, "reduced");
                     return 0;
                   }),
            0);
}

// A send is a rendezvous: it ends only when the receiver has the bytes.
TEST_P(Queues, SendWaitsForItsReceiver) {
  ASSERT_EQ(runJob(jobOf(GetParam(), 2),
                   [](Control &control) {
                     auto endpoint = control.connect(std::vector<Members>{{"p", {0, 1}}}, 64);
                     float *data = floats(*endpoint);
                     Communication c =
                         transfer(control.rank() == 0 ? Op::Send : Op::Recv, 0, 1 - control.rank(), data, 1, 7);
                     if (control.rank() == 0) {
                       Operation sent = endpoint->post(0, {&c, 1});
                       for (int i = 0; i < 50; ++i)
                         endpoint->poll();
                       expectEqual(endpoint->done(sent), false, "done before the receiver came");
                       expectEqual(endpoint->waitingFor().at(0), 1u, "waiting for");
                       control.barrier("receive now");
                       endpoint->wait(sent);
                     } else {
                       control.barrier("receive now");
                       endpoint->wait(endpoint->post(0, {&c, 1}));
                     }
                     return 0;
                   }),
            0);
}

// Sums of numbers that do not add up exactly are the same bits whoever the ranks are and whatever their
// timing.
TEST(QueuesTest, TransportsAgreeBitForBit) {
  constexpr uint64_t n = 20011;
  std::vector<std::vector<float>> results;
  for (Transport transport : {Transport::inproc, Transport::shm, Transport::shm, Transport::tcp}) {
    SharedArray<float> result(2 * n);
    ASSERT_EQ(runJob(jobOf(transport, 4),
                     [&](Control &control) {
                       auto endpoint = control.connect(std::vector<Members>{{"dp", {2, 0, 3, 1}}}, n * 4 + 64);
                       float *data = floats(*endpoint);
                       for (uint64_t count : {n, uint64_t(999)}) {
                         std::mt19937 random(control.rank());
                         for (uint64_t i = 0; i < count; ++i)
                           data[i] = float(random()) * (i % 2 ? 1e-7f : 1e3f);
                         Communication c = allReduce(0, data, count, count);
                         endpoint->wait(endpoint->post(0, {&c, 1}));
                         if (control.rank() == 3)
                           std::memcpy(result.data + (count == n ? 0 : n), data, count * 4);
                       }
                       return 0;
                     }),
              0);
    results.emplace_back(result.data, result.data + 2 * n);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[1], results[2]);
  EXPECT_EQ(results[2], results[3]) << "on three hosts";
}

// Bytes are those of a ring, whatever the engine does.
TEST_P(Queues, CountsBytes) {
  ASSERT_EQ(runJob(jobOf(GetParam(), 4),
                   [](Control &control) {
                     auto endpoint =
                         control.connect(std::vector<Members>{{"all", {0, 1, 2, 3}}, {"odd", {0, 1, 2}}}, 4096);
                     float *data = floats(*endpoint);
                     uint64_t sent = 0;
                     auto step = [&](CollKind kind, uint64_t bytes) {
                       Communication c = allReduce(0, data, 100, 1);
                       c.kind = kind;
                       endpoint->wait(endpoint->post(0, {&c, 1}));
                       sent += bytes;
                       expectEqual(endpoint->sentBytes(0), sent, std::string(format::toString(kind)));
                     };
                     step(CollKind::AllReduce, 600); // 2 * 3/4 * 400
                     step(CollKind::AllGather, 1200);
                     step(CollKind::ReduceScatter, 1200);
                     step(CollKind::AllToAll, 1200);
                     step(CollKind::Broadcast, control.rank() == 0 ? 1200 : 0);
                     step(CollKind::Reduce, control.rank() == 0 ? 0 : 400);
                     // 2 * 2/3 * 4 = 5.33 bytes each: three of them are 16.
                     for (int i = 0; control.rank() < 3 && i < 3; ++i) {
                       Communication c = allReduce(1, data, 1, 1);
                       endpoint->wait(endpoint->post(0, {&c, 1}));
                     }
                     expectEqual(endpoint->sentBytes(1), control.rank() < 3 ? 16u : 0u, "thirds");
                     expectEqual(endpoint->sentBytes(), sent + (control.rank() < 3 ? 16 : 0), "all");
                     return 0;
                   }),
            0);
}

// Members that meet with different communications are told both, and the job ends.
TEST_P(Queues, MismatchNamesBoth) {
  auto pair = [&](Communication first, Communication second) {
    return distinctLines(errorsOf([&] {
      EXPECT_EQ(runJob(jobOf(GetParam(), 2),
                       [&](Control &control) {
                         auto endpoint = control.connect(std::vector<Members>{{"tp", {0, 1}}}, 4096);
                         Communication c = control.rank() == 0 ? first : second;
                         c.in = c.out = floats(*endpoint);
                         endpoint->wait(endpoint->post(0, {&c, 1}));
                         return 0;
                       }),
                exitRankLost);
    }));
  };
  Communication a = allReduce(0, nullptr, 64, 7, "stage0/forward:12"), b = a;
  b.id = "stage0/forward:14";
  b.tag = 9;
  EXPECT_EQ(pair(a, b), "test.par: error: communicator \"tp\": stage0/forward:12 of rank 0 is all_reduce sum of 64 "
                        "f32 with tag 7, stage0/forward:14 of rank 1 is all_reduce sum of 64 f32 with tag 9\n");
  b.tag = 7;
  b.kind = CollKind::AllGather;
  EXPECT_NE(pair(a, b).find("rank 1 is all_gather of 64 f32 with tag 7"), std::string::npos);
  b = a;
  b.n = 63;
  EXPECT_NE(pair(a, b).find("rank 1 is all_reduce sum of 63 f32"), std::string::npos);
  b = a;
  b.type = DType::I32;
  EXPECT_NE(pair(a, b).find("rank 1 is all_reduce sum of 64 i32"), std::string::npos);
  b = a;
  b.reduction = Reduction::Max;
  EXPECT_NE(pair(a, b).find("rank 1 is all_reduce max of 64 f32"), std::string::npos);
  a.kind = b.kind = CollKind::Broadcast;
  a.peer = 1;
  EXPECT_NE(pair(a, b).find("rank 0 is broadcast of 64 f32 at root 1 with tag 7"), std::string::npos);
  Communication send = transfer(Op::Send, 0, 1, nullptr, 8, 3, "stage0/forward:5");
  Communication recv = transfer(Op::Recv, 0, 0, nullptr, 8, 4, "stage1/forward:0");
  EXPECT_EQ(pair(send, recv), "test.par: error: communicator \"tp\": stage0/forward:5 of rank 0 is send of 8 f32 "
                              "with tag 3, stage1/forward:0 of rank 1 is recv of 8 f32 with tag 4\n");
}

// Groups of different size meet, and are refused.
TEST_P(Queues, MismatchedGroups) {
  EXPECT_NE(errorsOf([&] {
              EXPECT_EQ(runJob(jobOf(GetParam(), 2),
                               [](Control &control) {
                                 auto endpoint = control.connect(std::vector<Members>{{"dp", {0, 1}}}, 4096);
                                 std::vector<Communication> bucket(control.rank() + 1,
                                                                   allReduce(0, floats(*endpoint), 4, 1, "u:3"));
                                 endpoint->wait(endpoint->post(0, bucket));
                                 return 0;
                               }),
                        exitRankLost);
            })
                .find("u:3 of rank 0 is all_reduce sum of 4 f32 with tag 1 in a group of 1, u:3 of rank 1 is "
                      "all_reduce sum of 4 f32 with tag 1 in a group of 2"),
            std::string::npos);
}

// An invalid post is refused before anything moves.
TEST(QueuesTest, PostRefuses) {
  ASSERT_EQ(run(jobOf(Transport::inproc, 2),
                [](Control &control) {
                  auto endpoint = control.connect(std::vector<Members>{{"a", {0, 1}}, {"b", {0}}}, 4096);
                  float *data = floats(*endpoint);
                  auto refused = [&](Communication c, uint32_t queue, const std::string &message) {
                    try {
                      endpoint->post(queue, {&c, 1});
                    } catch (const std::invalid_argument &error) {
                      EXPECT_EQ(std::string(error.what()), message);
                      return;
                    }
                    ADD_FAILURE() << "accepted: " << message;
                  };
                  if (control.rank() == 0) {
                    refused(allReduce(0, data, 1025, 1), 0,
                            "test:2: 1025 elements of f32 do not lie in the arena of 4096 bytes");
                    refused(allReduce(0, data - 1, 1, 1), 0,
                            "test:2: 1 elements of f32 do not lie in the arena of 4096 bytes");
                    refused(transfer(Op::Send, 0, 2, data, 1, 1), 0,
                            "test:1: member 2 of \"a\" (size 2) is no peer of member 0");
                    refused(transfer(Op::Send, 0, 0, data, 1, 1), 0,
                            "test:1: member 0 of \"a\" (size 2) is no peer of member 0");
                    refused(allReduce(0, data, ~uint64_t(0), 1), 0, "test:2: count 18446744073709551615 is too large");
                    refused(allReduce(0, data, 1, 1), 8, "queue 8 (of 8) cannot take a group of 1 (at most 64)");
                    Communication apart = allReduce(0, data, 1, 1);
                    apart.out = data + 1;
                    refused(apart, 0, "test:2: all_reduce is in place only");
                  } else {
                    refused(allReduce(1, data, 1, 1), 0, "test:2: rank 1 is not in communicator 1");
                  }
                  Communication c = allReduce(0, data, 1, 1);
                  endpoint->wait(endpoint->post(2, {&c, 1}));
                  refused(c, 3, "test:2: communicator \"a\" is bound to queue 2, not 3");
                  return 0;
                }),
            0);
}

// A deadlock of ranks is reported, with the operation for which each waits (par-verify refuses such a bundle).
TEST_P(Queues, DeadlockNamesAll) {
  Launch launch = jobOf(GetParam(), 3);
  launch.timeout = 0.5;
  std::string errors = errorsOf([&] {
    EXPECT_EQ(runJob(launch,
                     [](Control &control) {
                       auto endpoint = control.connect(std::vector<Members>{{"p", {0, 1, 2}}}, 64);
                       uint32_t rank = control.rank();
                       if (rank == 2)
                         control.barrier("alone");
                       Communication c =
                           transfer(Op::Recv, 0, 1 - rank, floats(*endpoint), 1, 1, rank ? "s1/back:4" : "s0/fwd:7");
                       endpoint->wait(endpoint->post(0, {&c, 1}));
                       return 0;
                     }),
              exitRankLost);
  });
  EXPECT_EQ(distinctLines(errors),
            "test.par: error: deadlock: rank 0 waits in recv, s0/fwd:7, for rank 1; rank 1 waits in recv, "
            "s1/back:4, for rank 0; rank 2 waits in broadcast, alone, for ranks 0, 1\n");
}

// A bundle's communicators are one table; a rank finds the group that it is in.
TEST(QueuesTest, TableOfABundle) {
  format::Bundle bundle;
  format::Manifest &manifest = bundle.manifest;
  manifest.communicators = {{"tp", {{0, 1}, {2, 3}}}, {"pipe", {{1, 3}}}};
  bundle.programs = {{}, {}};
  bundle.programs[1].comms = {{"pipe", 0}, {"tp", 0}};
  bundle.programs[1].blocks.push_back({"b", {{}}});
  format::Instruction &reduce = bundle.programs[1].blocks[0].instructions[0];
  reduce.op = format::Op::Coll, reduce.comm = 1;
  std::vector<Members> table = tableOf(bundle);
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[1].ranks, (std::vector<uint32_t>{2, 3}));
  EXPECT_TRUE(table[0].used && table[1].used);
  EXPECT_FALSE(table[2].used) << "a program names it, and no instruction does";
  // Any number of those takes nothing.
  size_t bytes = exchangeBytes(table);
  table.resize(100'000, table[2]);
  EXPECT_EQ(exchangeBytes(table), bytes);
  std::vector<std::byte> memory(bytes + 64);
  EXPECT_EQ(exchangeAreas(table, memory.data()).size(), table.size());
  EXPECT_EQ(indexOf(manifest, "tp", 3), 1u);
  EXPECT_EQ(indexOf(manifest, "pipe", 3), 2u);
  try {
    indexOf(manifest, "pipe", 0);
    ADD_FAILURE() << "found";
  } catch (const std::invalid_argument &error) {
    EXPECT_EQ(std::string(error.what()), "rank 0 is in no group of communicator \"pipe\"");
  }
}
