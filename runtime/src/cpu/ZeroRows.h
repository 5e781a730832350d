// Products that skip rows of zeros: of an operand in which most tokens have nothing for most experts.
#pragma once

#include "par/cpu/Matmul.h"

namespace par::cpu {

/// A product by `dense`, or, where most of an operand is zeros in the way that ZeroRows.cpp says, by smaller ones.
/// `dense` itself for products that are too small, or laid out so that nothing could be skipped.
std::unique_ptr<Matmul> skipZeroRows(const format::Call &call, std::unique_ptr<Matmul> dense);

} // namespace par::cpu
