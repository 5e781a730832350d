// What messages call a rank: by the axes of the plan, also where the compiler split one into its factors.
#include "par/core/Session.h"

#include <gtest/gtest.h>

using namespace par;

static format::Manifest manifestOf(std::vector<format::MeshAxis> mesh, std::vector<uint32_t> coordinate) {
  format::Manifest manifest;
  manifest.mesh = std::move(mesh);
  manifest.ranks.push_back({0, std::move(coordinate)});
  return manifest;
}

TEST(RankNames, FactorsOfAnAxisAreOneAxis) {
  format::Manifest manifest = manifestOf({{"pp", 2}, {"dp.0", 3}, {"dp.1", 2}, {"tp", 2}}, {1, 2, 1, 0});
  EXPECT_EQ(core::coordinatesOf(manifest, 0), "pp 1, dp 5, tp 0");
  EXPECT_EQ(core::meshOf(manifest), "pp 2 x dp 6 x tp 2");
}

TEST(RankNames, OtherNamesWithADotStay) {
  format::Manifest manifest = manifestOf({{"x.1", 2}, {"y.0", 2}}, {1, 0});
  EXPECT_EQ(core::coordinatesOf(manifest, 0), "x.1 1, y.0 0");
  EXPECT_EQ(core::meshOf(manifestOf({}, {})), "one rank");
}
