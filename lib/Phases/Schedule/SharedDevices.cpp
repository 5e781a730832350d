// Sharing between stages on the same ranks: handed-over values, inputs, variables, writes.
#include "StepTasks.h"

using namespace mlir;

namespace par {

static ShardingAttr shardingOf(Value value) { return cast<DistType>(value.getType()).getSharding(); }

SmallVector<unsigned> StepTasks::devicesOf(const Task &task) const {
  llvm::SetVector<unsigned> on;
  for (unsigned stage : task.stages)
    on.insert(deviceOf(stage));
  return on.takeVector();
}

/// Whether a transferred value is on its device already: it was made there, or came there for another stage. It is then
/// the same value, unless that one belongs to a microbatch and this one does not.
bool StepTasks::isThere(TransferOp transfer) {
  Value value = canonical(transfer.getOperand()), result = transfer.getResult();
  Value origin = origins.lookup(value) ? origins.lookup(value) : value;
  SmallVector<Value> &known = arrived[origin];
  if (known.empty())
    known.push_back(origin);
  bool inLoop = isa<LoopOp>(transfer->getParentOp());
  for (Value other : known)
    if (deviceOf(other) == deviceOf(result) && shardingOf(other) == shardingOf(result) &&
        (inLoop || !isa<LoopOp>(other.getParentBlock()->getParentOp()))) {
      same[result] = other;
      return true;
    }
  known.push_back(result);
  origins[result] = origin;
  return false;
}

/// A variable that several stages of a device read has one buffer there.
LogicalResult StepTasks::joinRead(ReadOp read) {
  Value value = read.getResult();
  int64_t staleness = read.getBehind();
  Value &first = staleness ? staleReads[{deviceOf(value), variableOf(read), staleness}]
                           : reads[{deviceOf(value), variableOf(read)}];
  if (!first)
    first = value;
  else if (shardingOf(first) == shardingOf(value))
    same[value] = first;
  else
    return read.emitError() << "takes @" << read.getVariable()
                            << " in other parts than another stage on the same ranks: not supported yet by Schedule";
  return success();
}

SmallVector<Value> StepTasks::staleReadsOf(VariableOp variable, unsigned device) const {
  SmallVector<Value> values;
  for (auto &[key, value] : staleReads)
    if (std::get<0>(key) == device && std::get<1>(key) == variable.getOperation())
      values.push_back(value);
  return values;
}

/// An input that several stages of a device use is fed once.
LogicalResult StepTasks::joinInputs() {
  if (!step.getInputs())
    return success();
  llvm::DenseMap<std::pair<unsigned, Attribute>, Value> known;
  for (auto [name, argument] : llvm::zip(*step.getInputs(), step.getBlock().getArguments())) {
    Value &first = known[{deviceOf(argument), name}];
    if (!first)
      first = argument;
    else if (shardingOf(first) == shardingOf(argument))
      same[argument] = first;
    else
      return step.emitError() << "takes input " << name
                              << " in other parts on another stage on the same ranks: not supported yet by Schedule";
  }
  return success();
}

SmallVector<WriteOp> StepTasks::writes() const {
  llvm::MapVector<std::pair<unsigned, Operation *>, WriteOp> last;
  for (WriteOp write : StepOp(step).getBlock().getOps<WriteOp>()) {
    WriteOp &kept = last[{deviceOf(write.getOperand()), variableOf(write)}];
    if (!kept || producer(kept.getOperand()) < producer(write.getOperand()))
      kept = write;
  }
  return llvm::map_to_vector(last, [](const auto &entry) { return entry.second; });
}

} // namespace par
