#pragma once

#include "Operands.h"

#include <optional>

// What a kernel computes by the interpreter, and how far from that code may be that rounds.
//
// The interpreter computes in f64. The kernel's body is interpreted again with every result of an op rounded to its own
// type, to nearest and by chance up or down (discrete stochastic arithmetic, Vignes 1993): how far these come apart,
// element by element, is how much the kernel's own rounding matters there. An element on which a decision falls one way
// or the other (a comparison, the place of a maximum) is not compared. On top of that the order of a sum is free: some
// millionths, in f32, of the result's largest element.

namespace par::kernel_check {

/// One result of a kernel.
struct Reference {
  interp::Tensor exact;
  std::vector<interp::Tensor> rounded;
  /// Of the largest element: what the order of sums may change.
  double slack = 0;

  /// How far element `i` may be off; nothing where it may be anything.
  std::optional<double> boundOf(int64_t i, double largest) const;
  double findLargest() const;
};

/// Interprets the kernel on these operands at a place, and `again` times with rounding. Errors are the interpreter's.
llvm::FailureOr<std::vector<Reference>> interpretKernel(KernelOp kernel, llvm::ArrayRef<interp::Tensor> operands,
                                                        const Place &place, unsigned again);

/// The first element that is not as it must be; counts those that it has compared.
struct Difference {
  int64_t element;
  double expected, computed, bound;
};
std::optional<Difference> findDifference(const Reference &reference, const interp::Tensor &computed,
                                         uint64_t &compared);

} // namespace par::kernel_check
