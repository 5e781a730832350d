// Classes of ranks that have equal values. Ranks of one program compute the same expression of different data. A
// *spread* says on which data: a class for each rank of the world, so that two ranks have equal values if expression
// and class are equal. A class is a set of atoms; an atom is one class of a partition of the ranks, as that of a tensor
// by rectangles. So a value that depends on two tensors has the union of both, once, however often it is used. There
// are few partitions in a bundle, and each union is made once: the cost of an instruction does not grow with the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace par::verify {

class RankClasses {
public:
  /// Index of a spread. 0: equal on all ranks.
  using Spread = uint32_t;

  explicit RankClasses(uint32_t ranks);

  /// Ranks are equal where their keys are. A rank with `noKey` has no such value.
  Spread byKeys(const std::vector<uint64_t> &keys);
  /// The spread of a value that depends on both.
  Spread both(Spread a, Spread b);
  /// Each rank has the class that another rank has in the spread `which`; none where that is noRank. `own`: classes
  /// stay as they are, so that both sides of a transfer have the same; it becomes false if a rank has a class of its
  /// own in that spread, which would be mistaken for the other one's.
  Spread moved(const std::vector<Spread> &from, const std::vector<uint32_t> &which, const std::vector<uint32_t> &source,
               bool &own);
  uint32_t classOf(Spread spread, uint32_t rank) const { return spreads[spread][rank]; }

  static constexpr uint64_t noKey = ~uint64_t(0);
  static constexpr uint32_t noRank = ~uint32_t(0);

private:
  Spread intern(std::vector<uint32_t> classes);
  uint32_t internClass(std::vector<uint64_t> atoms);
  uint32_t join(uint32_t a, uint32_t b);

  uint32_t ranks;
  std::vector<std::vector<uint32_t>> spreads;
  /// Lists have a number for each rank: a comparison of two often comes to the last ones.
  struct Hash {
    size_t operator()(const std::vector<uint32_t> &list) const;
  };
  std::unordered_map<std::vector<uint32_t>, Spread, Hash> known;
  std::vector<std::vector<uint64_t>> classes; ///< sorted atoms
  std::map<std::vector<uint64_t>, uint32_t> knownClasses;
  std::unordered_map<std::vector<uint32_t>, uint32_t, Hash> partitions;
  std::unordered_map<uint64_t, Spread> unions;
  std::unordered_map<uint64_t, uint32_t> joins;
};

} // namespace par::verify
