#pragma once

#include "CodeCache.h"
#include "par/Phases/Codegen/Codegen.h"

#include "mlir/IR/BuiltinOps.h"

namespace par::codegen {

/// One kernel on its way from body to object.
struct Job {
  std::string symbol;
  /// Threads or loops; null where an earlier compilation has made `object`.
  mlir::OwningOpRef<mlir::ModuleOp> module = {};
  /// Object file, or PTX; and, where it is to be kept, LLVM IR.
  std::string object = "", ir = "";
  bool failed = false;
  /// Low register pressure on a GPU: the code compiled before spills.
  bool lowRegisterPressure = false;
};

/// The job that makes a symbol, which must be among them.
Job &jobOf(std::vector<Job> &jobs, llvm::StringRef symbol);

/// Lowers and compiles one job for the device and isa of `out`, or takes its code from the cache.
llvm::LogicalResult compileJob(Job &job, const CompiledKernels &out, bool keepIR, CodeCache &cache);

/// All jobs, on a few threads. Each has its own module and LLVM context.
llvm::LogicalResult compileJobs(std::vector<Job> &jobs, const CompiledKernels &out, const CodegenOptions &options,
                                CodeCache &cache);

/// LLVM refuses its input. No input is known that it does refuse, so no test quotes this.
llvm::LogicalResult refuseCode(mlir::Location loc, const std::string &isa);

} // namespace par::codegen
