#include "SharedVariables.h"

using namespace mlir;

namespace par {

Value findStacked(Value value) {
  auto loop = value.getDefiningOp<LoopOp>();
  if (!loop)
    return {};
  unsigned number = cast<OpResult>(value).getResultNumber();
  auto yield = cast<YieldOp>(loop.getBody().front().getTerminator());
  bool stacks = cast<YieldKindAttr>(yield.getKinds()[number]).getValue() == YieldKind::stack;
  return stacks ? yield.getOperand(number) : Value();
}

/// The variable that a copy copies; else the variable itself.
Attribute SharedVariables::rootOf(VariableOp variable) const {
  bool copy = variable.getKind() == VariableKind::copy && variable.getOf();
  return copy ? variable.getOfAttr().getAttr() : variable.getSymNameAttr();
}

/// A value that a loop slices or stacks has a part for each microbatch.
void SharedVariables::findCarried(ModuleOp module) {
  auto note = [&](FlatSymbolRefAttr name, LoopOp loop) {
    if (variables.lookup(name.getAttr()).getKind() == VariableKind::carried)
      carried[name.getAttr()] = loop.getCount();
  };
  module.walk([&](LoopOp loop) {
    for (Value whole : loop.getSlices())
      if (auto read = whole.getDefiningOp<ReadOp>())
        note(read.getVariableAttr(), loop);
  });
  module.walk([&](WriteOp write) {
    if (Value slices = findStacked(write.getOperand()))
      note(write.getVariableAttr(), write.getOperand().getDefiningOp<LoopOp>());
  });
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
  findCarried(module);
}

VariableOp SharedVariables::at(FlatSymbolRefAttr name, DistType dist) const {
  VariableOp variable = variables.lookup(name.getAttr());
  auto found = first.find({rootOf(variable), ranks.lookup(dist.getStage().getAttr()), dist.getSharding()});
  return found == first.end() ? variable : found->second;
}

} // namespace par
