// Masters are stored as they are updated, and their rounded shards are gathered once a step:
//
//     %w = par.read @w                 : [{"dp"}, {}] f32
//     %r = par.run @before(%w)         : [{"dp"}, {}] bf16
//     %c = par.reshard %r              : [{}, {}] bf16
//     %g = par.loop ... (%c)
//     %n = par.run @update(%w, ...)    : [{"dp"}, {}] f32
//     par.write %n to @w
#include "par/Phases/Propagate/Masters.h"

#include "par/Dialect/Spread.h"
#include "par/Phases/Propagate/Passes.h"

using namespace mlir;

namespace par {

VariableOp ownerOfVariable(StringRef name, const SymbolTable &symbols, bool ofStates) {
  auto variable = symbols.lookup<VariableOp>(name);
  while (variable && variable.getOf() && (ofStates || variable.getKind() == VariableKind::copy))
    variable = symbols.lookup<VariableOp>(*variable.getOf());
  bool weight =
      variable && (variable.getKind() == VariableKind::parameter || variable.getKind() == VariableKind::frozen);
  return weight ? variable : VariableOp();
}

bool isUpdateRun(Operation *op, const SymbolTable &symbols) {
  auto run = dyn_cast<RunOp>(op);
  return run && !run->getParentOfType<LoopOp>() &&
         symbols.lookup<FragmentOp>(run.getFragment()).getKind() == FragmentKind::update;
}

SmallVector<Value> madeBeforeLoops(OpOperand &use, const SymbolTable &symbols) {
  auto run = dyn_cast<RunOp>(use.getOwner());
  if (!run || run->getParentOfType<LoopOp>())
    return {};
  auto fragment = symbols.lookup<FragmentOp>(run.getFragment());
  llvm::SmallSetVector<Value, 4> made;
  made.insert(fragment.getArguments()[use.getOperandNumber()]);
  for (Operation &op : fragment.getBlock().without_terminator()) {
    if (llvm::none_of(op.getOperands(), [&](Value value) { return made.contains(value); }))
      continue;
    if (!op.hasTrait<OpTrait::Elementwise>() || op.getNumOperands() != 1 || op.getNumResults() != 1)
      return {};
    made.insert(op.getResult(0));
  }
  SmallVector<Value> results;
  for (auto [inner, result] : llvm::zip(fragment.getTerminator()->getOperands(), run.getResults()))
    if (made.contains(inner))
      results.push_back(result);
  return results;
}

static unsigned elementBits(Value value) { return getTensorType(value.getType()).getElementTypeBitWidth(); }

/// Whether nothing but the update reads more of the variable than its rounded value, made before the loops.
static bool readsRounded(ArrayRef<ReadOp> reads, const SymbolTable &symbols) {
  bool any = false;
  for (ReadOp read : reads)
    for (OpOperand &use : read->getUses()) {
      if (isUpdateRun(use.getOwner(), symbols))
        continue;
      SmallVector<Value> made = madeBeforeLoops(use, symbols);
      auto isRounded = [&](Value value) { return elementBits(value) < elementBits(read); };
      if (made.empty() || !llvm::all_of(made, isRounded))
        return false;
      any = true;
    }
  return any;
}

llvm::StringSet<> findMasters(StepOp step, const SymbolTable &symbols, const PropagateOptions &options) {
  llvm::StringSet<> masters;
  if (!options.masters || options.stateAxes.empty() || !options.parameterAxes.empty())
    return masters;
  llvm::MapVector<Operation *, SmallVector<ReadOp>> reads; // by parameter
  step.walk([&](ReadOp read) {
    if (VariableOp parameter = ownerOfVariable(read.getVariable(), symbols))
      reads[parameter].push_back(read);
  });
  for (auto &[op, all] : reads) {
    auto parameter = cast<VariableOp>(op);
    bool placed = parameter.getAt() && !parameter.getAt()->empty();
    bool can =
        parameter.getKind() == VariableKind::parameter && parameter.getTensorType().getNumElements() >= options.minSize;
    if (can && (placed ? isSpreadOver(parameter, options.stateAxes) : readsRounded(all, symbols)))
      masters.insert(parameter.getSymName());
  }
  return masters;
}

} // namespace par
