#pragma once

#include "SharedVariables.h"
#include "par/Solver/Schedules/Schedules.h"

#include <map>

namespace par {

/// A unit of a step's work, on one stage or between stages; inside a loop it runs once a microbatch. It becomes one
/// block on each device of its stages.
struct Task {
  enum class Kind { Compute, Transfer, Reduce };
  Kind kind = Kind::Compute;
  std::string name;                          ///< of its blocks, without the step's
  LoopOp loop;                               ///< null: once an entry
  llvm::SmallVector<unsigned> stages;        ///< Compute: one; Transfer: from, to; Reduce: those that take part
  llvm::SmallVector<mlir::Operation *> ops;  ///< runs in order; transfers of one group; an all-reduce across stages
  llvm::SmallVector<mlir::Operation *> tail; ///< runs after the loop that the last microbatch takes along
  llvm::SmallVector<mlir::OpResult> sums;    ///< results of the loop to which it adds
  llvm::SmallVector<std::pair<mlir::Value, mlir::StringAttr>> fetches;
  SlotKind slot = SlotKind::Forward; ///< the schedule's slots in which it runs
  bool prepares = false;             ///< brings variables into the layout in which a step uses them
  int64_t calls = 1;                 ///< of the step in one entry
  int64_t staleness = 0;             ///< staleness of the parameters that it reads, in updates

  bool isCommunication() const { return kind != Kind::Compute; }
  /// Number of stages from a transfer's sender to its receiver; of other tasks 0.
  size_t distance() const { return kind == Kind::Transfer ? std::abs(int(stages[0]) - int(stages[1])) : 0; }
  /// Microbatches that it runs for in a call of the step.
  int64_t count() const { return loop ? static_cast<LoopOp>(loop).getCount() : 1; }
  /// How often it runs in the entry; the i-th time is for microbatch i % count() of call i / count().
  int64_t instances() const { return calls * count(); }
};

/// A step taken apart into tasks. Each task is listed after the tasks that its microbatch needs. A device is a list of
/// ranks with all stages on it. A value that one of them hands to another stays in place, and so does a value that
/// comes back to a device that had it before.
class StepTasks {
public:
  /// Fails with an error at ops that Schedule does not support.
  static mlir::FailureOr<StepTasks> compute(StepOp step, mlir::ModuleOp module, const SharedVariables &variables);
  /// The fragment of a run.
  FragmentOp fragmentOf(RunOp run) const { return fragments.lookup(run.getFragmentAttr().getAttr()); }

  std::vector<Task> list;
  StepOp step;
  std::string prefix; ///< of the names of buffers and blocks: "train."
  llvm::SmallVector<StageOp> stages;

