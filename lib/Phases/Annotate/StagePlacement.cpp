#include "StagePlacement.h"

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
  for (Operation *op : llvm::reverse(placed)) {
    if (stages.count(op))
      continue;
    int64_t first = numStages - 1;
    for (Operation *user : op->getUsers())
      if (auto found = stages.find(user); found != stages.end())
        first = std::min(first, found->second);
    stages[op] = first;
  }
  for (Operation *op : placed)
    setStage(op, stages[op]);
}

} // namespace par
