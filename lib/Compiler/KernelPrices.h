// Times of the kernels and collectives of a block, by group.
#pragma once

#include "par/Costs/CostTable.h"
#include "par/Phases/Annotate/CutPrices.h"
#include "par/Phases/Kernels/KernelGroups.h"

#include <map>

namespace par {

/// The kinds of blocks that a step has.
enum class BlockKind { Forward, Backward, Update };

/// Adds up what the blocks of a one-stage program take in one call of their entry.
class KernelPrices {
public:
  KernelPrices(const CutGroups &groups, const CostTable &costs, llvm::StringRef device);

  /// Adds a block that runs `runs` times in a step of so many microbatches.
  void add(BlockOp block, BlockKind kind, int64_t runs, int64_t microbatches);
  /// Per microbatch, updates per step.
  CutPrices take(int64_t microbatches);

private:
  using Part = llvm::SmallVector<mlir::Operation *>;
  using Parts = std::map<unsigned, Part>;

  std::optional<unsigned> groupOf(mlir::Operation *op) const;
  std::optional<unsigned> groupOfLoads(const KernelGroup &kernel);
  Parts partsOf(const KernelGroup &kernel, unsigned fallback);
  int64_t timeOf(const KernelGroup &kernel, const llvm::SmallPtrSetImpl<mlir::Operation *> &ops) const;
  /// ns of copies to accumulators that the kernel reads and does not write in place.
  int64_t copiesOf(const KernelGroup &kernel) const;
  void addKernel(const KernelGroup &kernel, const Parts &parts, CutWork unit);

  const CutGroups &groups;
  const CostTable &costs;
  std::string device;
  std::vector<CutWork> work;
  std::map<std::pair<unsigned, unsigned>, CutWork> bonds;
  mlir::SymbolTableCollection symbols;
};

} // namespace par
