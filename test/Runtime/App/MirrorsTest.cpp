// Each part of a rank's state is on another host or in a mirror there; a mirror stays until the next one is whole.
#include "../../../runtime/test/TrainingToy.h"

#include "save/MirrorMemory.h"
#include "save/Replicas.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace par;

namespace {

/// Four ranks: `holders` of each rectangle of the first tensor, which has as many; all hold the other ones.
format::Bundle fourRanks(std::vector<std::vector<uint32_t>> holders) {
  format::Bundle bundle = toy::training(1);
  format::Manifest &m = bundle.manifest;
  m.ranks.assign(4, m.ranks[0]);
  for (format::Tensor &tensor : m.tensors)
    tensor.layout.parts = {{{std::vector<int64_t>(tensor.layout.shape.size()), tensor.layout.shape, {0, 1, 2, 3}}}};
  format::Rectangles::List parts;
  for (std::vector<uint32_t> &ranks : holders) {
    parts.push_back(m.tensors[0].layout.parts[0]);
    parts.back().ranks = std::move(ranks);
  }
  m.tensors[0].layout.parts = parts;
  return bundle;
}

std::vector<uint32_t> neighbours(const std::vector<uint32_t> &hostOf) {
  core::MirrorPlan plan(fourRanks({{0, 1, 2, 3}}), hostOf);
  std::vector<uint32_t> all;
  for (uint32_t rank = 0; rank < hostOf.size(); ++rank) {
    all.push_back(plan.neighbourOf(rank));
    EXPECT_EQ(plan.mirroredBy(all.back()), rank);
  }
  return all;
}

TEST(Mirrors, lieOnAnotherHost) {
  EXPECT_EQ(neighbours({0, 0}), (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(neighbours({0, 0, 0}), (std::vector<uint32_t>{1, 2, 0}));
  EXPECT_EQ(neighbours({0, 0, 1, 1}), (std::vector<uint32_t>{2, 3, 0, 1}));
  EXPECT_EQ(neighbours({0, 1, 0, 1}), (std::vector<uint32_t>{1, 0, 3, 2}));
  EXPECT_EQ(neighbours({0, 0, 1, 2}), (std::vector<uint32_t>{2, 3, 0, 1}));
  // The large host cannot give all of its mirrors away.
  EXPECT_EQ(neighbours({0, 0, 0, 1}), (std::vector<uint32_t>{3, 0, 1, 2}));
}

TEST(Mirrors, holdWhatNoRankOfAnotherHostHolds) {
  format::Bundle lone = fourRanks({{0}, {1}, {2}, {3}}), pairs = fourRanks({{0, 1}, {2, 3}});
  uint64_t first = core::keptParts(lone, 0)[0].bytes;
  std::vector<core::MirrorRange> ranges = core::mirrorRanges(lone, 2, false);
  EXPECT_EQ(core::bytesOf(ranges), first);
  EXPECT_EQ(core::placeInMirror(ranges, core::keptParts(lone, 2)[0]), 0u);
  EXPECT_EQ(core::placeInMirror(ranges, core::keptParts(lone, 2)[1]), std::nullopt);
  EXPECT_EQ(core::placeInMirror(core::mirrorRanges(lone, 2, true), core::keptParts(lone, 2)[1]), first);
  EXPECT_FALSE(core::MirrorPlan(lone, {0, 0, 1, 1}).whole(0));
  EXPECT_EQ(core::bytesOf(core::mirrorRanges(pairs, 0, core::MirrorPlan(pairs, {0, 1, 0, 1}).whole(0))), 0u);
  EXPECT_EQ(core::bytesOf(core::mirrorRanges(pairs, 0, core::MirrorPlan(pairs, {0, 0, 0, 0}).whole(0))), 0u);
  EXPECT_TRUE(core::MirrorPlan(pairs, {0, 0, 1, 1}).whole(0)); // both replicas would be lost with the host
}

TEST(Mirrors, giveALostRankWhatNoOtherHolds) {
  format::Bundle bundle = fourRanks({{0}, {1}, {2}, {3}});
  EXPECT_EQ(core::transfersTo(bundle, 2, {0, 1, 3}).missing, bundle.manifest.tensors[0].name);
  core::Transfers transfers = core::transfersTo(bundle, 2, {0, 1, 3}, core::MirrorAt{3, {2, false, 8}});
  EXPECT_EQ(transfers.missing, "");
  ASSERT_GE(transfers.all.size(), 2u);
  for (const core::Transfer &transfer : transfers.all) {
    EXPECT_EQ(transfer.mirrored, transfer.toAt == 0) << transfer.toAt;
    EXPECT_EQ(transfer.from, transfer.mirrored ? 3u : 0u);
  }
}

class Memories : public testing::Test {
protected:
  Memories() {
    for (int &descriptor : descriptors)
      descriptor = memfd_create("mirror", MFD_CLOEXEC);
  }
  ~Memories() override {
    for (int descriptor : descriptors)
      close(descriptor);
  }
  void take(core::MirrorMemory &memory, const core::HeldMirror &mirror, uint64_t stays) {
    std::span<std::byte> room = memory.begin(mirror, stays);
    std::fill(room.begin(), room.end(), static_cast<std::byte>(mirror.rank + 10 * mirror.step));
    memory.end();
  }
  std::vector<uint64_t> stepsIn(const core::MirrorMemory &memory) {
    std::vector<uint64_t> steps;
    for (const core::HeldMirror &mirror : memory.held()) {
      steps.push_back(mirror.step);
      EXPECT_EQ(memory.bytesOf(mirror)[0], static_cast<std::byte>(mirror.rank + 10 * mirror.step));
    }
    std::sort(steps.begin(), steps.end());
    return steps;
  }
  format::Bundle bundle = fourRanks({{0}, {1}, {2}, {3}});
  std::array<int, 2> descriptors{};
};

TEST_F(Memories, holdTheNewestWholeMirror) {
  core::MirrorMemory memory(bundle, descriptors);
  EXPECT_TRUE(memory.held().empty());
  take(memory, {1, false, 1}, 0);
  take(memory, {1, false, 2}, 1);
  EXPECT_EQ(stepsIn(memory), (std::vector<uint64_t>{1, 2}));
  memory.begin({1, false, 3}, 2); // and the process ends
  core::MirrorMemory again(bundle, descriptors);
  EXPECT_EQ(stepsIn(again), (std::vector<uint64_t>{2}));
  EXPECT_EQ(again.held()[0], (core::HeldMirror{1, false, 2}));
}

// Another rank is the neighbour now; the mirror of the old one stays until it may go.
TEST_F(Memories, holdMirrorsOfTwoRanks) {
  core::MirrorMemory memory(bundle, descriptors);
  take(memory, {1, false, 4}, 0);
  take(memory, {2, true, 4}, 4);
  EXPECT_EQ(stepsIn(memory), (std::vector<uint64_t>{4, 4}));
  take(memory, {2, true, 5}, 4);
  EXPECT_EQ(stepsIn(memory), (std::vector<uint64_t>{4, 5}));
  for (const core::HeldMirror &mirror : memory.held())
    EXPECT_EQ(mirror.rank, 2u);
  format::Bundle other = bundle;
  other.manifest.planHash = other.manifest.bundleHash;
  EXPECT_TRUE(core::MirrorMemory(other, descriptors).held().empty());
}

TEST(Mirrors, areToldAsText) {
  std::string text = core::HeldMirror{12, true, 345}.encode() + core::HeldMirror{0, false, 7}.encode();
  EXPECT_EQ(core::HeldMirror::decode(text), (core::HeldMirror{12, true, 345}));
  EXPECT_EQ(core::HeldMirror::decode(text), (core::HeldMirror{0, false, 7}));
  EXPECT_EQ(text, "");
}

} // namespace
