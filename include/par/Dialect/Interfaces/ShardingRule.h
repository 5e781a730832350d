#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// The meaning of a factor for the op when it is sharded.
enum class FactorKind {
  Parallel, ///< in operands and result: shards compute shards
  Sum,      ///< contracted: each shard gives a part of a sum
  Max,      ///< reduced by maximum: shards need an all_reduce max
  Min,
  And,
  Or,
  Indexed,         ///< addressed by values: the local op shifts and masks, the result is a sum over the shards
  NeedReplication, ///< may not be sharded
  Decompose,       ///< may be sharded after the op is decomposed
};

/// One name in the rule.
struct Factor {
  std::string name;
  int64_t size;
  FactorKind kind = FactorKind::Parallel;
};

/// The factors that make up one dim, major first; none: a dim of size 1 that corresponds to nothing.
using DimFactors = llvm::SmallVector<unsigned, 2>;

/// How dims correspond: `([b, s, (h d)], [(h d), e]) -> ([b, s, e]) {b=8, s=32, h=4, d=16, e=64} sum={h, d}
/// linear=[[0], [1]]`. `linear` lists the sets of operands that may together be unreduced sums over an axis,
/// the result then being one too (add: [[0, 1]]; multiply: [[0], [1]]; max: []).
struct ShardingRule {
  llvm::SmallVector<Factor> factors;
  llvm::SmallVector<llvm::SmallVector<DimFactors>> operands;
  llvm::SmallVector<llvm::SmallVector<DimFactors>> results;
  llvm::SmallVector<llvm::SmallVector<unsigned>> linear;

  unsigned addFactor(int64_t size, FactorKind kind = FactorKind::Parallel);
  /// Text form, parsed back by parse().
  std::string str() const;
  static mlir::FailureOr<ShardingRule> parse(llvm::StringRef text, std::string &error);
  bool operator==(const ShardingRule &other) const { return str() == other.str(); }

  /// Rule of an elementwise op with `operands` operands of one shape and `results` results.
  static ShardingRule getElementwise(llvm::ArrayRef<int64_t> shape, unsigned operands, unsigned results);
};

/// Inputs of localize besides the op.
struct LocalizeContext {
  MeshAttr mesh;
  llvm::ArrayRef<mlir::Value> operands;              ///< local operands
  llvm::ArrayRef<mlir::RankedTensorType> localTypes; ///< local result types
  llvm::ArrayRef<ShardingAttr> operandShardings;     ///< as the op takes them
  llvm::ArrayRef<ShardingAttr> resultShardings;      ///< as the op gives them (unreduced included)
};

/// Clones `op` with local operands and result types.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> localizeByCloning(mlir::Operation *op, mlir::OpBuilder &builder,
                                                                  const LocalizeContext &context);

/// First global index of this rank's shard along a dim sharded over `axes` in shards of `shard`: an i64 scalar.
mlir::Value buildShardStart(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<mlir::StringAttr> axes,
                            int64_t shard);

} // namespace par

#include "par/Dialect/Interfaces/ShardingRule.h.inc"
