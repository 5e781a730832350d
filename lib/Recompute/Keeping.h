// Which results of a forward fragment its backward fragment may take.
#ifndef PAR_LIB_RECOMPUTE_KEEPING_H
#define PAR_LIB_RECOMPUTE_KEEPING_H

#include "par/Dialect/Par.h"
#include "par/Plan/Pattern.h"

namespace par {

/// What `recompute` of the plan says about single values.
class Keeping {
public:
  /// Reads the options of the passes; emits what is wrong with them.
  static mlir::FailureOr<Keeping> parse(mlir::ModuleOp module, llvm::StringRef mode, llvm::StringRef each);

  bool isNone() const { return mode == None; }
  /// Whether a value computed in a forward fragment may be kept for backward.
  bool keeps(mlir::Value value) const;

private:
  /// The matching module that an op is in; empty if it is in none.
  llvm::StringRef moduleOf(mlir::Operation *op) const;

  enum Mode { None, Full, Each } mode = None;
  NamePattern pattern;
};

/// A forward run of a step and the backward run that takes its results.
struct RunPair {
  RunOp forward, backward;
};

/// All pairs of the step's loops.
llvm::SmallVector<RunPair> findPairs(StepOp step);

/// The fragment of a run.
FragmentOp fragmentOf(RunOp run);

} // namespace par

#endif // PAR_LIB_RECOMPUTE_KEEPING_H
