// The kernels that Kernels would form, while the ops still stand in their block with their own locations.
#pragma once

#include "par/Dialect/Par.h"

#include "mlir/Pass/PassManager.h"

namespace par {

/// The ops of one kernel.
struct KernelGroup {
  llvm::SmallVector<mlir::Operation *> body; ///< in an order of dependence; other kernels may compute some of them too
  llvm::SmallVector<mlir::Value> arguments, results;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> tied; ///< results and the arguments whose storage they take
  std::string implementation;                                  ///< as par.kernel has it
};

/// Kernels' passes that come before the kernels are formed.
void buildGroupingPipeline(mlir::OpPassManager &manager, const std::string &device);

/// The kernels of a block after that pipeline. Rewrites ops of the block as forming kernels does.
std::vector<KernelGroup> groupKernels(BlockOp block, const std::string &device);

} // namespace par
