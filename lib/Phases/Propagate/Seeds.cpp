// The seeds of propagation: the batch, inputs and variables that an earlier step has placed, and the plan's rules.
#include "Propagation.h"

using namespace mlir;

namespace par {

void Propagation::seedBatch() {
  for (BlockArgument argument : step.getArguments()) {
    MeshAttr mesh = layouts.meshOf(argument);
    Axes axes;
    for (StringAttr axis : batch)
      if (mesh.getSize(axis))
        axes.push_back(axis);
    // Inputs are (m, B/m, ...): dim 0 is time.
    if (getTensorType(argument.getType()).getRank() >= 2)
      layouts.extend(argument, 1, axes);
  }
}

void Propagation::seed(Value value, ShardingAttr sharding) {
  for (auto [dim, entry] : llvm::enumerate(sharding.getDims())) {
    layouts.extend(value, dim, entry.getAxes());
    if (!entry.getOpen())
      layouts.change(value).fixed[dim] = true;
  }
}

StringRef Propagation::inputName(unsigned number) {
  return step.getInputs() ? cast<StringAttr>((*step.getInputs())[number]).getValue() : StringRef();
}

/// Reuses and closes the shardings of an earlier step.
void Propagation::seedInputs() {
  for (BlockArgument argument : step.getArguments())
    if (ShardingAttr sharding = inputs.lookup(inputName(argument.getArgNumber()));
        sharding && sharding.getRank() == getTensorType(argument.getType()).getRank())
      seed(argument, sharding);
  step.walk([&](ReadOp read) {
    if (placeOf(read))
      for (bool &fixed : layouts.change(read).fixed)
        fixed = true;
  });
}

/// How an earlier step has a variable, or the one that it is a copy of.
ShardingAttr Propagation::placeOf(ReadOp read) {
  auto variable = symbols.lookup<VariableOp>(read.getVariable());
  if (!variable.getAt() && variable.getKind() == VariableKind::copy)
    variable = symbols.lookup<VariableOp>(*variable.getOf());
  if (!variable.getAt() || variable.getAt()->empty())
    return {};
  return cast<DistType>(cast<TypeAttr>((*variable.getAt())[0]).getValue()).getSharding();
}

/// After the batch, as in the step that placed them.
void Propagation::seedPlaces() {
  step.walk([&](ReadOp read) {
    if (ShardingAttr place = placeOf(read))
      layouts.change(read).dims = getDimAxes(place);
  });
}

/// The priority of a parameter's rules; a state or copy has its parameter's.
int64_t Propagation::priorityOf(VariableOp variable) {
  int64_t priority = 1;
  auto said = priorities.find(variable.getOf() ? *variable.getOf() : variable.getSymName());
  if (said != priorities.end())
    said->second.getAsInteger(10, priority);
  return priority;
}

/// All priorities of the plan, each once, lowest first.
SmallVector<int64_t> Propagation::planPriorities() {
  SmallVector<int64_t> found{1};
  for (auto variable : module.getOps<VariableOp>())
    found.push_back(priorityOf(variable));
  for (auto &[name, rule] : stateRules)
    found.push_back(priorityOfRule(rule));
  for (auto [run, fragment] : runs)
    for (auto constrain : fragment.getBlock().getOps<ConstrainOp>())
      found.push_back(constrain.getPriority());
  llvm::sort(found);
  found.erase(llvm::unique(found), found.end());
  return found;
}

/// Seeds the plan's rules of one priority: variables first, since they decide how matmuls are sharded, then values.
/// Dims that a value's rule will shard stay closed meanwhile, so that no other axis gets there. Between a
/// column-parallel and a row-parallel matmul activations follow the weights, and `out(norm): {1: tp}` only reaches
/// values between such pairs.
void Propagation::seedPlan(int64_t priority) {
  SmallVector<std::pair<ConstrainOp, SmallVector<bool>>> constraints; // with the dims that were fixed before
  for (auto [run, fragment] : runs)
    for (auto constrain : fragment.getBlock().getOps<ConstrainOp>()) {
      if (constrain.getPriority() != priority)
        continue;
      SmallVector<bool> &fixed = layouts.change(constrain).fixed;
      constraints.push_back({constrain, fixed});
      fixed.assign(fixed.size(), true);
    }
  step.walk([&](ReadOp read) { seedVariable(read, priority); });
  seedUpdates(priority);
  spread();
  for (auto &[constrain, fixed] : llvm::reverse(constraints)) // two may be in one class
    layouts.change(constrain).fixed = fixed;
  for (auto &[constrain, fixed] : constraints)
    seed(constrain, constrain.getSharding());
}

void Propagation::seedVariable(ReadOp read, int64_t priority) {
  auto variable = symbols.lookup<VariableOp>(read.getVariable());
  auto of = variable.getOf() ? symbols.lookup<VariableOp>(*variable.getOf()) : VariableOp();
  bool saidAtBorders = variable.getKind() == VariableKind::state && of && updatedRule(of);
  if (!variable.getSharding() || saidAtBorders || priorityOf(variable) != priority)
    return;
  seed(read, *variable.getSharding());
  for (Value use : usesOf(read))
    seed(use, *variable.getSharding());
}

/// Seeds the plan's rules for states on the update's side of borders; propagation carries them to the states.
void Propagation::seedUpdates(int64_t priority) {
  for (auto &[name, list] : borders) {
    auto parameter = symbols.lookup<VariableOp>(name);
    ShardingAttr rule = updatedRule(parameter);
    if (!rule || priorityOfRule(stateRules.lookup(name)) != priority)
      continue;
    SmallVector<Axes> base(rule.getRank());
    if (parameter.getSharding())
      base = getDimAxes(*parameter.getSharding());
    SmallVector<Axes> dims = layRule(base, rule);
    for (Border &border : list) {
      if (!isOfUpdate(border))
        continue;
      extendAll(updateSide(border), dims);
      for (auto [dim, said] : llvm::enumerate(rule.getDims()))
        if (!said.getOpen())
          layouts.change(updateSide(border)).fixed[dim] = true;
    }
  }
}

} // namespace par
