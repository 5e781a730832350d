#pragma once

#include "Versions.h"

namespace par {

/// A buffer to be.
struct BufferPlan {
  std::string name;
  BufferKind kind = BufferKind::temp;
  std::string of;              ///< variable or input; of a sum, the variable whose gradient it accumulates
  mlir::RankedTensorType type; ///< of one slot, on one rank
  DistType dist;               ///< state, hyperparameter, input, gradient
  bool perMicrobatch = false;  ///< a slot for each microbatch that needs one at a time; of state, for each
  bool several = false;        ///< perMicrobatch, of several: one after the other where one slot is enough
  bool perVersion = false;     ///< a slot for each version of the parameters
  int64_t depth = 1;
  bool saved = false, moved = false; ///< forward keeps it for backward of the same microbatch; in host memory
};

/// Buffers of the values that outlive a block of a step.
class Buffers {
public:
  static mlir::FailureOr<Buffers> compute(const StepTasks &tasks, const StepOrder &order);

  /// Buffer of a canonical value on its device.
  const BufferPlan &of(mlir::Value value) const { return plans[index.lookup(value)]; }
  /// All buffers of a device, in order of their first use.
  llvm::SmallVector<const BufferPlan *> ofDevice(unsigned device) const;
  /// State buffers to which a block stores a value besides the value's own buffer.
  llvm::ArrayRef<BufferPlan> alsoStoredTo(mlir::Value value) const;
  /// Writes that must wait for the step's end: the old value is read after the new one is made, or no block makes the
  /// value.
  llvm::SmallVector<std::pair<mlir::Value, BufferPlan>> writesAfterLoop(unsigned device) const;
  /// Holds the version that an update of this state replaces on a device; null if no microbatch needs it.
  const BufferPlan *olderOf(const BufferPlan &state, unsigned device) const;
  const Versions &getVersions() const { return *versions; }

private:
  Buffers(const StepTasks &tasks, const StepOrder &order) : tasks(tasks), order(order) {}
  void place(mlir::Value value, BufferPlan plan);
  void placeOperand(mlir::Value value);
  void placeResult(const Task &task, mlir::Value value);
  void placeWrite(WriteOp write);
  bool isReadLater(mlir::Value old, mlir::Value made) const;
  void reuseSums();
  void nameAccumulators();
  void markSaved();
  void countSlots();
  mlir::LogicalResult keepVersions();

  const StepTasks &tasks;
  const StepOrder &order;
  std::vector<llvm::SmallVector<mlir::Value>> operands; ///< by task
  std::vector<BufferPlan> plans;
  llvm::MapVector<mlir::Value, unsigned> index;
  llvm::MapVector<mlir::Value, llvm::SmallVector<BufferPlan>> alsoStored;
  llvm::SmallVector<std::pair<mlir::Value, BufferPlan>> afterLoop;
  std::optional<Versions> versions;
  std::map<std::pair<unsigned, std::string>, BufferPlan> older; ///< by device and state
};

/// The state buffer of a variable on a device. It holds one microbatch's value if each of `microbatches` carries its
/// own. A hyperparameter has a value for each call.
BufferPlan planState(VariableOp variable, DistType dist, mlir::RankedTensorType local, int64_t microbatches,
                     int64_t calls);

} // namespace par
