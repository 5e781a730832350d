// Values of an image between its elements.
#pragma once

#include "Operands.h"

namespace par {

enum class Interpolation { Nearest, Linear, Cubic };
/// Values outside of an image: zeros, the nearest element, or the image reflected at its border.
enum class Outside { Zero, Border, Reflect };

struct Sampling {
  Interpolation interpolation = Interpolation::Linear;
  Outside outside = Outside::Zero;
  bool corners = false; ///< the border is at the center of the outermost elements, not half an element further out
};

/// Coordinates beyond the border, in elements, brought back onto the image by the rule of `sampling`.
Term bringInside(Term at, int64_t size, const Sampling &sampling);

/// The image (B, C, product of `dims`) at coordinates (B, Q), one for each of `dims`, in elements: for every
/// element that a sample touches, its value times its weight, (B, C, Q) each. Their sum is the sample.
/// Gradients reach the image, and the coordinates through the weights.
llvm::SmallVector<Term> sampleTerms(Term image, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<Term> at,
                                    const Sampling &sampling);
Term sampleSum(Term image, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<Term> at, const Sampling &sampling);

/// first + step * i along `dim` of a tensor of `shape`.
Term progression(NodeImporter &importer, mlir::Type element, llvm::ArrayRef<int64_t> shape, int64_t dim, double first,
                 double step);

} // namespace par
