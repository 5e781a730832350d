// Consecutive steps without a pipeline flush.
#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Attribute of a step: the number of calls that its entry makes of it, one batch each (asynchronous schedules). Inputs
/// are those of all calls, concatenated, and so are results. `par.read ... behind d` sees the value before the last d
/// writes of these calls. Without the attribute an entry is one call.
inline constexpr llvm::StringLiteral callsAttr = "par.calls";

/// Attribute of an entry of a program: the version of the weights of each run, which is the number of updates before
/// it. Without it every run has version 0.
inline constexpr llvm::StringLiteral versionsAttr = "par.versions";

inline int64_t getCalls(StepOp step) {
  auto calls = step->getAttrOfType<mlir::IntegerAttr>(callsAttr);
  return calls ? calls.getInt() : 1;
}

inline int64_t getVersion(EntryOp entry, size_t run) {
  auto versions = entry->getAttrOfType<mlir::DenseI64ArrayAttr>(versionsAttr);
  return versions && run < size_t(versions.size()) ? versions[run] : 0;
}

/// The indices that select the slots of a run's buffers.
struct RunIndex {
  int64_t microbatch = 0, version = 0;

  /// The number that a buffer's slots are counted by; 0 for one without slots.
  int64_t of(BufferOp buffer) const {
    return buffer.getIndex() == SlotIndex::none ? 0 : buffer.getIndex() == SlotIndex::microbatch ? microbatch : version;
  }
  /// The buffer's slot of this run.
  int64_t slotOf(BufferOp buffer) const { return of(buffer) % static_cast<int64_t>(buffer.getDepth()); }
};

} // namespace par
