// Downsets of a stage_cut problem: sets of nodes closed under producers. A cut into p stages is a chain of them from
// the empty set to all nodes.
#pragma once

#include "Figures.h"
#include <map>

namespace par {

/// A downset as bits, with its sums; work less the bonds within it.
struct Downset {
  std::vector<uint64_t> bits;
  unsigned size = 0;
  CutWork work;
  int64_t weights = 0, saved = 0;

  bool has(unsigned node) const { return bits[node / 64] >> (node % 64) & 1; }
  bool contains(const Downset &other) const {
    for (size_t word = 0; word < bits.size(); ++word)
      if (other.bits[word] & ~bits[word])
        return false;
    return true;
  }
};

/// The cost that one stage between two downsets adds.
struct StagePiece {
  CutWork work; ///< of one rank for all
  int64_t weights = 0, saved = 0, received = 0;
  std::vector<int64_t> transfers; ///< for each stage that it may be; a single entry if all links are equal

  int64_t transfersInto(unsigned stage) const { return transfers.size() == 1 ? transfers.front() : transfers[stage]; }
};

/// Values and bonds that reach beyond a downset.
struct Crossing {
  std::vector<const CutValue *> values; ///< that may still have to travel, and shared weights with users beyond
  std::vector<const CutBond *> bonds;
};

class Downsets {
public:
  explicit Downsets(const StageCutProblem &problem);

  /// All of them if there are at most `maxDownsets` (`all`); otherwise the prefixes of a few topological orders.
  void collect();
  Crossing crossingOf(const Downset &set) const;
  StagePiece piece(const Downset &from, const Downset &to, const Crossing &crossing) const;
  bool fits(const StagePiece &piece, unsigned stage) const;
  /// Whether a node has its producers, or its users, at a stage or on the right side of it.
  bool mayMove(llvm::ArrayRef<unsigned> stageOf, unsigned node, unsigned stage) const;

  std::vector<Downset> sets; ///< by size
  bool all = false;

private:
  Downset extend(const Downset &set, unsigned node) const;
  bool canAdd(const Downset &set, unsigned node) const;
  void addPrefixes(unsigned choice, std::map<std::vector<uint64_t>, Downset> &found) const;

  const StageCutProblem &problem;
  std::vector<std::vector<unsigned>> before, after;
  std::vector<std::vector<const CutBond *>> bondsOf;
};

} // namespace par
