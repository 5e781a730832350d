// Every byte of a rank's state is in one piece, and no two pieces lie over each other in a rank's memory.
#include "../../../runtime/test/TrainingToy.h"

#include "save/KeptShares.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace par;

namespace {

/// Each of so many ranks holds and trains all of the toy; `apart`: but the first tensor, of which each has its own.
format::Bundle replicated(uint32_t ranks, bool apart = false) {
  format::Bundle bundle = toy::training(1);
  format::Manifest &m = bundle.manifest;
  std::vector<uint32_t> all(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    all[rank] = rank;
  m.ranks.assign(ranks, m.ranks[0]);
  for (format::Tensor &tensor : m.tensors) {
    std::vector<int64_t> start(tensor.layout.shape.size());
    tensor.layout.parts = {{{start, tensor.layout.shape, all}}};
  }
  if (apart)
    for (format::Rectangles::List own = {}; uint32_t rank : all) {
      own.push_back(m.tensors[0].layout.parts[0]);
      own.back().ranks = {rank};
      m.tensors[0].layout.parts = own;
    }
  return bundle;
}

/// Checks the pieces of all ranks; returns how many bytes each one copies.
std::vector<uint64_t> check(const format::Bundle &bundle, const std::vector<uint32_t> &seen) {
  std::vector<uint64_t> copied;
  std::map<uint32_t, std::map<uint64_t, std::pair<uint64_t, const format::Tensor *>>> memory; // by rank and place
  for (uint32_t rank : seen) {
    core::KeptShares shares(bundle, rank, seen);
    std::map<uint32_t, std::map<uint64_t, uint64_t>> ends; // by part and place in it
    for (const core::KeptPiece &piece : shares.pieces()) {
      EXPECT_TRUE(ends[piece.part].emplace(piece.at, piece.at + piece.bytes).second);
      EXPECT_LE(piece.heldAt + piece.bytes, shares.copiedBy(piece.holder));
      auto [held, isNew] =
          memory[piece.holder].emplace(piece.heldAt, std::pair(piece.bytes, shares.parts()[piece.part].tensor));
      EXPECT_EQ(held->second.first, piece.bytes) << "ranks see a piece differently";
      EXPECT_EQ(held->second.second, shares.parts()[piece.part].tensor);
    }
    for (uint32_t part = 0; part < shares.parts().size(); ++part) {
      uint64_t covered = 0;
      for (const auto &[at, end] : ends[part]) {
        EXPECT_EQ(at, covered) << "pieces of a part do not follow each other";
        covered = end;
      }
      EXPECT_EQ(covered, shares.parts()[part].bytes);
    }
    copied.push_back(shares.copiedBy(rank));
  }
  for (const auto &[holder, pieces] : memory)
    for (uint64_t end = 0; const auto &[at, piece] : pieces) {
      EXPECT_GE(at, end) << "pieces lie over each other";
      end = at + piece.first;
    }
  return copied;
}

TEST(KeptShares, divideWhatAllHold) {
  uint64_t whole = check(replicated(1), {0})[0];
  for (uint32_t ranks : {2u, 3u, 8u}) {
    std::vector<uint32_t> seen;
    while (seen.size() < ranks)
      seen.push_back(uint32_t(seen.size()));
    uint64_t sum = 0, most = 0;
    for (uint64_t bytes : check(replicated(ranks), seen))
      sum += bytes, most = std::max(most, bytes);
    EXPECT_LT(most, whole) << ranks;
    EXPECT_LE(sum, whole + 64 * ranks * 8) << "bytes are copied twice";
  }
}

TEST(KeptShares, areWholeWhereARankSeesNoOther) {
  uint64_t whole = check(replicated(1), {0})[0];
  for (uint32_t rank : {0u, 2u}) {
    EXPECT_EQ(check(replicated(3), {rank}), std::vector<uint64_t>{whole});
    core::KeptShares shares(replicated(3), rank, {rank});
    EXPECT_FALSE(shares.divided());
    for (const core::KeptPiece &piece : shares.pieces())
      EXPECT_EQ(piece.heldAt, shares.parts()[piece.part].at);
  }
}

TEST(KeptShares, leaveOutWhatARankHoldsAlone) {
  format::Bundle bundle = replicated(2, true);
  check(bundle, {0, 1});
  core::KeptShares shares(bundle, 0, {0, 1});
  for (const core::KeptPiece &piece : shares.pieces())
    if (shares.parts()[piece.part].tensor == &bundle.manifest.tensors[0]) {
      EXPECT_EQ(piece.holder, 0u);
      EXPECT_EQ(piece.bytes, shares.parts()[piece.part].bytes);
    }
  EXPECT_TRUE(shares.divided());
}

} // namespace
