// Offsets of the matrices of a call with batch dims.
#pragma once

#include "par/format/Program.h"

#include <vector>

namespace par::cpu {

/// Elements from where an operand begins.
struct MatrixOffsets {
  int64_t a, b, c;
};

/// One for each index of the batch, row-major.
inline std::vector<MatrixOffsets> matrixOffsets(const format::Call &call) {
  std::vector<MatrixOffsets> offsets{{0, 0, 0}};
  for (size_t d = 0; d < call.batch.size(); ++d) {
    std::vector<MatrixOffsets> next;
    for (const MatrixOffsets &at : offsets)
      for (int64_t i = 0; i < call.batch[d]; ++i)
        next.push_back({at.a + i * call.strideA[d], at.b + i * call.strideB[d], at.c + i * call.strideC[d]});
    offsets = std::move(next);
  }
  return offsets;
}

} // namespace par::cpu
