#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace par::cuda {

/// Builds thread indices, barriers and exchanges: intrinsics of the NVPTX target.
struct Threads {
  mlir::OpBuilder &builder;
  mlir::Location loc;

  /// Index of the thread in its block, and of the block in the grid; i64.
  mlir::Value thread() const;
  mlir::Value block() const;
  /// A barrier of all threads of the warp, or of the block, and of their writes.
  void syncWarp() const;
  void syncBlock() const;
  /// The value of the thread of this warp whose number differs in the bits of `mask`. All threads of the warp
  /// take part.
  mlir::Value exchange(mlir::Value value, unsigned mask) const;

private:
  mlir::Value call(llvm::StringRef intrinsic, mlir::Type result, mlir::ValueRange arguments) const;
  mlir::Value number(int64_t value) const;
  mlir::Value exchangeWord(mlir::Value word, unsigned mask) const;
};

} // namespace par::cuda
