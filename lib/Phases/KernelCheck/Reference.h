#pragma once

#include "Operands.h"

#include <optional>

// The interpreter's results of a kernel, and how far from them rounding code may be.
//
// The interpreter computes in f64. The kernel's body is interpreted again with every result of an op rounded to its own
// type, to nearest and by chance up or down (discrete stochastic arithmetic, Vignes 1993). The differences between
// these runs, element by element, are the effect of the kernel's own rounding. An element that depends on a decision
// which differs between runs (a comparison, the place of a maximum) is not compared. The order of a sum is free, too:
// it adds some millionths, in f32, of the result's largest element.

namespace par::kernel_check {

/// One result of a kernel.
struct Reference {
  interp::Tensor exact;
  std::vector<interp::Tensor> rounded;
  /// Maximum error from the order of sums, relative to the largest element.
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
