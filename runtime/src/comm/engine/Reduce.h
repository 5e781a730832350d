// Elementwise reductions in member order.
#pragma once

#include "par/format/Program.h"

#include <cstddef>
#include <span>

namespace par::comm {

/// out[i] = sources[0][i] op sources[1][i] op ..., from left to right, for n elements. `out` may be one of
/// the sources. bf16 and f16 are added in f32 and rounded once; max and min of a NaN are NaN; i1 sums are
/// "or".
void reduce(format::DType type, format::Reduction reduction, std::byte *out, std::span<const std::byte *const> sources,
            size_t n);

} // namespace par::comm
