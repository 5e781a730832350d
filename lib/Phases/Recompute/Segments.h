#pragma once

#include "FragmentPair.h"

namespace par {

/// A value of a forward, by the places of ops in its body.
struct PlacedValue {
  mlir::Value value;
  unsigned made = 0, lastUse = 0; ///< places of its op, and of its last user in the forward
  int64_t bytes = 0;
  bool isFree = false;     ///< follows from the forward's arguments by ops that fuse
  bool isResidual = false; ///< the backward takes it
};

/// A forward as a list of values, and its segments: runs of ops, of which backward recomputes one at a time from the
/// values that enter it. Values that cross a cut are saved; residuals of a segment are live while its backward runs.
///
///     ops        a b c | d e f | g h         cuts 3 6
///     saved      c (read by d), f (read by g)
///     peak       max(a b c, c + d e f, c f + g h)
class Segments {
public:
  explicit Segments(const FragmentPair &pair);

  llvm::ArrayRef<PlacedValue> getValues() const { return values; }
  unsigned getPlaces() const { return places; }

  /// Cuts with the lowest peak, and those with fewer saved bytes at a higher one, the lowest peak first.
  std::vector<std::vector<unsigned>> findCuts() const;
  /// The values that cross one of the cuts.
  ValueSet findCrossing(llvm::ArrayRef<unsigned> cuts) const;

private:
  struct Cutting {
    std::vector<unsigned> cuts;
    int64_t peak = 0, saved = 0;
  };
  void findCandidates();
  void addUpBytes();
  std::optional<Cutting> cutBelow(int64_t peak) const;

  unsigned places = 0;
  std::vector<PlacedValue> values;
  /// Places for a cut: 0, places that fewer bytes cross than their neighbours, the end.
  std::vector<unsigned> candidates;
  /// By two candidates: bytes that a cut at the second adds to one at the first; residuals between them.
  std::vector<std::vector<int64_t>> crossing, residuals;
};

} // namespace par
