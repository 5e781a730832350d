// Interprets a step on whole values; fragments with shardings run on the shards of every rank of their stage. Several
// calls of a step carry variables from one to the next.
#include "par/Base/Indexing.h"
#include "par/Dialect/Calls.h"
#include "par/Dialect/Combine.h"
#include "par/Dialect/Interfaces/Interpretable.h"
#include "par/Interpreter/Interpreter.h"

using namespace mlir;

namespace par::interp {
namespace {

/// One call of a step: whole values of everything at step level.
class StepRun {
public:
  /// `before` are the variables as they were before each of the calls that this one follows.
  StepRun(StepOp step, const Named &variables, const Named &inputs, ArrayRef<Named> before)
      : step(step), module(step->getParentOfType<ModuleOp>()), variables(variables), inputs(inputs), before(before) {}

  FailureOr<Outcome> run();

private:
  LogicalResult bindInputs();
  LogicalResult visit(Operation *op);
  LogicalResult visitRead(ReadOp read);
  bool staysWithRanks(FragmentOp fragment, Value result);
  LogicalResult visitRun(RunOp run);
  LogicalResult visitLoop(LoopOp loop);
  void accumulate(StringRef variable, const Tensor &summand);
  LogicalResult visitReduce(StageAllReduceOp reduce);
  LogicalResult visitTensorOp(Operation *op);

