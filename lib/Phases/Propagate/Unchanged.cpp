// Keeps values replicated in a loop that depend only on variables, if parameters are gathered once a step, before the
// loop. Otherwise propagation would shard them: a decay by the gradient that it is multiplied by, a moving variance by
// the scale that its root is multiplied by. Values computed on such shards would be gathered again in each microbatch.
#include "Propagation.h"

using namespace mlir;

namespace par {

/// Whether a value is read replicated over the axes that shard parameters, unless the plan itself names one: after its
/// borders, or from another stage.
bool Propagation::isReadWhole(Value value) {
  Operation *source = value.getDefiningOp();
  if (auto reshard = dyn_cast_or_null<ReshardOp>(source))
    return isReadWhole(reshard.getOperand());
  if (auto transfer = dyn_cast_or_null<TransferOp>(source))
    return isReadWhole(transfer.getOperand());
  auto read = dyn_cast_or_null<ReadOp>(source);
  if (!read)
    return false;
  std::optional<ShardingAttr> said = symbols.lookup<VariableOp>(read.getVariable()).getSharding();
  return !said || llvm::none_of(parameterAxes, [&](StringAttr axis) { return said->uses(axis); });
}

void Propagation::keepGathered(Value value) { layouts.change(value).gathered = true; }

void Propagation::keepUnchangedGathered() {
  if (!options.gatherOnce || parameterAxes.empty())
    return;
  // Only parameters and their states need shards; buffers need none.
  step.walk([&](ReadOp read) {
    if (symbols.lookup<VariableOp>(read.getVariable()).getKind() == VariableKind::buffer && isReadWhole(read))
      keepGathered(read);
  });
  // Values that only depend on variables (true) or constants (false), in fragments and as results of runs.
  DenseMap<Value, bool> unchanged;
  for (auto [run, fragment] : runs) {
    bool inLoop = bool(run->getParentOfType<LoopOp>());
    auto add = [&](Value value, bool ofVariables) {
      unchanged[value] = ofVariables;
      if (inLoop && ofVariables)
        keepGathered(value);
    };
    for (auto [outer, inner] : llvm::zip(run.getOperands(), fragment.getArguments()))
      if (unchanged.contains(outer) || isReadWhole(outer))
        add(inner, /*ofVariables=*/true);
    for (Operation &op : fragment.getBlock().without_terminator()) {
      auto known = [&](Value operand) { return unchanged.contains(operand); };
      auto ofVariables = [&](Value operand) { return unchanged.lookup(operand); };
      if (llvm::all_of(op.getOperands(), known))
        for (Value result : op.getResults())
          add(result, llvm::any_of(op.getOperands(), ofVariables));
    }
    for (auto [outer, inner] : llvm::zip(run.getResults(), fragment.getTerminator()->getOperands()))
      if (unchanged.lookup(inner))
        unchanged[outer] = true;
  }
}

} // namespace par
