#pragma once

#include "llvm/IR/PassManager.h"

namespace par::cpu {

/// Prefetches the lines that an innermost loop reads a few KiB later. A kernel reads tensors that other kernels wrote
/// long before; the processor's own prefetcher starts again at every page, and leaves a third of one core's bandwidth
/// unused.
///
/// Expects loops that are vectorized and unrolled. A stream is an address that grows by a constant each iteration; each
/// line of a stream is prefetched once. Addresses that are the same in all iterations of a surrounding loop (a row that
/// is read again for every other row) stay in the cache and are not prefetched. A line after a buffer's end may be
/// prefetched: that reads nothing.
struct PrefetchStreams : llvm::PassInfoMixin<PrefetchStreams> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace par::cpu
