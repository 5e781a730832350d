#pragma once

#include "par/Phases/Propagate/Layouts.h"

namespace par {

/// Spreads axes through a step's ops and loops, after its values are joined.
class Spread {
public:
  using RulesOfOps = llvm::DenseMap<mlir::Operation *, ShardingRule>;
  /// `fragments` as they run.
  Spread(StepOp step, llvm::ArrayRef<FragmentOp> fragments, const RulesOfOps &rules, Layouts &layouts);

  /// To the fixpoint: every round looks at every op forwards, then backwards.
  void run();
  /// If one axis shards different dims of a whole and of its part (a carried value is read sharded by rows and computed
  /// sharded by columns), neither can follow the other: both keep only their common axes.
  void settleLoops();

private:
  /// An op that axes spread through.
  struct Visit {
    struct Side {
      Layout *layout;
      mlir::RankedTensorType type;
      llvm::ArrayRef<DimFactors> dims;
    };
    const ShardingRule *rule;
    MeshAttr mesh;
    llvm::SmallVector<Side, 4> sides = {}; ///< its operands, then its results
    uint64_t seen = 0;                     ///< when it was looked at last
  };

  void addOp(mlir::Operation &op, const ShardingRule &rule);
  void addLoop(LoopOp loop);
  static llvm::SmallVector<Axes> mergeFactors(const Visit &visit);
  bool spreadThrough(Visit &visit);
  bool spreadLoops();

  Layouts &layouts;
  std::vector<Visit> visits;
  /// Values that a loop slices or stacks, and the part of one microbatch.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> parts;
};

} // namespace par
