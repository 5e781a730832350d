// The work of an instruction, as predictions of its time and measurements count it.
#pragma once

#include "par/format/Program.h"

namespace par::kernels {

/// Bytes that a kernel reads and writes. Queries, keys and values that one matmul gave are read once.
int64_t movedBytes(const format::Kernel &kernel, const format::Instruction &instruction);

/// The format of a builtin's large operands, by its name; f32 for generated code.
format::DType formatOf(const format::Kernel &kernel);

/// Forward and backward alike.
bool isAttention(const format::Kernel &kernel);
bool isConvolution(const format::Kernel &kernel);

} // namespace par::kernels
