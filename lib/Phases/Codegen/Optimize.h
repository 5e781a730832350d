#pragma once

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/CodeGen.h"

#include <memory>
#include <optional>

namespace llvm {
class Module;
class PassBuilder;
class TargetMachine;
} // namespace llvm

namespace par::codegen {

/// Loads and registers all that lowering and translation need, so that several threads may do it.
void prepareThreads(mlir::MLIRContext &context);

/// Lowers a module of loops to the LLVM dialect.
mlir::LogicalResult lowerToLLVM(mlir::ModuleOp module);

/// Creates the machine for a triple and processor. It contracts only ops whose flags allow it; null if LLVM lacks the
/// target.
std::unique_ptr<llvm::TargetMachine> createMachine(llvm::StringRef triple, llvm::StringRef cpu,
                                                   llvm::StringRef features,
                                                   std::optional<llvm::Reloc::Model> relocation,
                                                   std::optional<llvm::CodeModel::Model> model,
                                                   llvm::CodeGenOptLevel level);

/// O3 without library functions, so no loop becomes a call. `unroll`: also loops that are not unrolled yet. `extend`
/// may add passes of the target to the pipeline.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, bool unroll = true,
              llvm::function_ref<void(llvm::PassBuilder &)> extend = {});

} // namespace par::codegen
