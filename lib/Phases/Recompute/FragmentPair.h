#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// In the order in which they were found.
using ValueSet = llvm::SetVector<mlir::Value>;

/// A forward and a backward of one stage in one loop, and the values that the one saves for the other.
class FragmentPair {
public:
  FragmentPair(RunOp forwardRun, RunOp backwardRun);

  /// All pairs in the steps of a module.
  static std::vector<FragmentPair> findAll(mlir::ModuleOp module);

  FragmentOp getForward() const { return forward; }
  FragmentOp getBackward() const { return backward; }
  RunOp getBackwardRun() const { return backwardRun; }
  /// Values inside the forward that the backward takes, each once.
  ValueSet getResiduals() const;
  /// The values of `saved` that the backward can compute instead: from other saved values or from arguments that it
  /// has, by ops that fuse or by ops that only the backward needs. With `keepOperands` operands of the forward's
  /// matmuls stay saved. An operand computed only from variables (a weight in bf16) is the same in every microbatch, so
  /// with several in flight it is recomputed too.
  llvm::DenseSet<mlir::Value> findCheap(const ValueSet &saved, bool keepOperands, int64_t inFlight = 1) const;
  /// Whether the backward has an argument of the forward without a copy for each microbatch.
  bool isAtHand(mlir::BlockArgument argument) const;
  /// Whether an argument of the forward comes from another run of the loop, for each microbatch.
  bool isReceived(mlir::BlockArgument argument) const;
  /// Whether an argument of the forward is the same in every microbatch.
  bool isMadeBeforeLoop(mlir::BlockArgument argument) const;
  /// Values that follow from the forward's arguments by ops that fuse, where these are available to the backward.
  llvm::DenseSet<mlir::Value> findFree() const;
  /// Rewrites the pair: the backward takes the values that `keep` accepts, and the forward's arguments, and
  /// computes all else that it needs just before its first use.
  void recompute(llvm::function_ref<bool(mlir::Value)> keep);

private:
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
  /// The forward's values that the new backward arguments stand for, in order.
  llvm::SmallVector<mlir::Value> taken;
};

/// The step-level type of a value that only one stage's fragments use: the ranks' values side by side in the order of
/// ranks (scalars: added up).
DistType distOfShards(mlir::RankedTensorType local, mlir::FlatSymbolRefAttr stage, MeshAttr mesh);

/// Erases unused ops without effects.
void eraseDeadOps(mlir::Block &block);

} // namespace par
