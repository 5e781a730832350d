// Shared code of passes that rewrite convolutions.
#pragma once

#include "Values.h"
#include "par/Dialect/Windows.h"

#include "llvm/ADT/TypeSwitch.h"

namespace par {

template <typename Op>
Windows windowsOf(Op op) {
  return Windows::of(op, shapeOf(sidesOf(op).filter).drop_front(2));
}

/// Calls build(op) for each convolution and gradient of one in the blocks. A value that it returns replaces the op;
/// null keeps it.
template <typename Build>
void rebuildConvolutions(mlir::ModuleOp module, Build build) {
  auto rebuild = [&](auto convolution) {
    if (mlir::Value made = build(convolution)) {
      convolution.replaceAllUsesWith(made);
      convolution->erase();
    }
  };
  for (ProgramOp program : module.getOps<ProgramOp>())
    for (BlockOp block : program.getOps<BlockOp>())
      for (mlir::Operation &op : llvm::make_early_inc_range(block.getBody().front()))
        llvm::TypeSwitch<mlir::Operation *>(&op).Case<ConvolutionOp, ConvolutionInputGradOp, ConvolutionFilterGradOp>(
            rebuild);
}

} // namespace par
