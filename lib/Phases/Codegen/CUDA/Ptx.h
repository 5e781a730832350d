#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace par::cuda {

/// Whether kernels can be made for "sm_80", "sm_90" and the like: a GPU that Par knows.
bool isKnownSm(llvm::StringRef sm);
/// "sm_80, sm_86, ...": those that Par knows.
std::string listSms();

/// A kernel on its way to a GPU.
struct DeviceCode {
  /// PTX of one module, with its header.
  std::string ptx;
  /// The same as LLVM IR, optimised, before the target's own passes: a test can run it elsewhere.
  std::string ir;
};

/// Code of a module in the LLVM dialect for `sm`. For low register pressure LLVM unrolls no loops.
llvm::FailureOr<DeviceCode> compileDevice(mlir::ModuleOp module, llvm::StringRef sm, bool keepIR,
                                          bool lowRegisterPressure = false);

/// One file of several modules, which have one header.
std::string joinPtx(const std::vector<std::string> &modules);

/// The reason for which PTX cannot be loaded by itself: an undefined symbol, or a version that the GPU's first driver
/// does not support. Empty if there is none.
std::string findFault(llvm::StringRef ptx, llvm::StringRef sm);

} // namespace par::cuda
