#pragma once

#include "par/Base/Tensor.h"

// Tensors of the interpreter, and numbers of element types as memory has them.

namespace par::kernel_check {

/// Whether elements of this type can be written and read here.
bool isKnownElement(mlir::Type type);

/// Row-major, as a kernel has them; numbers that the type does not have are rounded to nearest.
void writeElements(const interp::Tensor &tensor, void *memory);
interp::Tensor readElements(mlir::RankedTensorType type, const void *memory);

/// How numbers are rounded to a type that does not have them.
struct Rounding {
  bool nearest = true;
  uint64_t seed = 0; ///< of up or down, by chance, where not to nearest
};

/// Rounds floats to what their type has; of 64 bits they are as they are. A number of the type stays that number.
void roundElements(interp::Tensor &tensor, Rounding rounding);

/// Of a float type: the distance of 1 from the next number, and the largest number.
double epsilonOf(mlir::FloatType type);
double largestOf(mlir::FloatType type);

} // namespace par::kernel_check
