// Times of work by small hardware files, against times computed by hand.
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

/// Racks of two hosts of two ranks, and what lies between racks.
TEST(CostTable, Levels) {
  std::string leveled = "name: x\npeak: {f32: 1000, f64: 500}\nmemory: 100\nlaunch: 3\nlevels:\n"
                        "- {name: node, ranks: 2, link: 100, latency: 1, share: 200}\n"
                        "- {name: rack, ranks: 4, link: 10, latency: 2, share: 100}\n"
                        "- {name: fabric, link: 4, latency: 5}\n";
  CostTable costs = *Hardware::parse(leveled, "x.yaml");
  const Hardware &hardware = costs.hardware();
  EXPECT_EQ(hardware.levels, (std::vector<std::string>{"node", "rack", "fabric"}));
  RankGroup node = hardware.groupOf({0, 1}), rack = hardware.groupOf({0, 1, 2, 3}),
            all = hardware.groupOf({0, 1, 2, 3, 4, 5, 6, 7}), far = hardware.groupOf({0, 4});
  EXPECT_EQ(costs.share(node), 200);
  EXPECT_EQ(costs.share(rack), 100);
  EXPECT_EQ(costs.share(all), 0);
  EXPECT_EQ(costs.link(far).rate, 4);
  EXPECT_EQ(costs.link(rack).rate, 10);
  EXPECT_EQ(costs.send(400, far).ns, 5 + 100000);
  EXPECT_EQ(costs.collective(AllReduce, 400, node).ns, 2 * 1 + 4000);
  // 600 bytes through each rank; a host sends them over two links, of 10.
  EXPECT_EQ(costs.collective(AllReduce, 400, rack).ns, 2 * (1 + 2) + 30000);
  // 700 bytes; a rack sends them over four shares of 4, but each host over two links of 10.
  EXPECT_EQ(costs.collective(AllReduce, 400, all).ns, 2 * (1 + 2 + 5) + 43750);
  EXPECT_TRUE(all.isWiderThan(rack));
  EXPECT_TRUE(far.isWiderThan(rack));
  EXPECT_FALSE(node.isWiderThan(rack));
}

static const std::string waves = "matmul: {units: 4, tile: [16, 16], depth: 8, overhead: 100}\n";

TEST(CostTable, Waves) {
  std::string fast = text; // memory that does not bound
  fast.replace(fast.find("memory: 100"), 11, "memory: 100000");
  CostTable costs = *Hardware::parse(fast + waves, "x.yaml"), plain = *Hardware::parse(fast, "x.yaml");
  // 64 x 64 is 16 tiles, four full waves of 2 * 16 * 16 * 4 * 64 FLOP.
  EXPECT_EQ(costs.matmul(square(64)).ns, 3 + 4 * (131072 + 100));
  // One row more is a row of tiles more.
  MatmulShape taller = square(64);
  taller.m = 65;
  EXPECT_EQ(costs.matmul(taller).ns, 3 + 5 * (131072 + 100));
  // With 8 rows, half tiles are half the work, and an eighth more.
  MatmulShape flat = square(64);
  flat.m = 8;
  EXPECT_EQ(costs.matmul(flat).ns, 3 + 131072 / 2 * 9 / 8 + 100);
  // k is rounded up to the depth.
  MatmulShape deeper = square(64), deepest = square(64);
  deeper.k = 65;
  deepest.k = 72;
  EXPECT_EQ(costs.matmul(deeper).ns, costs.matmul(deepest).ns);
  // Never faster than the peak, and at most a few percent slower where tiles fill the units many times over.
  for (int64_t size : {1, 7, 64, 100, 512, 1000})
    EXPECT_GE(costs.matmul(square(size)).ns, plain.matmul(square(size)).ns) << size;
  EXPECT_LT(costs.matmul(square(1024)).ns, plain.matmul(square(1024)).ns * 103 / 100);
  // A larger matmul takes no less.
  int64_t last = 0;
  for (int64_t size = 8; size <= 2048; size *= 2) {
    EXPECT_GE(costs.matmul(square(size)).ns, last) << size;
    last = costs.matmul(square(size)).ns;
  }
}

