#pragma once

#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/VariableTable.h"

namespace par {

/// Time of a value of a step with the batch sliced into microbatches.
enum class Time {
  Invariant, ///< the same for every microbatch
  Sliced,    ///< a microbatch needs its slice along one dim
  Sum,       ///< a sum over the batch: each microbatch gives a part
  After,     ///< known when the loop has ended
};

struct BatchTime {
  Time time = Time::Invariant;
  int64_t dim = -1; ///< Sliced: which dim; -1 if one microbatch is the whole batch and the dim is unknown
  int64_t outer =
      1; ///< Sliced: elements of that dim before the batch: T where (T, B) are one dim; a slice is then strided
  bool dataOnly = true; ///< depends only on inputs, constants and buffers, and on no sum
  bool between = false; ///< depends on a sum of data only: known when the loop of data sums has ended
  bool early = false;   ///< depends on a sum of weights and data that a first pass of forward makes
};

/// The factor of a dim that holds the batch, and the number of elements of that factor before it.
struct BatchFactor {
  unsigned factor = 0;
  int64_t outer = 1;

  bool operator==(const BatchFactor &other) const = default;
  /// The batch factor of a dim made of these factors, with `outer` elements before the batch; nothing if the batch is
  /// no part of one factor. `([t, b]) -> ([(t b)])`, read backwards with outer = t, gives b.
  static std::optional<BatchFactor> find(const ShardingRule &rule, mlir::ArrayRef<unsigned> dim, int64_t outer);
  /// The elements before it in such a dim.
  int64_t outerIn(const ShardingRule &rule, mlir::ArrayRef<unsigned> dim) const;
};

/// The places that need an op.
enum Place : unsigned { InDataLoop = 1, InLoop = 2, Behind = 4 };

/// The classification of every value of a step, and the places of every op.
class BatchTimes {
public:
  VariableTable variables;
  /// Fails with an error at the op that couples microbatches.
  static mlir::FailureOr<BatchTimes> compute(StepOp step, int64_t microbatches);

  const BatchTime &of(mlir::Value value) const { return times.find(value)->second; }
  /// Places of an op, a union of Place.
  unsigned placesOf(mlir::Operation *op) const { return places.lookup(op); }
  /// Whether the loop of data sums computes the value first and hands it on. So it does with sums of forward that
  /// slices of the batch need (the shares of tokens in a router's balance loss): forward runs once more for them.
  bool isDataSum(mlir::Value value) const {
    const BatchTime &time = of(value);
    return time.time == Time::Sum && (time.dataOnly || early.contains(value));
  }

private:
  explicit BatchTimes(StepOp step) : variables(step) {}
  mlir::LogicalResult classifyAll(StepOp step);
  mlir::LogicalResult classify(mlir::Operation *op);
  mlir::LogicalResult classifyRead(ReadOp read);
  mlir::LogicalResult classifyCarried(WriteOp write);
  bool addEarly(mlir::Operation *op);
  mlir::LogicalResult refuseCoupling(mlir::Operation *op);
  mlir::LogicalResult classifySliced(mlir::Operation *op);
  mlir::FailureOr<std::optional<BatchFactor>> findBatch(mlir::Operation *op, const ShardingRule &rule) const;
  void placeBatchOfOne(StepOp step);
  void place(StepOp step);

  int64_t microbatches = 1;
  /// With one microbatch: sums over the batch are known in the loop, and nothing is summed after it.
  bool whole = false;
  bool needsWhole = false; ///< set if one microbatch needs that
  /// Sums that a first pass of forward computes, and whether one more is needed.
  llvm::DenseSet<mlir::Value> early;
  bool foundEarly = false;
  llvm::DenseMap<mlir::Value, BatchTime> times;
  llvm::DenseMap<mlir::Operation *, unsigned> places;
};

} // namespace par
