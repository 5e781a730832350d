#pragma once

#include "par/kernels/Builtins.h"

namespace par::kernels {

/// Computes tiles of a kernel of the table by the f32 form of it, whose operands differ only in their types. All narrow
/// operands are "rows x cols".
void runLowPrecision(const BuiltinKernel &kernel, KernelFunction inF32, void *const *ptr, const uint64_t *imm,
                     uint32_t tile0, uint32_t tile1);
/// The same for a kernel of one tile whose operands are of any shape, on copies of all that is narrow.
void runOnCopies(const BuiltinKernel &kernel, KernelFunction inF32, void *const *ptr, const uint64_t *imm);

} // namespace par::kernels
