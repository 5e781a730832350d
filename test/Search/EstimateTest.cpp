// Recomputation and collectives in an estimate.
#include "par/Search/Estimate.h"

#include "gtest/gtest.h"

using namespace par;

namespace {

Machine machineOf(bool overlap) {
  Hardware hardware;
  hardware.overlap = overlap;
  hardware.link = 1000; // 1 byte a ns
  return Machine(hardware);
}

/// Ten layers that save 1,000 bytes each: half of them cost 10 ns, further 300 bytes cost 900 ns.
ModelCost tenLayers() {
  ModelCost cost;
  cost.layer.forward = 1000;
  cost.layer.backward = 2000;
  cost.layer.saved = 1000;
  cost.layer.kept = {1000, 500, 200};
  cost.layer.again = {0, 10, 910};
  cost.layers = 10;
  return cost;
}

} // namespace

TEST(Estimate, RecomputesTheCheapestBytesFirst) {
  ModelCost cost = tenLayers();
  auto of = [&](std::optional<uint64_t> limit) { return estimate({}, cost, {}, machineOf(true), limit); };
  EXPECT_FALSE(of(std::nullopt).recomputes);
  EXPECT_EQ(of(std::nullopt).stepNs, 30'000);
  EXPECT_EQ(of(10'000).stepNs, 30'000);
  EXPECT_EQ(of(7500).stepNs, 30'000 + 50); // half of the cheap ones
  EXPECT_EQ(of(7500).peak, 7500);
  EXPECT_EQ(of(5000).stepNs, 30'000 + 100);
  EXPECT_EQ(of(3500).stepNs, 30'000 + 100 + 4500);
  EXPECT_TRUE(of(2000).fits);
  EXPECT_EQ(of(2000).stepNs, 30'000 + 9100);
  EXPECT_FALSE(of(1999).fits);
  cost.layer.kept.clear(); // no front: each byte costs alike, and a tenth stays
  EXPECT_EQ(of(5500).stepNs, 30'000 + 5000);
  EXPECT_TRUE(of(1000).fits);
}

TEST(Estimate, HidesNoCollectiveWhereThePlanSaysSo) {
  ModelCost cost = tenLayers();
  cost.layer.params = 80'000; // a gather of two bytes an element: 35,000 ns a layer
  cost.layer.grads = 8;
  Candidate candidate;
  candidate.data = 8;
  candidate.zero = 3;
  Space space;
  int64_t beside = estimate(candidate, cost, space, machineOf(true), std::nullopt).stepNs;
  space.overlaps = false;
  int64_t after = estimate(candidate, cost, space, machineOf(true), std::nullopt).stepNs;
  EXPECT_GE(after, 30'000 + 2 * 350'000 - 100); // bytes of a part are rounded down
  EXPECT_LT(beside, after - 20'000);
  EXPECT_EQ(estimate(candidate, cost, Space(), machineOf(false), std::nullopt).stepNs, after);
}
