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

/// Rounds floats to the precision of their type; f64 stays as it is. A number of the type stays that number.
void roundElements(interp::Tensor &tensor, Rounding rounding);

/// Distance from 1 to the next number of a float type, and its largest number.
double epsilonOf(mlir::FloatType type);
double largestOf(mlir::FloatType type);

} // namespace par::kernel_check
