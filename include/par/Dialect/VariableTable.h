#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// The variables of a module by name, as they are when it is made. SymbolTable's static look-ups search the module from
/// its start each time, which a pass that asks for each read and write cannot afford.
class VariableTable {
public:
  /// `within` is the module, or lies in it.
  explicit VariableTable(mlir::Operation *within) {
    auto module = llvm::dyn_cast<mlir::ModuleOp>(within);
    for (VariableOp variable : (module ? module : within->getParentOfType<mlir::ModuleOp>()).getOps<VariableOp>())
      variables[variable.getSymNameAttr()] = variable;
  }

  /// Null if the module has none of that name.
  VariableOp lookup(mlir::StringAttr name) const { return variables.lookup(name); }
  VariableOp of(ReadOp read) const { return lookup(read.getVariableAttr().getAttr()); }
  VariableOp of(WriteOp write) const { return lookup(write.getVariableAttr().getAttr()); }
  /// Whether the variable of a read or a write is carried from one call to the next: data, like an input.
  bool isCarried(auto access) const { return of(access).getKind() == VariableKind::carried; }

private:
  llvm::DenseMap<mlir::StringAttr, VariableOp> variables;
};

} // namespace par
