// Products that skip rows of zeros: of an operand in which most tokens have nothing for most experts.
#pragma once

#include "par/cpu/Matmul.h"

namespace par::cpu {

/// A matmul by `dense`, or by smaller ones if most of an operand is zero as ZeroRows.cpp describes. `dense` itself for
/// matmuls that are too small, or laid out so that nothing could be skipped.
std::unique_ptr<Matmul> skipZeroRows(const format::Call &call, std::unique_ptr<Matmul> dense);

} // namespace par::cpu
