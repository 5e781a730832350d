#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// The variables of a module by name, as they are when it is made. SymbolTable's static look-ups search the module from
/// its start each time, which a pass that asks for each read and write cannot afford.
class VariableTable {
public:
  /// The table of the module that `within` is, or lies in.
  explicit VariableTable(mlir::Operation *within) {
    auto module = llvm::dyn_cast<mlir::ModuleOp>(within);
    for (VariableOp variable : (module ? module : within->getParentOfType<mlir::ModuleOp>()).getOps<VariableOp>())
      variables[variable.getSymNameAttr()] = variable;
  }

  /// Null if the module has none of that name.
  VariableOp lookup(mlir::StringAttr name) const { return variables.lookup(name); }
  VariableOp of(ReadOp read) const { return lookup(read.getVariableAttr().getAttr()); }
  VariableOp of(WriteOp write) const { return lookup(write.getVariableAttr().getAttr()); }

private:
  llvm::DenseMap<mlir::StringAttr, VariableOp> variables;
};

} // namespace par
