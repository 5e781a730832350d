#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Kernels/Passes.h.inc"

/// The phase: fragments into blocks, tensor ops into kernels for `device` (cpu or cuda), gate. `order`: all
/// microbatches are added in one order.
void buildKernelsPipeline(mlir::OpPassManager &manager, const std::string &device,
                          const std::optional<OrderMicrobatchesPassOptions> &order = std::nullopt);
/// `par-opt --par-kernels`.
void registerKernelsPipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Kernels/Passes.h.inc"

} // namespace par
