#pragma once

#include "par/Dialect/Interfaces/ShardingRule.h"

namespace par {

using Axes = llvm::SmallVector<mlir::StringAttr, 2>;

/// The axes of each factor of a rule in one tensor's sharding. A dim's axes go to its major factor until that is used
/// up, then to the next. An axis that does not divide a factor of a compound dim is dropped.
void projectToFactors(const ShardingRule &rule, llvm::ArrayRef<DimFactors> dims, llvm::ArrayRef<Axes> dimAxes,
                      MeshAttr mesh, llvm::MutableArrayRef<Axes> factorAxes);

/// A dim's axes from those of its factors: a minor factor counts only if the major ones are completely sharded.
Axes axesOfDim(const ShardingRule &rule, const DimFactors &dim, llvm::ArrayRef<Axes> factorAxes, MeshAttr mesh);

/// The dims of a sharding as lists of axes.
llvm::SmallVector<Axes> getDimAxes(ShardingAttr sharding);

/// True if `prefix` is how `axes` begins.
bool startsWith(llvm::ArrayRef<mlir::StringAttr> axes, llvm::ArrayRef<mlir::StringAttr> prefix);

/// Whether rows that an op adds up by their indices (the gradient of a table) can be brought to where the table lies
/// over the axis, in fewer bytes than a sum as large as the whole table takes.
bool canPlaceRows(mlir::Operation *op, const ShardingRule &rule, llvm::ArrayRef<Axes> rows, llvm::ArrayRef<Axes> table,
                  mlir::StringAttr axis, MeshAttr mesh);

} // namespace par
