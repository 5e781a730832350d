#include "SharedVariables.h"

using namespace mlir;

namespace par {

/// What a copy copies; any other variable is alone.
Attribute SharedVariables::rootOf(VariableOp variable) const {
  bool copy = variable.getKind() == VariableKind::copy && variable.getOf();
  return copy ? variable.getOfAttr().getAttr() : variable.getSymNameAttr();
}

SharedVariables::SharedVariables(ModuleOp module) {
  for (auto stage : module.getOps<StageOp>())
    ranks[stage.getSymNameAttr()] = stage.getRanksAttr();
  for (auto variable : module.getOps<VariableOp>()) {
    variables[variable.getSymNameAttr()] = variable;
    for (Attribute type : variable.getAt().value_or(ArrayAttr::get(module.getContext(), {}))) {
      auto dist = cast<DistType>(cast<TypeAttr>(type).getValue());
      first.try_emplace({rootOf(variable), ranks.lookup(dist.getStage().getAttr()), dist.getSharding()}, variable);
    }
  }
}

VariableOp SharedVariables::at(FlatSymbolRefAttr name, DistType dist) const {
  VariableOp variable = variables.lookup(name.getAttr());
  auto found = first.find({rootOf(variable), ranks.lookup(dist.getStage().getAttr()), dist.getSharding()});
  return found == first.end() ? variable : found->second;
}

} // namespace par
