#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// The memory that a stage's forward saves for its backward.
struct StageResiduals {
  std::string stage;
  /// Bytes on one rank for one microbatch: results of the forward that the backward takes; arguments that both
  /// take (the stage's input, parameters) left out.
  int64_t savedBytes = 0;
  /// The most microbatches in flight under the schedule.
  int64_t inFlight = 1;
};

/// Values of one module and type that backward recomputes, of all layers.
struct RecomputedValues {
  std::string place; ///< "h.*.mlp"; empty: not known
  std::string type;  ///< "bf16[2x64x256]", of each
  int64_t count = 0;
  int64_t bytes = 0; ///< of all of them, and of all microbatches in flight, if they were saved
  int64_t ns = 0;    ///< of their ops for one microbatch
};

/// The choice that is cheapest if a byte that a microbatch saves costs so much: a point of the front of saved bytes
/// against time.
struct RecomputePoint {
  double nsPerByte = 0;
  int64_t savedBytes = 0, ns = 0; ///< of one microbatch; ns of ops that backward computes again
};

/// The outcome of recomputation for the stages on the same ranks.
struct StageRecompute {
  std::string stages; ///< "0+2"
  /// Bytes on one rank of values that forward saves for backward, of all microbatches in flight: without recomputation,
  /// and with it.
  int64_t allBytes = 0, savedBytes = 0;
  int64_t movedBytes = 0;                   ///< that are in host memory meanwhile, and not saved
  int64_t ns = 0;                           ///< that backward takes longer for one microbatch, as predicted op by op
  std::vector<RecomputedValues> recomputed; ///< the most bytes first
  std::vector<RecomputePoint> front;        ///< the lowest price first; only where an excess of 0 bytes asks for it

  // Only of a choice by budget, by the times of its costs and for one microbatch:
  bool isChosen = false;
  int64_t chosenNs = 0, minNs = 0; ///< of the choice, and of none with as few bytes can be below
  int64_t unhiddenNs = 0;          ///< of `chosenNs`: copies to the host and back without compute beside
  int64_t nextBytes = 0;           ///< 1 GiB, or half of what could still be recomputed
  int64_t moreNs = -1;             ///< how much longer for `nextBytes` less; -1: no choice has so much less
  int64_t smallestBytes = 0;       ///< at the begin of a backward, by the smallest choice that was found
  int64_t boundBytes = 0;          ///< that every choice saves at the begin of a backward
  bool fits = true;                ///< whether a choice has as few bytes as was asked for
};

/// Outcomes by groups of ranks.
using RecomputeOutcomes = std::vector<StageRecompute>;

/// Reads the (forward, backward) pairs of a module of local fragments, in the order of stages. Empty if no
/// step has a backward. `schedule` is one of par/Solver/Schedules/Schedules.h; an unknown one counts one in flight.
llvm::SmallVector<StageResiduals> summarizeResiduals(mlir::ModuleOp module, llvm::StringRef schedule);

} // namespace par
