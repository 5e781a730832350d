// Two plans of one model side by side, for --what-if and --compare.
#pragma once

#include "par/Inspect/Facts.h"

#include "llvm/Support/raw_ostream.h"

namespace par {

/// A plan that was compiled, and what it is called above its column. Facts: keys, memory, communications, prediction.
struct ComparedPlan {
  std::string name;
  const Facts &facts;
  std::string settings = "--set"; ///< the flag that its reasons name in place of --set
};

/// The keys that differ, then time, memory of the fullest rank and communication with what forced it:
///
///                                         as it is    zero.level=1   difference
///     zero.level                                 -               1
///     step                                  9.4 ms          9.6 ms       +2.1 %
///     peak of a rank                      12.5 MiB        11.6 MiB     -906 KiB
///     communication of a rank in a step
///       dp  all_reduce                 1 x 906 KiB               -
///             as it is: 3d.yaml:6: batch.over is dp, so sums over the batch are reduced over its ranks
void printDifference(const ComparedPlan &one, const ComparedPlan &other, llvm::raw_ostream &os);

} // namespace par
