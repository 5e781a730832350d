#include "StagePlacement.h"

#include <optional>

using namespace mlir;

namespace par {

StagePlacement::StagePlacement(StepOp step, ModuleOp module) : module(module) {
  DenseMap<Operation *, bool> weighted;
  for (Operation &op : step.getBlock()) {
    if (auto read = dyn_cast<ReadOp>(op))
      weighted[&op] = isWeight(read);
    if (!isTensorOp(&op))
      continue;
    for (Value operand : op.getOperands()) {
      Operation *source = operand.getDefiningOp();
      active[&op] |= !source || active.lookup(source);
      weighted[&op] |= source && weighted.lookup(source);
    }
    if (weighted[&op])
      placed.push_back(&op);
  }
}

/// Frozen layers compute as trained ones do.
bool StagePlacement::isWeight(ReadOp read) const {
  auto variable = ModuleOp(module).lookupSymbol<VariableOp>(read.getVariable());
  return variable && (variable.getKind() == VariableKind::parameter || variable.getKind() == VariableKind::frozen);
}

/// A hint of an op that no input flows into says where it stands in the graph: its weights may be read where it is
/// used, and its result need not be sent there.
void StagePlacement::joinUsers(int64_t numStages) {
  DenseSet<int64_t> computing; // a stage to which the plan gives only weights keeps them
  for (auto [op, stage] : stages)
    if (active.lookup(op))
      computing.insert(stage);
  for (Operation *op : llvm::reverse(placed)) {
    std::optional<int64_t> first;
    for (Operation *user : op->getUsers())
      if (auto found = stages.find(user); found != stages.end())
        first = std::min(first.value_or(found->second), found->second);
    auto own = stages.find(op);
    if (own == stages.end())
      stages[op] = first.value_or(numStages - 1);
    else if (first && !active.lookup(op) && computing.contains(own->second))
      own->second = *first;
  }
}

void StagePlacement::assign(int64_t numStages) {
  for (Operation *op : placed) {
    bool isPlaced = active.lookup(op) || hints.count(op);
    int64_t least = hints.lookup(op);
    for (Value operand : op->getOperands())
      if (auto source = stages.find(operand.getDefiningOp()); source != stages.end()) {
        least = std::max(least, source->second);
        isPlaced = true;
      }
    if (isPlaced)
      stages[op] = least;
  }
  joinUsers(numStages);
  for (Operation *op : placed)
    setStage(op, stages[op]);
}

} // namespace par