  StepOp step;
  ModuleOp module;
  const Named &variables, &inputs;
  ArrayRef<Named> before;
  RankValues values;
  DenseMap<Value, SmallVector<Tensor>> shardsOf; ///< values that stay as shards on their ranks
  Outcome outcome;
};

} // namespace

LogicalResult StepRun::bindInputs() {
  for (BlockArgument argument : step.getArguments()) {
    std::string name = step.getInputs()
                           ? cast<StringAttr>((*step.getInputs())[argument.getArgNumber()]).getValue().str()
                           : std::to_string(argument.getArgNumber());
    auto found = inputs.find(name);
    RankedTensorType type = getTensorType(argument.getType());
    if (found == inputs.end())
      return step.emitError() << "input \"" << name << "\" has no value";
    if (found->second.getSize() != type.getNumElements())
      return step.emitError() << "input \"" << name << "\" is " << found->second.getType() << ", the step takes "
                              << type;
    values[argument] = found->second.withType(type);
  }
  return success();
}

LogicalResult StepRun::visitRead(ReadOp read) {
  // Each call writes a variable once, so d writes ago is d calls ago, and at most the first value.
  int64_t behind = std::min<int64_t>(read.getBehind(), before.size());
  values[read] = initialValue(module.lookupSymbol<VariableOp>(read.getVariable()),
                              behind == 0 ? variables : before[before.size() - behind]);
  return success();
}

/// Whether a value goes from the first part of backward to the second only. Each rank then keeps its shard as it is,
/// padding and partial sums included.
bool StepRun::staysWithRanks(FragmentOp fragment, Value result) {
  return fragment.getLocal() && fragment.getKind() == FragmentKind::backward && !result.use_empty() &&
         llvm::all_of(result.getUsers(), [&](Operation *user) {
           auto run = dyn_cast<RunOp>(user);
           return run && module.lookupSymbol<FragmentOp>(run.getFragment()).getKind() == FragmentKind::weight;
         });
}

/// A fragment on whole tensors, or on the shards of every rank of its stage.
LogicalResult StepRun::visitRun(RunOp run) {
  auto fragment = module.lookupSymbol<FragmentOp>(run.getFragment());
  MeshAttr mesh = fragment.getLocal() ? getMesh(run, fragment.getStageAttr()) : MeshAttr();
  SmallVector<RankValues> ranks(mesh ? mesh.getRanks() : 1);
  for (auto [operand, argument] : llvm::zip(run.getOperands(), fragment.getArguments())) {
    auto dist = dyn_cast<DistType>(operand.getType());
    if (auto kept = shardsOf.find(operand); kept != shardsOf.end()) {
      for (auto [rank, shard] : llvm::zip(ranks, kept->second))
        rank[argument] = shard;
      continue;
    }
    if (!mesh || !dist) {
      for (RankValues &rank : ranks)
        rank[argument] = values.lookup(operand);
      continue;
    }
    for (auto [rank, shard] : llvm::zip(ranks, distribute(values.lookup(operand), dist.getSharding(), mesh)))
      rank[argument] = shard;
  }
  if (failed(runBlock(fragment.getBlock(), ranks, mesh)))
    return failure();
  for (auto [result, inner] : llvm::zip(run.getResults(), fragment.getTerminator()->getOperands())) {
    if (!mesh) {
      values[result] = ranks.front().lookup(inner);
      continue;
    }
    SmallVector<Tensor> shards;
    for (RankValues &rank : ranks)
      shards.push_back(rank.lookup(inner));
    if (staysWithRanks(fragment, result)) {
      shardsOf[result] = std::move(shards);
      continue;
    }
    auto dist = cast<DistType>(result.getType());
    FailureOr<Tensor> whole = collect(run, shards, dist.getTensor(), dist.getSharding(), mesh);
    if (failed(whole))
      return failure();
    values[result] = *whole;
  }
  return success();
}

LogicalResult StepRun::visitLoop(LoopOp loop) {
  Block &body = loop.getBody().front();
  auto yield = cast<YieldOp>(body.getTerminator());
  int64_t count = loop.getCount();
  for (int64_t i = 0; i < count; ++i) {
    values[body.getArgument(0)] = Tensor::ofInts(cast<RankedTensorType>(body.getArgument(0).getType()), {i});
    for (auto [operand, argument] : llvm::zip(loop.getSlices(), body.getArguments().drop_front())) {
      RankedTensorType type = getTensorType(argument.getType());
      Tensor whole = values.lookup(operand);
      values[argument] = pick(whole, type, getStrides(type.getShape()), i * type.getNumElements());
    }
    for (Operation &op : body.without_terminator())
      if (failed(visit(&op)))
        return failure();
    for (auto [inner, result, kind] :
         llvm::zip(yield.getOperands(), loop.getResults(), yield.getKinds().getAsRange<YieldKindAttr>())) {
      Tensor part = values.lookup(inner); // a copy: the next lookup may insert
      Tensor &total = values[result];
      if (kind.getValue() == YieldKind::sum) {
        if (i == 0)
          total = part;
        else
          combineInto(ReduceKind::sum, total, part);
        continue;
      }
      if (i == 0)
        total = Tensor(getTensorType(result.getType()));
      if (total.isFloat())
        llvm::copy(part.floats(), total.mutableFloats().begin() + i * part.getSize());
      else
        llvm::copy(part.ints(), total.mutableInts().begin() + i * part.getSize());
    }
  }
  if (loop.getLabels())
    for (auto [label, result] : llvm::zip(loop.getLabels()->getAsRange<StringAttr>(), loop.getResults()))
      if (!label.empty())
        accumulate(label.getValue(), values[result]);
  return success();
}

/// Adds one stage's term to the gradient of a variable; a tied parameter has several.
void StepRun::accumulate(StringRef variable, const Tensor &summand) {
  auto [at, first] = outcome.accumulators.try_emplace(variable.str(), summand);
  if (!first)
    combineInto(ReduceKind::sum, at->second, summand);
}

LogicalResult StepRun::visitReduce(StageAllReduceOp reduce) {
  Tensor total = values.lookup(reduce.getOperand(0));
  for (Value operand : reduce.getOperands().drop_front())
    combineInto(reduce.getKind(), total, values.lookup(operand));
  for (Value result : reduce.getResults())
    values[result] = total;
  return success();
}

LogicalResult StepRun::visitTensorOp(Operation *op) {
  auto meaning = dyn_cast<InterpretableOpInterface>(op);
  if (!meaning)
    return op->emitError() << "cannot be interpreted in a step";
  SmallVector<Tensor> operands;
  for (Value operand : op->getOperands())
    operands.push_back(values.lookup(operand));
  auto results = meaning.interpret(operands);
  if (failed(results))
    return failure();
  for (auto [result, tensor] : llvm::zip(op->getResults(), *results))
    values[result] = tensor;
  // One of rows is of those that a step looks up: no accumulator has its shape.
  if (auto gradient = dyn_cast<GradientOp>(op); gradient && !gradient.getRows())
    outcome.accumulators[gradient.getVariable().str()] = values[gradient];
  return success();
}

LogicalResult StepRun::visit(Operation *op) {
  if (auto read = dyn_cast<ReadOp>(op))
    return visitRead(read);
  if (auto run = dyn_cast<RunOp>(op))
    return visitRun(run);
  if (auto loop = dyn_cast<LoopOp>(op))
    return visitLoop(loop);
  if (auto reduce = dyn_cast<StageAllReduceOp>(op))
    return visitReduce(reduce);
  if (auto write = dyn_cast<WriteOp>(op)) {
    outcome.written[write.getVariable().str()] = values.lookup(write.getOperand());
    return success();
  }
  if (isa<TransferOp, ReshardOp>(op)) {
    values[op->getResult(0)] = values.lookup(op->getOperand(0));
    return success();
  }
  return visitTensorOp(op);
}

FailureOr<Outcome> StepRun::run() {
  if (failed(bindInputs()))
    return failure();
  for (Operation &op : step.getBlock().without_terminator())
    if (failed(visit(&op)))
      return failure();
  for (auto [index, result] : llvm::enumerate(step.getTerminator()->getOperands())) {
    std::string name =
        step.getOutputs() ? cast<StringAttr>((*step.getOutputs())[index]).getValue().str() : std::to_string(index);
    outcome.outputs[name] = values.lookup(result);
  }
  return outcome;
}

/// A copy starts as its owner, a variable with a value as that, another as zeros.
Tensor initialValue(VariableOp variable, const Named &variables) {
  auto found = variables.find(variable.getSymName().str());
  if (found != variables.end())
    return found->second.withType(variable.getTensorType());
  auto module = variable->getParentOfType<ModuleOp>();
  if (variable.getKind() == VariableKind::copy)
    return initialValue(module.lookupSymbol<VariableOp>(*variable.getOf()), variables);
  if (variable.getValue())
    return Tensor::ofAttribute(*variable.getValue()).withType(variable.getTensorType());
  return Tensor(variable.getTensorType());
}

/// The inputs of the i-th of several calls: a slice of arrays that hold all calls, any other array whole.
static Named inputsOf(StepOp step, const Named &inputs, int64_t call, int64_t calls) {
  Named part = inputs;
  for (BlockArgument argument : step.getArguments()) {
    std::string name = step.getInputs()
                           ? cast<StringAttr>((*step.getInputs())[argument.getArgNumber()]).getValue().str()
                           : std::to_string(argument.getArgNumber());
    RankedTensorType type = getTensorType(argument.getType());
    auto found = inputs.find(name);
    if (found != inputs.end() && found->second.getSize() == type.getNumElements() * calls)
      part[name] = pick(found->second, type, getStrides(type.getShape()), call * type.getNumElements());
  }
  return part;
}

FailureOr<Outcome> runStep(StepOp step, const Named &variables, const Named &inputs, int64_t calls) {
  if (calls == 1)
    return StepRun(step, variables, inputs, {}).run();
  Outcome all;
  std::map<std::string, SmallVector<Tensor>> outputs;
  SmallVector<Named> before;
  Named now = variables;
  for (int64_t call = 0; call < calls; ++call) {
    Named part = inputsOf(step, inputs, call, calls);
    FailureOr<Outcome> outcome = StepRun(step, now, part, before).run();
    if (failed(outcome))
      return failure();
    for (auto &[name, tensor] : outcome->outputs)
      outputs[name].push_back(tensor);
    before.push_back(now);
    for (auto &[name, tensor] : outcome->written)
      now[name] = all.written[name] = tensor;
    all.accumulators = std::move(outcome->accumulators);
  }
  for (auto &[name, parts] : outputs)
    all.outputs[name] = stack(parts);
  return all;
}
} // namespace par::interp
