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
///
/// Beside them backward has gradients of what it passes. With one microbatch those of variables are no sums that are
/// there all the time: each begins to live where backward passes the last reader of its variable.
class Segments {
public:
  explicit Segments(const FragmentPair &pair);

  llvm::ArrayRef<PlacedValue> getValues() const { return values; }
  unsigned getPlaces() const { return places; }
  /// Bytes beside residuals while backward is at a place: gradients of the op's operands and results, and with one
  /// microbatch those of variables.
  int64_t getBytesBeside(unsigned place) const { return beside[place]; }

  /// Cuts with the lowest peak, and those with fewer saved bytes at a higher one, the lowest peak first.
  std::vector<std::vector<unsigned>> findCuts() const;
  /// Cuts into segments of at most a half, a quarter, ... of all bytes of residuals, with the fewest saved bytes: where
  /// gradients make the peak, its segment should be small, wherever it is.
  std::vector<std::vector<unsigned>> findEvenCuts() const;
  /// The values that cross one of the cuts.
  ValueSet findCrossing(llvm::ArrayRef<unsigned> cuts) const;

private:
  struct Cutting {
    std::vector<unsigned> cuts;
    int64_t peak = 0, saved = 0;
  };
  void findBytesBeside(const FragmentPair &pair, const llvm::DenseMap<mlir::Operation *, unsigned> &place);
  void findCandidates();
  void addUpBytes();
  using Allowed = llvm::function_ref<bool(int64_t saved, size_t from, size_t to)>;
  std::optional<Cutting> cutWhere(Allowed allows) const;
  std::optional<Cutting> cutBelow(int64_t peak) const;

  unsigned places = 0;
  std::vector<PlacedValue> values;
  std::vector<int64_t> beside; ///< by place
  /// Places for a cut: 0, places that fewer bytes cross than their neighbours, the end.
  std::vector<unsigned> candidates;
  /// By two candidates: bytes that a cut at the second adds to one at the first; the most bytes of residuals between
  /// them, and beside, while backward is there.
  std::vector<std::vector<int64_t>> crossing, residuals;
  std::vector<int64_t> residualsBefore; ///< by candidate: bytes of residuals that are made before it
};

} // namespace par
