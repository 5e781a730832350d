#pragma once

#include "par/Costs/CostTable.h"
#include "par/Dialect/Par.h"

namespace par {

/// A collective and the matmuls that it overlaps with, split into chunks together: data, no IR.
struct PairCost {
  format::CollKind kind = format::CollKind::AllGather;
  int64_t bytes = 0; ///< of one rank's shard
  RankGroup group;
  struct Matmul {
    MatmulShape shape;
    int64_t MatmulShape::*cut = &MatmulShape::m; ///< which of its sizes chunks divide
  };
  llvm::SmallVector<Matmul> products;
  int64_t moved = 0; ///< bytes read and written to split operands and to join results, if there are several chunks
  int64_t moves = 0; ///< launches of these in each chunk
  int64_t around =
      0; ///< bytes read and written, in all chunks, to bring ranks' blocks together or apart beside the collective
};

/// ns for all chunks, if one chunk's collective overlaps with another's matmuls. With one chunk the collective and the
/// matmuls run one after the other.
int64_t pairTime(const PairCost &pair, int64_t chunks, const CostTable &costs);

} // namespace par
