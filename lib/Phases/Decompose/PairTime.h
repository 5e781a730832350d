#pragma once

#include "par/Base/Hardware.h"
#include "par/Dialect/Par.h"

namespace par {

/// A collective and the products beside it, of which each chunk does a share: data, no IR.
struct PairCost {
  format::CollKind kind = format::CollKind::AllGather;
  int64_t bytes = 0; ///< of one rank's shard
  RankGroup group;
  struct Product {
    int64_t flops = 0, bytes = 0;
    format::DType type = format::DType::F32;
  };
  llvm::SmallVector<Product> products;
  int64_t moved = 0; ///< bytes read and written to cut operands and to join results, where there are chunks
  int64_t moves = 0; ///< launches of these in each chunk
  int64_t around =
      0; ///< bytes read and written, in all chunks, to bring ranks' blocks together or apart beside the collective
};

/// ns until all is done in so many chunks, of which one's collective runs beside another's products. One chunk: one
/// after the other, and nothing is cut.
int64_t pairTime(const PairCost &pair, int64_t chunks, const Hardware &hardware);

/// The format that a tensor's elements have in products.
format::DType formatOf(mlir::Type tensor);

} // namespace par
