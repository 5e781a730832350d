// The pipeline schedules that Par knows.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <vector>

namespace par {

struct OrderTableProblem;

/// The work of one slot. A backward without a slot for its weight gradient computes that as well.
enum class SlotKind { Forward, Backward, Weight };

/// One run of one fragment on one microbatch. `chunk` counts the stages of a device, in the order in which a
/// microbatch's forward passes them. `last` marks the slot that completes a stage's gradients: Schedule peels it, so
/// that the reductions of the gradients overlap with it.
struct ScheduleSlot {
  SlotKind kind;
  unsigned microbatch;
  unsigned chunk = 0;
  bool last = false;

  bool operator==(const ScheduleSlot &) const = default;
};

using DeviceSlots = std::vector<ScheduleSlot>;

/// Sizes of a pipeline: every device has `chunks` of the stages.
struct ScheduleShape {
  unsigned devices = 1, chunks = 1, microbatches = 1;
};

/// The devices of a pipeline's stages. With 2 chunks on 3 devices:
///
///     round_robin    device 0: stages 0 3    device 1: stages 1 4    device 2: stages 2 5
///     v              device 0: stages 0 5    device 1: stages 1 4    device 2: stages 2 3
enum class Placement { RoundRobin, V };

/// ns of one microbatch on one stage, all stages equal; the whole backward takes `backward` and `weight`.
struct SlotTimes {
  int64_t forward = 1, backward = 1, weight = 1;
};

/// A schedule is one file of lib/Solver/Schedules: X.cpp defines par::schedules::X, and no other file names it. It has
/// no sends, receives or memory: those follow from the order.
struct Schedule {
  llvm::StringLiteral name;    ///< as in the plan's `pipeline.schedule`
  llvm::StringLiteral summary; ///< its line for --help
  /// The order of one device; `last` need not be set.
  DeviceSlots (*order)(unsigned device, const ScheduleShape &shape) = nullptr;
  /// Instead of `order`: the orders of all devices, for the problem's times and limits.
  llvm::Expected<std::vector<DeviceSlots>> (*solve)(const OrderTableProblem &problem) = nullptr;
  /// Its closed form: the share of the devices' time in which they wait, for equal stages and free links. None: there
  /// is none for this shape, or at all.
  std::optional<double> (*bubble)(const ScheduleShape &shape, const SlotTimes &times) = nullptr;
  bool weightsApart = false;             ///< weight gradients have slots of their own
  unsigned minChunks = 1, maxChunks = 1; ///< that a device may have
  Placement placement = Placement::RoundRobin;
  /// Staleness of an asynchronous schedule: the number of updates that a stage's weights lag those of a single device,
  /// if several batches run without a flush. Its order covers the microbatches of all these batches.
  unsigned (*behind)(unsigned stage, unsigned stages) = nullptr;
  unsigned maxMicrobatches = ~0u;      ///< of a batch
  bool microbatchForEachStage = false; ///< a batch has at least as many microbatches as there are stages
};

/// All schedules, by the names of their files.
llvm::ArrayRef<const Schedule *> getSchedules();

/// The schedule of this name, or null.
const Schedule *findSchedule(llvm::StringRef name);

/// "gpipe, 1f1b": for messages.
std::string listSchedules();

} // namespace par
