// par-verify and the device `sim` judge mutants of programs alike.
#include "SimulateMany.h"
#include "ToyBundles.h"

#include <gtest/gtest.h>

using namespace par;
using namespace par::toy;

namespace {

// Waits dropped, depths shrunk, offsets shifted, aliases moved, queues changed: a bundle that par-verify accepts has no
// race in twenty interleavings and the original's bits; a race that it rejects, sim reports. More: build/bin/judge
// --toys 1000 1 20 both
TEST(Judge, NeverDisagree) {
  for (const format::Bundle &bundle : {pipeline(2), halves(), groups(), offloaded()}) {
    Judgement judgement = judgeMany(bundle, "toy.par", 36, 3, {3, 20}, true);
    EXPECT_EQ(judgement.total, 36u);
    EXPECT_TRUE(judgement.disagreements.empty()) << toy::format(judgement);
    EXPECT_TRUE(judgement.careful.empty()) << toy::format(judgement);
    uint64_t rejected = 0, accepted = 0;
    for (const auto &[kind, row] : judgement.rows) {
      accepted += row.accepted;
      for (const auto &[property, n] : row.rejected)
        rejected += n;
    }
    EXPECT_EQ(rejected + accepted, 36u);
    EXPECT_GE(rejected, 24u) << toy::format(judgement);
  }
}

// A mutant that crashes, and one that never ends, are told apart from one that is well.
TEST(Judge, SurvivesACrash) {
  format::Bundle bundle = pipeline(1);
  bundle.programs[0].buffers[bundle.programs[0].findBuffer("act")].at[0] = uint64_t(1) << 45;
  EXPECT_EQ(simulateApart(bundle, "toy.par", {1, 1}).trouble, "died with signal 11");
  EXPECT_EQ(simulateApart(pipeline(1), "toy.par", {1, 1}).trouble, "");
}

} // namespace
