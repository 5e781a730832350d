// Names of ranks in messages: by the axes of the plan, even if the compiler split one into its factors.
#include "par/session/Session.h"

#include <gtest/gtest.h>

using namespace par;

/// A role with a rank at each place of a mesh, the last axis counting fastest.
static void addRole(format::Manifest &manifest, const std::vector<uint32_t> &sizes, std::vector<uint32_t> at) {
  if (at.size() == sizes.size()) {
    manifest.ranks.push_back({manifest.roles, std::move(at)});
    return;
  }
  at.push_back(0);
  for (uint32_t size = sizes[at.size() - 1]; at.back() < size; ++at.back())
    addRole(manifest, sizes, at);
}

static format::Manifest manifestOf(std::vector<format::MeshAxis> mesh) {
  format::Manifest manifest;
  manifest.mesh = std::move(mesh);
  std::vector<uint32_t> sizes;
  for (const format::MeshAxis &axis : manifest.mesh)
    sizes.push_back(axis.size);
  addRole(manifest, sizes, {});
  manifest.roles = 1;
  return manifest;
}

TEST(RankNames, FactorsOfAnAxisAreOneAxis) {
  format::Manifest manifest = manifestOf({{"pp", 2}, {"dp.0", 3}, {"dp.1", 2}, {"tp", 2}});
  EXPECT_EQ(core::coordinatesOf(manifest, 22), "pp 1, dp 5, tp 0");
  EXPECT_EQ(core::meshOf(manifest), "pp 2 x dp 6 x tp 2");
}

/// Stages of 6, 4 and 1 ranks: of the first axis each has one place.
TEST(RankNames, StagesMayHaveOtherMeshes) {
  format::Manifest manifest;
  manifest.mesh = {{"stage", 3}, {"dp.0", 3}, {"dp.1", 2}, {"tp", 2}};
  std::vector<std::vector<uint32_t>> sizes{{3, 2, 1}, {1, 2, 2}, {1, 1, 1}};
  for (const std::vector<uint32_t> &own : sizes) {
    addRole(manifest, {1, own[0], own[1], own[2]}, {});
    ++manifest.roles;
  }
  EXPECT_EQ(core::meshOf(manifest), "dp 6 + dp 2 x tp 2 + one rank");
  EXPECT_EQ(core::coordinatesOf(manifest, 5), "stage 0, dp 5, tp 0");
  EXPECT_EQ(core::coordinatesOf(manifest, 9), "stage 0, dp 1, tp 1");
}

TEST(RankNames, OtherNamesWithADotStay) {
  format::Manifest manifest = manifestOf({{"x.1", 2}, {"y.0", 2}});
  EXPECT_EQ(core::coordinatesOf(manifest, 2), "x.1 1, y.0 0");
  EXPECT_EQ(core::meshOf(manifestOf({})), "one rank");
}
