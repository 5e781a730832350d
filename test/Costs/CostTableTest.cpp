#include "par/Costs/CostTable.h"
#include <gtest/gtest.h>

using namespace par;
using enum format::CollKind;

static const std::string text = "name: x\npeak: {f32: 1000, f64: 500}\nmemory: 100\nlink: 10\nlatency: 7\nlaunch: 3\n";

static CostTable tableOf(std::string more = "") { return *Hardware::parse(text + more, "x.yaml"); }

static MatmulShape square(int64_t size) {
  MatmulShape shape;
  shape.m = shape.n = shape.k = size;
  return shape;
}

TEST(CostTable, Local) {
  CostTable costs = tableOf();
  EXPECT_EQ(costs.local(1000000, 10).ns, 3 + 1000000); // bound by FLOP
  EXPECT_EQ(costs.local(1000000, 10, format::DType::F64).ns, 3 + 2000000);
  EXPECT_EQ(costs.local(10, 1001).ns, 3 + 10010); // bound by memory
  EXPECT_EQ(costs.matmul(square(100)).ns, 3 + 2000000);
  EXPECT_EQ(costs.kernel(1001, 10).ns, 3 + 10010);
  EXPECT_EQ(costs.copy(100).ns, 3 + 1000);
  EXPECT_EQ(costs.hostCopy(100).ns, 3 + 2000); // read here, written there
  EXPECT_EQ(tableOf("host: 50\n").hostCopy(100).ns, 3 + 2000);
  EXPECT_EQ(costs.launch(), 3);
  EXPECT_EQ(costs.operations(1000), 1000);
}

TEST(CostTable, Communication) {
  CostTable costs = tableOf();
  EXPECT_EQ(costs.send(100, 2).ns, 7 + 10000);
  EXPECT_EQ(costs.collective(AllReduce, 100, 4).ns, 4 * 7 + 15000);
  EXPECT_EQ(costs.collective(AllGather, 100, 4).ns, 2 * 7 + 30000);
  EXPECT_EQ(costs.collective(ReduceScatter, 100, 3).ns, 2 * 7 + 20000);
  EXPECT_EQ(costs.collective(Broadcast, 100, 2).ns, 7 + 10000);
  EXPECT_EQ(costs.collective(AllReduce, 100, 1).ns, 0);
}

/// Two ranks a host; a way out of 2 bytes per microsecond and rank, and messages of 11 ns between hosts.
TEST(CostTable, Hosts) {
  CostTable costs = tableOf("ranks: 2\nbetween: {link: 2, latency: 11}\n");
  const Hardware &hardware = costs.hardware();
  RankGroup inside = hardware.groupOf({2, 3}), across = hardware.groupOf({1, 3, 5, 7}),
            all = hardware.groupOf({0, 1, 2, 3}), uneven = hardware.groupOf({1, 2, 3});
  EXPECT_EQ(costs.collective(AllReduce, 100, inside).ns, 2 * 7 + 10000);
  EXPECT_EQ(costs.collective(AllReduce, 100, across).ns, 4 * 11 + 75000);
  // 150 bytes through each rank, and out of each host on two ways.
  EXPECT_EQ(costs.collective(AllReduce, 100, all).ns, 2 * (7 + 11) + 37500);
  EXPECT_EQ(costs.collective(AllGather, 100, all).ns, 7 + 11 + 75000);
  // Each rank sends 100 bytes to each of the two on the other host.
  EXPECT_EQ(costs.collective(AllToAll, 100, all).ns, 7 + 11 + 100000);
  EXPECT_EQ(costs.collective(ReduceScatter, 30, uneven).ns, 7 + 11 + 30000);
  EXPECT_EQ(costs.send(100, hardware.groupOf({1, 2})).ns, 11 + 50000);
  EXPECT_EQ(costs.send(100, hardware.groupOf({2, 3})).ns, 7 + 10000);
}
