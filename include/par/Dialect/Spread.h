// Variables that are stored over more axes than the plan's own rules lay them over.
#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Whether the variable is stored over one of the axes, and not since the plan itself lays it so. With `zero` these are
/// its axes.
inline bool isSpreadOver(VariableOp variable, llvm::ArrayRef<std::string> axes) {
  if (!variable.getAt() || variable.getAt()->empty())
    return false;
  mlir::Type place = llvm::cast<mlir::TypeAttr>((*variable.getAt())[0]).getValue();
  ShardingAttr stored = llvm::cast<DistType>(place).getSharding();
  std::optional<ShardingAttr> said = variable.getSharding();
  return llvm::any_of(axes, [&](const std::string &name) {
    auto axis = mlir::StringAttr::get(variable.getContext(), name);
    return stored.uses(axis) && !(said && said->uses(axis));
  });
}

} // namespace par