static const std::string measured = "measured:\n"
                                    "  launch: [[5]]\n"
                                    "  matmuls:\n"
                                    "  - [f32, nn, 1, 64, 64, 64, 1000000]\n"
                                    "  - [f32, nn, 1, 256, 256, 256, 60000000]\n"
                                    "  - [f32, nt, 1, 64, 64, 64, 2000000]\n"
                                    "  kernels:\n"
                                    "  - [1000, 0, 30000]\n"
                                    "  - [4000, 0, 120000]\n"
                                    "  collectives: [[all_reduce, 1000, 4, 1, 400000]]\n"
                                    "  sends: [[1000, 1, 300000], [1000, 2, 700000]]\n"
                                    "  copies: [[host, 1000, 90000], [device, 1000, 50000]]\n"
                                    "  attentions: [[f32, forward, 1, 2, 2, 16, 16, 8, 1, 77000]]\n"
                                    "  convolutions: [[f32, data, 1, 1, 4, 4, 9, 64, 88000]]\n"
                                    "  feeds: [[feed, 1000, 70000]]\n"
                                    "  wakeups: [[1000, 10], [3000, 50]]\n  spread: [[4000, 100]]\n"
                                    "  together: [[matmul, 2, 1100], [matmul, 4, 1500]]\n";

TEST(CostTable, ExactRows) {
  CostTable costs = tableOf(measured);
  auto isMeasured = [](Cost cost, int64_t ns) { return cost.ns == ns && cost.source == CostSource::Measured; };
  EXPECT_TRUE(isMeasured(costs.matmul(square(64)), 1000000));
  MatmulShape turned = square(64);
  turned.transposeB = true;
  EXPECT_TRUE(isMeasured(costs.matmul(turned), 2000000));
  EXPECT_TRUE(isMeasured(costs.kernel(1000), 30000));
  EXPECT_TRUE(isMeasured(costs.collective(AllReduce, 1000, 4), 400000));
  EXPECT_TRUE(isMeasured(costs.send(1000, 2), 300000));
  EXPECT_TRUE(isMeasured(costs.hostCopy(1000), 90000));
  EXPECT_TRUE(isMeasured(costs.copy(2000), 50000)); // read and written
  AttentionShape attention{format::DType::F32, false, 1, 2, 2, 16, 16, 8, 8, true};
  EXPECT_TRUE(isMeasured(costs.attention(attention, 1), 77000));
  ConvolutionShape convolution{format::DType::F32, ConvolutionPass::Data, 1, 1, 4, 4, 9, 64};
  EXPECT_TRUE(isMeasured(costs.convolution(convolution, 1), 88000));
  EXPECT_EQ(costs.launch(), 5);
  EXPECT_EQ(costs.together(true, 1), 1000);
  EXPECT_EQ(costs.together(true, 2), 1100);
  EXPECT_EQ(costs.together(true, 3), 1300);
  EXPECT_EQ(costs.together(true, 9), 1500);
  EXPECT_EQ(costs.together(false, 4), 1000);
  EXPECT_TRUE(isMeasured(costs.feed(false, 1000), 70000));
  EXPECT_EQ(costs.feed(true, 1000).ns, costs.copy(1000).ns); // an output is no input
  EXPECT_EQ(costs.meeting({0, 0, 0}), 0);
  EXPECT_EQ(costs.meeting({0, 500, 500}), 5);
  EXPECT_EQ(costs.meeting({0, 2000, 2000}), 30);
  EXPECT_EQ(costs.meeting({0, 9000, 9000}), 50);
  EXPECT_EQ(costs.meeting({4000, 0, 0}), 100 + 1); // later by the spread, for which the other waits
  EXPECT_EQ(costs.meeting({4000, 500, 60}), 40 + 5);
}

