#pragma once

#include "Elements.h"

#include "par/Phases/Codegen/Codegen.h"

#include <random>

namespace par::kernel_check {

/// The rank of a stage's mesh on which a kernel runs. Without a mesh every coordinate is 0.
struct Place {
  MeshAttr mesh;
  int64_t rank = 0;

  int64_t indexOf(AxisIndexOp op) const;
  uint64_t valueOf(const ImmediateInfo &immediate) const;
};

/// The first and the last rank of a mesh that launches the kernel.
std::pair<Place, Place> placesOf(mlir::ModuleOp module, llvm::StringRef kernel);

/// Numbers that a kernel's arguments may have: floats of either sign, or all positive; integers from 0 to below `most`
/// or, of those that look something up, to below the size of that.
std::vector<interp::Tensor> drawOperands(KernelOp kernel, bool positive, int64_t most, std::mt19937_64 &random);

} // namespace par::kernel_check
