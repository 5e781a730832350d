//===- OrderTable.h - which fragment of which microbatch when ---*- C++ -*-===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAR_SOLVER_ORDERTABLE_H
#define PAR_SOLVER_ORDERTABLE_H

#include "par/Solver/ProblemText.h"
#include "par/Solver/Schedules.h"

namespace par {

/// The order of one stage. `inFlight` is the largest number of microbatches whose forward has run and whose
/// backward has not ended: so many copies of what the stage saves between the two exist at once.
struct StageOrder {
  std::vector<ScheduleSlot> slots;
  std::vector<int64_t> start; ///< ns, one per slot, for the problem's costs
  unsigned inFlight = 0;
  int64_t busy = 0; ///< ns of compute in one step
};

struct OrderTable {
  std::vector<StageOrder> stages;
  int64_t makespan = 0; ///< ns from the first forward to the last backward

  /// The share of the stages' time in which they wait, in 1/1000; (p-1)/(m+p-1) for equal stages and free
  /// links.
  int64_t bubblePermille() const;
  void print(llvm::raw_ostream &os) const;
};

/// Expects a schedule, stages, microbatches and costs; gives each stage the order of its fragments.
///
///     problem order_table
///     schedule 1f1b
///     stages 4
///     microbatches 8
///     forward 10           // ns: one value for all stages, or one a stage; 1 if left out
///     backward 20          // 2 if left out
///     transfer 0           // ns on each link; 0 if left out
struct OrderTableProblem {
  std::string schedule = "1f1b";
  unsigned stages = 1;
  unsigned microbatches = 1;
  std::vector<int64_t> forward, backward; ///< ns per stage
  int64_t transfer = 0;                   ///< ns

  static llvm::Expected<OrderTableProblem> parse(ProblemText &text);
  void print(llvm::raw_ostream &os) const;
  /// What is malformed: an unknown schedule, no stage, no microbatch, costs that are not one a stage.
  llvm::Error check() const;
  llvm::Expected<OrderTable> solve() const;
  /// Every fragment runs once, backwards in order of microbatches (sums run over microbatch 0 first), every
  /// dependency is met by the orders alone, and the counts and marks are right.
  llvm::Error verify(const OrderTable &table) const;
};

} // namespace par

#endif // PAR_SOLVER_ORDERTABLE_H
