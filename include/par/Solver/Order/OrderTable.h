// The order of fragments and microbatches on each device of a pipeline.
#pragma once

#include "par/Solver/Problem/ProblemText.h"
#include "par/Solver/Schedules/Schedules.h"

namespace par {

/// Maximum number of stages, devices and microbatches: with times below 2^44 ns no sum overflows.
constexpr unsigned maxOrderCount = 4096;

/// The order of one device, and the figures that follow only from it. A microbatch is in flight on a stage between its
/// forward and the end of its backward: the stage then holds one copy of its saved activations.
struct DeviceOrder {
  DeviceSlots slots;
  std::vector<int64_t> start;          ///< ns, one per slot, for the problem's times
  unsigned inFlight = 0;               ///< the most at once, all chunks together
  std::vector<unsigned> chunkInFlight; ///< the most at once of each chunk
  unsigned pending = 0;                ///< the most microbatches between backward and weight gradient
  int64_t memory = 0;                  ///< the most that is kept at once, in 1/1000 activations
  int64_t busy = 0;                    ///< ns of compute in one step
};

struct OrderTable {
  std::vector<DeviceOrder> devices;
  int64_t makespan = 0; ///< ns from the first forward to the end of the last slot
  int64_t longest = 0;  ///< ns of the device that takes longest from its first slot to the end of its last

  /// The share of the devices' time in which they wait, in 1/1000; (p-1)/(m+p-1) for 1f1b on equal stages and free
  /// links.
  int64_t bubblePermille() const;
  /// The same share of the device that takes longest, relative to its own time and to the busiest device's work: the
  /// bubble rate of consecutive steps without a barrier (Qi et al. 2024, Table 5).
  double idleShare() const;
  /// Microbatches in flight on a stage.
  unsigned inFlightOf(const struct OrderTableProblem &problem, unsigned stage) const;
  std::string toText() const;
};

/// Expects a schedule or a table, stages, microbatches and times; gives each device the order of its fragments.
///
///     problem order_table
///     schedule zb-h1
///     stages 4
///     devices 4            // stages if left out; a divisor of them
///     microbatches 8
///     forward 10           // ns: one value for all stages, or one a stage; 1 if left out
///     backward 12          // 1 if left out
///     weight 8             // rest of the backward; if left out 1, or 0 with `backward`, which then is all of it
///     transfer 0           // ns on each link between two devices; 0 if left out
///     limit 4              // activations in flight on a device: one value or one a device; if left out
///                          // as 1f1b's first device
///     kept 400             // 1/1000 of an activation that counts on until the weight gradient; 0 if left out
///     barrier              // steps end together on all devices: not the longest device counts but the makespan
///
/// A table instead of a schedule has the slots of each device, F, B and W of a microbatch, `.1` for a device's second
/// stage; a device may have several lines. `placement v` says that it lays stages out so:
///
///     problem order_table
///     microbatches 3
///     device 0 F0 F1 B0 F2 B1 B2
///     device 1 F0 B0 F1 B1 F2 B2
struct OrderTableProblem {
  std::string schedule = "1f1b"; ///< of getSchedules(), where `table` is empty
  unsigned stages = 1;
  unsigned devices = 0; ///< 0: as many as stages
  unsigned microbatches = 1;
  std::vector<int64_t> forward, backward, weight; ///< ns per stage; no `weight`: 0
  int64_t transfer = 0;                           ///< ns
  std::vector<int64_t> limit;                     ///< per device; empty: none, and `auto` takes 1f1b's
  int64_t kept = 0;                               ///< of an activation in flight, 1/1000, until the weight gradient
  bool barrier = false;
  std::vector<DeviceSlots> table;           ///< per device, as given
  std::vector<std::vector<unsigned>> lines; ///< of the slots of `table` in the text
  Placement tablePlacement = Placement::RoundRobin;

  static llvm::Expected<OrderTableProblem> parse(ProblemText &text);
  /// Reads a file with a table, and solves it. Errors of a single line begin with `line N: `; `content` receives the
  /// file's text.
  static llvm::Expected<OrderTableProblem> readTable(llvm::StringRef path, std::string *content = nullptr);
  /// The problem of `pipeline.schedule`, a name or the path of a table, on that many equal stages and devices. Fails if
  /// a table has other sizes; errors of a file are `FILE:LINE: ...` or `FILE: ...`.
  static llvm::Expected<OrderTableProblem> make(llvm::StringRef nameOrPath, unsigned stages, unsigned devices,
                                                unsigned microbatches);
  /// Whether a word of a plan is the path of a table: it has a "/" or a ".".
  static bool isPath(llvm::StringRef word);
  std::string toText() const;
  /// Fails on a malformed problem: an unknown schedule, no stage, no microbatch, times that are not one a stage.
  llvm::Error check() const;
  llvm::Expected<OrderTable> solve() const;
  /// Checks that every fragment runs once, each kind in order of microbatches (sums run over microbatch 0 first), that
  /// a backward is after its forward and a weight gradient after its backward, that the orders meet every dependency,
  /// that no device exceeds its limit, and that counts and marks are right.
  llvm::Error verify(const OrderTable &table) const;
  /// The best of all orders, by `longest` (with a barrier `makespan`), or none if there is none within the limits, or
  /// more than a million: for sizes such as 3 devices and 3 microbatches.
  std::optional<OrderTable> solveExhaustively(bool weightsApart) const;

  ScheduleShape shape() const;
  Placement placement() const;
  bool weightsApart() const;
  unsigned numDevices() const { return devices ? devices : stages; }
  unsigned stageOf(unsigned device, unsigned chunk) const;
  unsigned deviceOf(unsigned stage) const;
  unsigned chunkOf(unsigned stage) const { return stage / numDevices(); }
  /// ns of a slot; `apart`: the table has slots of weight gradients.
  int64_t timeOf(SlotKind kind, unsigned stage, bool apart) const;
  /// Maximum that a device may keep, in 1/1000 activations.
  int64_t memoryLimit(unsigned device) const;

  /// Simulates and measures the orders of all devices. Fails if they deadlock.
  llvm::Expected<OrderTable> measure(std::vector<DeviceSlots> orders) const;
};

/// Number of microbatches in flight on each stage under a schedule, given as for OrderTableProblem::make.
llvm::Expected<std::vector<unsigned>> countInFlight(llvm::StringRef nameOrPath, unsigned stages, unsigned devices,
                                                    unsigned microbatches);

/// Whether a schedule, given as for OrderTableProblem::make, has slots of weight gradients; false if it cannot be read.
bool runsWeightsApart(llvm::StringRef nameOrPath);

/// "F3", "B3.1!": of the first stage of a device, of its second one; "!" marks the last.
std::string slotName(const ScheduleSlot &slot);

} // namespace par
