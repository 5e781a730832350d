#pragma once

#include "par/Dialect/Par.h"

#include "par/kernels/Builtins.h"

#include <optional>

namespace par {

/// One operand of a builtin: an argument of the kernel, a result, or both if the result is tied to the argument
/// (updated in place).
struct BuiltinValue {
  std::optional<unsigned> argument, result;
  kernels::Access access = kernels::Access::Read;
};

/// One call of a kernel of the runtime (par/kernels/Builtins.h) that does the work of a kernel with the implementation
/// "builtin:NAME".
struct BuiltinCall {
  /// Points into kernels::builtins().
  const kernels::BuiltinKernel *kernel = nullptr;
  /// In the builtin's order; those that are left out come last.
  llvm::SmallVector<BuiltinValue> operands;
  /// In the builtin's order: integers as two's complement, reals as the bits of a double.
  llvm::SmallVector<uint64_t> immediates;
  /// The builtin adds to its (accumulated) result, which the caller fills with zeros first.
  bool zeroFirst = false;

  uint32_t getTiles() const { return kernels::builtinTiles(*kernel, {immediates.data(), immediates.size()}); }
};

/// The call that a kernel's body amounts to; none if no builtin computes that.
std::optional<BuiltinCall> describeBuiltin(KernelOp kernel);

} // namespace par
