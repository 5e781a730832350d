#pragma once

#include "../Segments.h"
#include "../StagePairs.h"

#include "par/Costs/CostTable.h"
#include "par/Solver/Recompute/RecomputeChoice.h"

namespace par {

/// Values that the forwards of stages on the same ranks keep for their backwards.
struct KeptValues {
  std::vector<ValueSet> saved, moved; ///< by stage; the moved ones are in the host's memory
};

/// The forwards of stages on the same ranks, each cut into segments (Segments.h), as a problem of the solver. Values
/// that cross a cut are kept, so that backward recomputes one segment at a time; there is a choice for the others.
/// While backward is at a place, its rank holds
///
///     values saved of the microbatches whose backward is to come, and of this one those made before the place
///     residuals of the place's segment up to there that are recomputed
///     moved values that backward is just reading
///     gradients beside them (Segments::getBytesBeside)
///
/// so that each place is a peak for the problem.
class Cutting {
public:
  /// `moves`: values may go to the host's memory. All arguments must outlive it.
  Cutting(llvm::ArrayRef<StagePair> stages, llvm::ArrayRef<Segments> segments, const CostTable &costs, bool moves)
      : stages(stages), segments(segments), costs(costs), moves(moves), cuts(stages.size()) {}

  /// Cuts a stage, and adds its values to the problem, with `weight` times their bytes of the budget, `lastWeight`
  /// times in the last segment.
  void addStage(unsigned index, std::vector<unsigned> stageCuts, int64_t weight, int64_t lastWeight);
  const RecomputeProblem &getProblem() const { return problem; }

  /// The place of the forward that the backward of a stage is at.
  struct Place {
    unsigned stage = 0, place = 0;
    int64_t bytes = 0; ///< at the place
  };
  /// The place with the most bytes.
  Place findPeak(const KeptValues &kept) const;
  /// The place as a peak of at most so many bytes.
  BytePeak peakAt(Place place, int64_t bytes) const;
  KeptValues keptBy(const RecomputeChoice &choice) const;

private:
  /// A value of the problem: one of a stage, or all results of an op together.
  struct Entry {
    unsigned stage;
    llvm::SmallVector<mlir::Value, 1> values;
    bool isArgument;
    unsigned made = 0, lastUse = 0;
    int64_t bytes = 0;
    /// Bytes that are live while backward recomputes their segment. Results of one op count by themselves, so that of
    /// all of them together it is less than zero.
    int64_t residualBytes = 0;
  };
  unsigned add(ForwardValue value, Entry entry);
  void addOp(mlir::Operation &op, unsigned index, llvm::ArrayRef<PlacedValue> results, int64_t copies,
             const ValueSet &crossing);
  int64_t copyTime(mlir::Value value, bool isFree) const;
  int64_t peakOfStage(unsigned index, const KeptValues &kept, unsigned &worst) const;
  std::pair<unsigned, unsigned> segmentOf(unsigned stage, unsigned place) const;

  llvm::ArrayRef<StagePair> stages;
  llvm::ArrayRef<Segments> segments;
  const CostTable &costs;
  bool moves;
  std::vector<std::vector<unsigned>> cuts; ///< by stage
  RecomputeProblem problem;
  std::vector<Entry> entries;                   ///< by value of the problem
  llvm::DenseMap<mlir::Value, unsigned> number; ///< in the problem
};

} // namespace par
