// Dims of a step's values that have the same sharding over one axis, by the ops' sharding rules.
#pragma once

#include "par/Dialect/Interfaces/ShardingRule.h"

#include "llvm/ADT/IntEqClasses.h"

namespace par {

/// One op's rule over classes.
struct OpDims {
  /// A factor that is the major one of a dim, and so can be sharded.
  struct Part {
    unsigned factor;
    unsigned dim; ///< one of its dims
  };
  mlir::Operation *op;
  ShardingRule rule;
  llvm::SmallVector<Part> parts;
  /// Dims of values that have to be whole at this op: a minor part of theirs is sharded, or the degree does not divide
  /// the major one.
  llvm::SmallVector<std::pair<mlir::Value, unsigned>> whole;
};

/// Numbers each dim of each value, and unites those that one factor joins.
class DimClasses {
public:
  DimClasses(StepOp step, int64_t degree);

  llvm::ArrayRef<OpDims> ops() const { return visits; }
  /// The number of a value's dim; numbers of one class are those with an equal `classOf`.
  unsigned numberOf(mlir::Value value, int64_t dim) const { return first.lookup(value) + dim; }
  unsigned classOf(unsigned number) const { return classes[number]; }
  unsigned classOf(mlir::Value value, int64_t dim) const { return classes[numberOf(value, dim)]; }
  bool knows(mlir::Value value) const { return first.contains(value); }
  /// Whether an op has two factors of the class, so that an axis cannot shard all of it.
  bool isCrossed(unsigned ofClass) const { return crossed.contains(ofClass); }
  unsigned count() const { return classes.getNumClasses(); }

private:
  void number(StepOp step);
  void visit(mlir::Operation &op, int64_t degree);
  bool isUniform(mlir::Value value) const;

  llvm::DenseMap<mlir::Value, unsigned> first;
  unsigned numbers = 0;
  llvm::IntEqClasses classes;
  std::vector<OpDims> visits;
  llvm::DenseSet<unsigned> crossed;
};

} // namespace par