  /// Values in the same storage are one: slices of an input in several loops; a slice of a stacked result and the value
  /// that was stacked.
  mlir::Value canonical(mlir::Value value) const;
  /// Index of the task that makes a canonical value; for a sum, the task that adds last. -1: read or input.
  int64_t producer(mlir::Value value) const;
  /// Index of the stage where a value lives.
  unsigned stageOf(mlir::Value value) const;
  unsigned numDevices() const { return devices.size(); }
  /// Index of the device on which a stage lies, or a value lives.
  unsigned deviceOf(unsigned stage) const { return deviceOfStage[stage]; }
  unsigned deviceOf(mlir::Value value) const { return deviceOf(stageOf(value)); }
  llvm::ArrayRef<int64_t> ranksOf(unsigned device) const { return StageOp(devices[device].front()).getRanks(); }
  /// The devices of an activity, each once.
  llvm::SmallVector<unsigned> devicesOf(const Task &task) const;
  bool isOn(const Task &task, unsigned device) const { return llvm::is_contained(devicesOf(task), device); }
  /// Staleness of a value, in updates of its variable: 0 except for reads that give another.
  static int64_t stalenessOf(mlir::Value value);
  /// Whether a value is a loop's microbatch index, which has no stage: each stage that needs it counts for itself.
  static bool isMicrobatchIndex(mlir::Value value);
  /// Microbatches of a device whose index an op there uses; 0 if no op does.
  int64_t countNumbered(unsigned device) const;
  /// Type of a value on one rank.
  mlir::RankedTensorType localType(mlir::Value value) const;
  /// Everything that a task takes from elsewhere, canonical, each once, without sums that it continues, and the
  /// microbatch index.
  llvm::SmallVector<mlir::Value> operandsOf(const Task &task) const;
  /// Values that other tasks, fetches elsewhere or writes use, in canonical form.
  llvm::SmallVector<mlir::Value> resultsOf(const Task &task) const;
  /// Whether only reductions in the task's tail use a sum: its last value need not be stored.
  bool isReducedOnly(const Task &task, mlir::OpResult sum) const;
  /// The variable whose buffer a read or write means on its device.
  VariableOp variableOf(ReadOp read) const {
    return variables->at(read.getVariableAttr(), mlir::cast<DistType>(read.getType()));
  }
  VariableOp variableOf(WriteOp write) const {
    return variables->at(write.getVariableAttr(), mlir::cast<DistType>(write.getOperand().getType()));
  }
  /// The last value of a variable on a device before the step, or a microbatch's part of it if it is carried so; null
  /// if no op there reads it.
  mlir::Value readOf(VariableOp variable, unsigned device) const {
    mlir::Value read = reads.lookup({device, variable});
    return microbatchesOf(variable) > 0 ? sliceOf.lookup(read) : read;
  }
  int64_t microbatchesOf(VariableOp variable) const { return variables->microbatchesOf(variable); }
  /// The stale values of a variable on a device.
  llvm::SmallVector<mlir::Value> staleReadsOf(VariableOp variable, unsigned device) const;
  /// The writes of the step, one for each variable of a device: several stages there write the same value.
  llvm::SmallVector<WriteOp> writes() const;

private:
  mlir::LogicalResult joinInputs();
  mlir::LogicalResult joinRead(ReadOp read);
  mlir::LogicalResult findStaleness();
  bool isThere(TransferOp transfer);
  std::string nameOn(llvm::StringRef name, unsigned stage) const;
  mlir::LogicalResult add(mlir::Operation *op, LoopOp loop);
  mlir::LogicalResult addLoop(LoopOp loop);
  mlir::LogicalResult addYield(LoopOp loop, YieldOp yield, bool backward);
  mlir::LogicalResult addSlices(LoopOp loop);
  void addRun(RunOp run, LoopOp loop);
  bool joinForward(RunOp run, LoopOp loop);
  bool joinReduction(RunOp run, LoopOp loop);
  bool joinBeside(RunOp run);
  void addTransfer(TransferOp transfer, LoopOp loop);
  mlir::LogicalResult addReturn(mlir::Operation *op);
  void addFetch(mlir::Value value, mlir::StringAttr name, LoopOp loop, bool backward);
  Task &append(Task::Kind kind, llvm::StringRef name, LoopOp loop, llvm::ArrayRef<unsigned> on);

  llvm::DenseMap<mlir::Value, unsigned> producers;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *>>
      ahead; ///< runs that join a run and go before it
  llvm::DenseMap<mlir::Value, mlir::Value> same;
  llvm::DenseMap<mlir::Value, mlir::Value> sliceOf; ///< input -> its first slice
  const SharedVariables *variables = nullptr;
  llvm::DenseMap<mlir::StringAttr, FragmentOp> fragments;
  llvm::SmallVector<llvm::SmallVector<StageOp>> devices; ///< the stages of each
  llvm::SmallVector<unsigned> deviceOfStage;
  std::map<std::pair<unsigned, std::string>, unsigned> names; ///< (device, name) -> how often it is taken
  llvm::DenseMap<std::pair<unsigned, mlir::Operation *>, mlir::Value>
      reads; ///< (device, variable) -> the first read of it
  std::map<std::tuple<unsigned, mlir::Operation *, int64_t>, mlir::Value> staleReads; ///< by staleness, too
  llvm::DenseMap<mlir::Value, mlir::Value> origins; ///< a transferred value -> the value of its first sender
  llvm::MapVector<mlir::Value, llvm::SmallVector<mlir::Value>>
      arrived; ///< an origin -> itself and the transferred copies of it
};

} // namespace par
