#pragma once

#include "llvm/IR/PassManager.h"

namespace par::cpu {

/// Asks for the lines that an innermost loop comes to in a few KiB. A kernel reads tensors that other kernels wrote
/// long before; the processor's own prefetcher begins anew at every page and leaves a third of one core's bandwidth
/// unused.
///
/// Expects loops that are vectorized and unrolled. A stream is an address that grows by a constant each turn; each line
/// of a stream is asked for once. Addresses that a surrounding loop does not change, a row that is read again for every
/// other row, stay in the cache and are left alone. A line beyond a buffer's end may be asked for: that reads nothing.
struct PrefetchStreams : llvm::PassInfoMixin<PrefetchStreams> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace par::cpu
