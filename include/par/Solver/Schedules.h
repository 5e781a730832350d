//===- Schedules.h - the pipeline schedules that Par knows ------*- C++ -*-===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAR_SOLVER_SCHEDULES_H
#define PAR_SOLVER_SCHEDULES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace par {

/// What a stage does at one go.
enum class SlotKind { Forward, Backward };

/// One run of one fragment on one microbatch. `last` marks the backward with which the stage's gradients are
/// complete: Schedule peels it, so that the reductions of the gradients overlap with it.
struct ScheduleSlot {
  SlotKind kind;
  unsigned microbatch;
  bool last = false;

  bool operator==(const ScheduleSlot &) const = default;
};

/// The order in which stage `stage` of `stages` runs its fragments; `last` need not be set.
using ScheduleOrder = std::vector<ScheduleSlot>(unsigned stage, unsigned stages, unsigned microbatches);

/// A schedule is one function in one file of lib/Solver/Schedules and one row of the table in Schedules.cpp.
/// It says nothing of sends, receives or memory: those follow from the order.
struct Schedule {
  llvm::StringLiteral name; ///< as in the plan's `pipeline.schedule`
  llvm::StringLiteral summary;
  ScheduleOrder *order;
};

/// All schedules, in the order in which messages list them.
llvm::ArrayRef<Schedule> getSchedules();

/// The schedule of this name, or null.
const Schedule *findSchedule(llvm::StringRef name);

/// "gpipe, 1f1b": for messages.
std::string listSchedules();

ScheduleOrder gpipeOrder;
ScheduleOrder oneForwardOneBackwardOrder;

} // namespace par

#endif // PAR_SOLVER_SCHEDULES_H
