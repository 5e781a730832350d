#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// The temporary buffers which one block fills from these parameters only and another one reads: weights that are
/// rounded, and perhaps gathered, once for all microbatches.
///
///     par.block @before {
///       %w = par.load @w : tensor<4xf32>                   // a shard of a parameter
///       %r = par.launch @convert(%w) -> tensor<4xbf16>
///       %g = par.all_gather %r -> tensor<8xbf16>
///       par.store %g to @before.0                          // found, if @forward loads it
///     }
llvm::DenseSet<mlir::Operation *> findMadeOfParameters(ProgramOp program,
                                                       llvm::function_ref<bool(BufferOp)> isParameter);

} // namespace par
