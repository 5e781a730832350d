#pragma once

#include "par/Dialect/Interfaces/ShardingRule.h"

namespace par {

using Axes = llvm::SmallVector<mlir::StringAttr, 2>;

/// The axes of each factor of a rule, as one tensor's sharding says them. A dim's axes go to its major factor
/// until that is used up, then to the next. What does not divide a factor of a compound dim belongs to none
/// and is dropped.
void projectToFactors(const ShardingRule &rule, llvm::ArrayRef<DimFactors> dims, llvm::ArrayRef<Axes> dimAxes,
                      MeshAttr mesh, llvm::MutableArrayRef<Axes> factorAxes);

/// A dim's axes from those of its factors: a minor factor counts only where the major ones are cut
/// completely.
Axes axesOfDim(const ShardingRule &rule, const DimFactors &dim, llvm::ArrayRef<Axes> factorAxes, MeshAttr mesh);

/// The dims of a sharding as lists of axes.
llvm::SmallVector<Axes> getDimAxes(ShardingAttr sharding);

/// True if `prefix` is how `axes` begins.
bool startsWith(llvm::ArrayRef<mlir::StringAttr> axes, llvm::ArrayRef<mlir::StringAttr> prefix);

} // namespace par
