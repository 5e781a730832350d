// The early loads of a block, found as its ops are passed in order.
#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Tells the loads that come before all stores to their buffer, as isEarlyLoad does, without a look at each op before
/// them.
class EarlyLoads {
public:
  /// Passes the block's next op; true if it is an early load.
  bool pass(mlir::Operation *op) {
    if (auto store = llvm::dyn_cast<StoreOp>(op))
      stored.insert(store.getBufferAttr().getAttr());
    auto load = llvm::dyn_cast<LoadOp>(op);
    return load && !isStored(load) && early.insert(op).second;
  }
  /// Whether an op that was passed is an early load.
  bool contains(mlir::Operation *op) const { return early.contains(op); }
  /// Whether an op that was passed stores to the load's buffer.
  bool isStored(LoadOp load) const { return stored.contains(load.getBufferAttr().getAttr()); }

private:
  llvm::DenseSet<mlir::Operation *> early;
  llvm::DenseSet<mlir::StringAttr> stored; ///< names of buffers
};

} // namespace par
