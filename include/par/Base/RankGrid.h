// Groups of ranks that are numbered as a grid.
#pragma once

#include "par/Base/Hardware.h"

namespace par {

/// Ranks of a mesh whose numbers are the sum of a step of each axis: they fill a range, in any order of the axes.
///
///     mesh 2 x 4 of ranks 8 9 10 11 12 13 14 15: first 8, steps 4 and 1
class RankGrid {
public:
  /// `ranks`: of each place of a mesh of these sizes, the last axis the minor one; not empty. Nothing where their
  /// numbers are no such sums.
  static std::optional<RankGrid> find(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> ranks);

  /// The group of each rank along the chosen axes, if all lie alike on hosts and wider units: where each of these ends
  /// at whole axes, or at an equal part of one. Nothing where they may differ.
  std::optional<RankGroup> groupOf(llvm::ArrayRef<unsigned> chosen, const Hardware &hardware) const;

private:
  struct Axis {
    int64_t size, step;
  };
  std::optional<RankGroup::Units> unitsOf(int64_t unit, llvm::ArrayRef<unsigned> chosen, int64_t members) const;

  int64_t first = 0;
  std::vector<Axis> axes; ///< as the mesh has them
};

} // namespace par
