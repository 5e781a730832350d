#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// The per-microbatch value that a loop result stacks, else null.
mlir::Value findStacked(mlir::Value value);

/// A tied parameter is owned by one stage and copied to others. If several of these lie on the same ranks in the same
/// parts, one variable stands for all of them there: the owner, or the first copy.
///
///     par.variable @wte parameter : ... at [!par.dist<..., @s0, ...>]                  // ranks [0]: both in @wte
///     par.variable @wte.s3 copy of @wte : ... at [!par.dist<..., @s3, ...>]
class SharedVariables {
public:
  explicit SharedVariables(mlir::ModuleOp module);

  /// The variable whose buffer a variable has on the ranks of a stage.
  VariableOp at(mlir::FlatSymbolRefAttr variable, DistType dist) const;
  /// The number of microbatches that each carry a part of the variable to the next call, (m, B/m, ...); 0 for any other
  /// variable.
  int64_t microbatchesOf(VariableOp variable) const { return carried.lookup(variable.getSymNameAttr()); }

private:
  mlir::Attribute rootOf(VariableOp variable) const;
  void findCarried(mlir::ModuleOp module);

  llvm::DenseMap<mlir::Attribute, VariableOp> variables;  ///< by name
  llvm::DenseMap<mlir::Attribute, mlir::Attribute> ranks; ///< of a stage
  llvm::DenseMap<mlir::Attribute, int64_t> carried;       ///< microbatches, by name
  /// (parameter, ranks, sharding) -> the first one in the table.
  llvm::DenseMap<std::tuple<mlir::Attribute, mlir::Attribute, mlir::Attribute>, VariableOp> first;
};

} // namespace par