TEST(CostTable, RowsNear) {
  CostTable costs = tableOf(measured);
  // The model of 64^3 is 524288 ns and a launch, so that it took 1.91 times as long; of 256^3 it is 1.79 times.
  Cost between = costs.matmul(square(128));
  EXPECT_EQ(between.source, CostSource::Table);
  EXPECT_EQ(between.reach, 1000); // a doubling
  EXPECT_GT(between.ns, 4194304 * 178 / 100);
  EXPECT_LT(between.ns, 4194304 * 300 / 100); // the transposed row took 3.8 times as long, and is farther
  // A row of another format says nothing.
  MatmulShape other = square(128);
  other.type = format::DType::F64;
  EXPECT_EQ(costs.matmul(other).source, CostSource::Peak);
  // The correction holds four doublings beyond the rows: 1.79 is the ratio of the nearer one.
  Cost larger = costs.matmul(square(4096));
  EXPECT_EQ(larger.source, CostSource::Table);
  EXPECT_EQ(larger.reach, 4000);
  EXPECT_NEAR(double(larger.ns), 1.79 * double(square(4096).flops()), 0.02 * double(square(4096).flops()));
  // From there it goes over to the model, which stands by itself eight doublings away.
  MatmulShape thin = square(256);
  for (auto [k, most] : {std::pair<int64_t, double>(256 << 5, 1.7), {256 << 6, 1.5}, {256 << 7, 1.3}}) {
    thin.k = k;
    double ratio = double(costs.matmul(thin).ns) / double(thin.flops());
    EXPECT_GT(ratio, 1) << k;
    EXPECT_LT(ratio, most) << k;
  }
  thin.k = 256 * 255;
  EXPECT_NEAR(double(costs.matmul(thin).ns), double(thin.flops()), double(thin.flops()) / 100); // no leap
  thin.k = 256 * 257;
  EXPECT_EQ(costs.matmul(thin).source, CostSource::Peak);
  EXPECT_EQ(costs.matmul(thin).ns, 5 + thin.flops());
  Cost kernel = costs.kernel(2000);
  EXPECT_EQ(kernel.source, CostSource::Table);
  EXPECT_GT(kernel.ns, 30000);
  EXPECT_LT(kernel.ns, 120000);
  EXPECT_EQ(costs.collective(AllReduce, 2000, 4).source, CostSource::Table);
  EXPECT_EQ(costs.collective(AllGather, 1000, 4).source, CostSource::Peak);
  // Answers do not depend on what was asked before.
  EXPECT_EQ(costs.matmul(square(100)).ns, tableOf(measured).matmul(square(100)).ns);
}

TEST(CostTable, Constant) {
  // Each takes 5000 ns and twice its operations: the model has 3 and the operations.
  std::string rows = "name: x\npeak: {f32: 1000, f64: 500}\nmemory: 1000000\nlink: 10\nlatency: 7\nlaunch: 3\n"
                     "measured:\n  convolutions:\n";
  for (int64_t outputs : {2, 3, 4, 6, 8, 12})
    rows += "  - [f32, forward, 1, 1, 4, " + std::to_string(outputs) + ", 9, 16, " +
            std::to_string(5000 + 2 * 2 * 4 * outputs * 9 * 16) + "]\n";
  CostTable costs = *Hardware::parse(rows, "x.yaml");
  auto timeOf = [&](int64_t images, int64_t outputs) {
    ConvolutionShape shape{format::DType::F32, ConvolutionPass::Forward, images, 1, 4, outputs, 9, 16};
    return std::pair(double(costs.convolution(shape, 1).ns), double(5000 + 2 * shape.flops()));
  };
  for (auto [images, outputs] : {std::pair<int64_t, int64_t>(1, 5), {2, 4}, {4, 8}, {16, 12}}) {
    auto [predicted, wanted] = timeOf(images, outputs);
    EXPECT_NEAR(predicted, wanted, 0.02 * wanted) << images << " images, " << outputs << " outputs";
  }
  // A part of a row grows with its work, though all of it is less than the constant.
  CostTable odd = *Hardware::parse(rows + "  - [f32, forward, 1, 1, 64, 64, 9, 16, 800]\n", "x.yaml");
  ConvolutionShape shape{format::DType::F32, ConvolutionPass::Forward, 4, 1, 64, 64, 9, 16};
  EXPECT_GT(odd.convolution(shape, 1).ns, 800);
}
