// Offsets of buffers in one arena.
#pragma once

#include "par/Solver/Problem/ProblemText.h"
#include <optional>

namespace par {

/// An interval [begin, end) of positions in the flattened entry.
struct Life {
  int64_t begin, end;
  bool operator==(const Life &) const = default;
};

/// An item that needs one offset: one slot of a buffer, with all its lives in an entry. Microbatches 0, 2, 4 of a
/// buffer of depth 2 live in slot 0, so they are one item. Aliases are merged before.
struct PackItem {
  std::string name;
  int64_t size = 0;        ///< bytes
  std::vector<Life> lives; ///< ascending and disjoint
};

/// `Greedy`: only the greedy orders, which come within a few percent; `Search`: then a search for a better order.
enum class PackingEffort { Greedy, Search };

/// Comparisons of two items that a search may make at most, about half a second.
inline constexpr uint64_t packingComparisons = uint64_t(1) << 27;

struct Packing {
  std::vector<int64_t> offsets; ///< bytes, one per item
  int64_t arena = 0;            ///< bytes
  int64_t lowerBound = 0;       ///< the most bytes alive at one position, each item rounded up to the alignment

  std::string toText(const struct PackingProblem &problem) const;
};

/// Expects items with sizes and lives; gives each an offset, so that items alive together do not overlap, in
/// a small arena. (Dynamic storage allocation: NP-hard; greedy in several orders, then local search on the
/// order.)
///
///     problem packing
///     alignment 256                          // a multiple of 64; 256 if left out
///     item a size 1000 lives 0-4
///     item b.0 size 2048 lives 1-3 5-9       // one slot, used twice
///
/// The work is bounded by a count, never by time: the same problem has the same solution on every machine.
struct PackingProblem {
  int64_t alignment = 256;
  std::vector<PackItem> items;

  static llvm::Expected<PackingProblem> parse(ProblemText &text);
  std::string toText() const;
  /// Fails on a malformed problem: the alignment, a negative size, lives that are empty, unordered or missing.
  llvm::Error check() const;
  llvm::Expected<Packing> solve(PackingEffort effort = PackingEffort::Search,
                                uint64_t comparisons = packingComparisons) const;
  /// Offsets are aligned and inside the arena, no two items alive together overlap, the bound is right.
  llvm::Error verify(const Packing &packing) const;

  /// The smallest arena; for up to 10 items.
  int64_t solveExhaustively() const;

  int64_t alignedSize(unsigned item) const { return (items[item].size + alignment - 1) / alignment * alignment; }
  bool liveTogether(unsigned a, unsigned b) const;
  int64_t computeLowerBound() const;
};

} // namespace par
