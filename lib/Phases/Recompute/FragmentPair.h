#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// A forward and a backward of one stage in one loop, and the values that the one saves for the other.
class FragmentPair {
public:
  FragmentPair(RunOp forwardRun, RunOp backwardRun);

  /// All pairs in the steps of a module.
  static std::vector<FragmentPair> findAll(mlir::ModuleOp module);

  FragmentOp getForward() const { return forward; }
  RunOp getBackwardRun() const { return backwardRun; }
  /// Values inside the forward that the backward takes, each once.
  llvm::SetVector<mlir::Value> getResiduals() const;
  /// Those of `saved` that need not be: they follow from other saved values, or from arguments that the
  /// backward has at hand, by ops that fuse, or by ops that only the backward needs. `keepOperands`: but for those that
  /// products of the forward read; of these, what is made of variables alone (a weight in bf16) is the same in every
  /// microbatch, and with several of them in flight it is not kept once for each.
  llvm::DenseSet<mlir::Value> findCheap(const llvm::SetVector<mlir::Value> &saved, bool keepOperands,
                                        int64_t inFlight = 1) const;
  /// Rewrites the pair: the backward takes the values that `keep` accepts, and the forward's arguments, and
  /// computes all else that it needs just before its first use.
  void recompute(llvm::function_ref<bool(mlir::Value)> keep);

private:
  bool isAtHand(mlir::BlockArgument argument) const;
  bool isMadeBeforeLoop(mlir::BlockArgument argument) const;
  bool isForBackwardAlone(mlir::Operation *op) const;
  mlir::Value materialize(mlir::Value value, mlir::OpBuilder &builder, llvm::function_ref<bool(mlir::Value)> keep);
  mlir::Value take(mlir::Value value);
  DistType distTypeOf(mlir::Value value) const;
  void rebuildForward();
  void rebuildBackward();

  RunOp forwardRun, backwardRun;
  FragmentOp forward, backward;
  /// Value of the forward -> value of the backward, while rewriting.
  llvm::DenseMap<mlir::Value, mlir::Value> inBackward;
  /// Values of the forward that the new backward arguments stand for, in order.
  llvm::SmallVector<mlir::Value> taken;
};

/// The step-level type of a value that only one stage's fragments know: its shards are what the ranks have, side by
/// side in the order of ranks (scalars: added up).
DistType distOfShards(mlir::RankedTensorType local, mlir::FlatSymbolRefAttr stage, MeshAttr mesh);

/// Erases ops without effects whose results nobody uses.
void eraseDeadOps(mlir::Block &block);

} // namespace par
