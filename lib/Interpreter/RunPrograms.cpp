// Interprets an entry of all programs: each runs until it must communicate, then they meet (Rendezvous.h). Afterwards
// gradients and states of all ranks are joined into whole values.
#include "Rendezvous.h"
#include "par/Base/Indexing.h"
#include "par/Dialect/Combine.h"

using namespace mlir;

namespace par::interp {
namespace {

/// All roles through one entry.
class ProgramRun {
public:
  ProgramRun(ModuleOp module, StringRef entry, const Named &variables, const Named &inputs)
      : module(module), entry(entry), variables(variables), inputs(inputs) {}

  FailureOr<Outcome> run();

private:
  LogicalResult begin();
  LogicalResult fillState(ProgramCursor &walk);
  LogicalResult play();
  LogicalResult act(ProgramCursor &walk);
  LogicalResult call(ProgramCursor &walk, Operation *op, Region &callee);
  LogicalResult fetch(ProgramCursor &walk, FetchOp op);
  LogicalResult collectGradients(ProgramCursor &walk);
  LogicalResult finish(ProgramCursor &walk);

  ModuleOp module;
  StringRef entry;
  const Named &variables, &inputs;
  std::vector<ProgramCursor> walks;
  std::map<std::string, std::map<int64_t, Tensor>> fetched; ///< by name and microbatch
  Outcome outcome;
};

} // namespace

//===-- Before the entry ---------------------------------------------------------------------===//

LogicalResult ProgramRun::begin() {
  for (auto program : module.getOps<ProgramOp>()) {
    auto runs = dyn_cast_or_null<EntryOp>(SymbolTable::lookupSymbolIn(program, entry));
    if (!runs)
      return program.emitError() << "has no entry @" << entry;
    walks.emplace_back(program, runs);
    if (failed(fillState(walks.back())))
      return failure();
  }
  return success();
}

/// Parts of a buffer: one a microbatch if its values are carried from microbatch to microbatch.
static int64_t partsOf(BufferOp buffer) { return buffer.getIndex() == SlotIndex::microbatch ? buffer.getDepth() : 1; }

/// A microbatch's slice of a value with microbatches in dim 0.
static Tensor partOf(const Tensor &whole, RankedTensorType type, int64_t microbatch) {
  return pick(whole, type, getStrides(type.getShape()), microbatch * type.getNumElements());
}

LogicalResult ProgramRun::fillState(ProgramCursor &walk) {
  for (auto buffer : walk.program.getOps<BufferOp>()) {
    if (buffer.getKind() == BufferKind::temp)
      continue;
    if (!buffer.getOf() || !buffer.getDist())
      return buffer.emitError() << "does not name the value that it is a shard of";
    if (buffer.getKind() == BufferKind::input)
      continue;
    auto variable = module.lookupSymbol<VariableOp>(*buffer.getOf());
    if (!variable)
      return buffer.emitError() << "names \"" << *buffer.getOf() << "\", which is no variable";
    auto dist = cast<DistType>(*buffer.getDist());
    Tensor whole = initialValue(variable, variables);
    // The host writes hyperparameters for every call.
    bool hyper = buffer.getKind() == BufferKind::hyperparameter;
    for (int64_t slot = 0; slot < (hyper ? int64_t(buffer.getDepth()) : partsOf(buffer)); ++slot)
      walk.storage.fill(
          buffer, {slot, slot},
          distribute(hyper ? whole : partOf(whole, dist.getTensor(), slot), dist.getSharding(), walk.mesh));
  }
  return success();
}

/// Feeds an input, or one microbatch of it, when the entry first reads it.
static LogicalResult feed(ProgramCursor &walk, BufferOp buffer, const Named &inputs) {
  int64_t microbatch = buffer.getSliced() ? walk.microbatch() : 0;
  if (!walk.fed.insert({buffer, microbatch}).second)
    return success();
  RankedTensorType type = cast<DistType>(*buffer.getDist()).getTensor();
  auto found = inputs.find(buffer.getOf()->str());
  int64_t size = type.getNumElements(), have = found == inputs.end() ? 0 : found->second.getSize();
  if (buffer.getSliced() ? have < (microbatch + 1) * size : have != size)
    return buffer.emitError() << "takes " << type << " for microbatch " << microbatch << " of input \""
                              << *buffer.getOf() << "\", which has " << have << " elements";
  Tensor part = partOf(found->second, type, microbatch);
  ShardingAttr sharding = cast<DistType>(*buffer.getDist()).getSharding();
  walk.storage.fill(buffer, walk.index(), distribute(part, sharding, walk.mesh));
  return success();
}

//===-- Ops that a role does by itself -------------------------------------------------------===//

/// Runs the body of a fragment or kernel on all ranks.
LogicalResult ProgramRun::call(ProgramCursor &walk, Operation *op, Region &callee) {
  Block &body = callee.front();
  SmallVector<RankValues> frames(walk.values.size());
  for (auto [frame, rank] : llvm::zip(frames, walk.values))
    for (auto [operand, argument] : llvm::zip(op->getOperands(), body.getArguments()))
      frame[argument] = rank.lookup(operand);
  if (failed(runBlock(body, frames, walk.mesh)))
    return failure();
  for (auto [frame, rank] : llvm::zip(frames, walk.values))
    for (auto [result, inner] : llvm::zip(op->getResults(), body.getTerminator()->getOperands()))
      rank[result] = frame.lookup(inner);
  return success();
}

LogicalResult ProgramRun::fetch(ProgramCursor &walk, FetchOp op) {
  RankedTensorType type = cast<RankedTensorType>(op.getOperand().getType());
  auto sharding = ShardingAttr::getReplicated(module.getContext(), type.getRank());
  SmallVector<Tensor> shards(walk.shards(op.getOperand()));
  if (std::optional<Type> part = op.getDist()) {
    auto dist = cast<DistType>(*part);
    type = dist.getTensor();
    sharding = dist.getSharding();
    for (Tensor &shard : shards)
      shard = shard.withType(sharding.getLocalType(type, walk.mesh));
  }
  FailureOr<Tensor> whole = collect(op, shards, type, sharding, walk.mesh);
  if (failed(whole))
    return failure();
  fetched[op.getName().str()][walk.microbatch()] = *whole;
  return success();
}

/// Whether a variable's gradient is summed up here.
static bool isAccumulator(BufferOp buffer) {
  return buffer.getKind() == BufferKind::temp && buffer.getOf() && buffer.getDist();
}

/// One op that needs no other role.
LogicalResult ProgramRun::act(ProgramCursor &walk) {
  Operation *op = &*walk.next;
  for (Value operand : op->getOperands())
    if (auto load = operand.getDefiningOp<LoadOp>())
      if (failed(walk.storage.checkStillThere(op, load, walk.index())))
        return failure();
  if (auto load = dyn_cast<LoadOp>(op)) {
    BufferOp buffer = walk.storage.lookup(load.getBuffer());
    if (buffer.getKind() == BufferKind::input && failed(feed(walk, buffer, inputs)))
      return failure();
    auto shards = walk.storage.load(load, walk.index());
    if (failed(shards))
      return failure();
    for (auto [rank, shard] : llvm::zip(walk.values, *shards))
      rank[load.getResult()] = shard;
    return success();
  }
  if (auto store = dyn_cast<StoreOp>(op)) {
    SmallVector<Tensor> shards = walk.shards(store.getOperand());
    // Other values may take the bytes before the entry ends.
    if (BufferOp buffer = walk.storage.lookup(store.getBuffer()); isAccumulator(buffer))
      walk.accumulators[buffer] =
          llvm::map_to_vector(shards, [&](const Tensor &shard) { return seeAs(shard, buffer.getTensorType()); });
    walk.storage.store(store, walk.index(), shards);
    return success();
  }
  if (auto exec = dyn_cast<ExecOp>(op))
    return call(walk, op, module.lookupSymbol<FragmentOp>(exec.getFragment()).getBody());
  if (auto launch = dyn_cast<LaunchOp>(op))
    return call(walk, op, module.lookupSymbol<KernelOp>(launch.getKernel()).getBody());
  if (auto result = dyn_cast<FetchOp>(op))
    return fetch(walk, result);
  return runOp(*op, walk.values, walk.mesh);
}

LogicalResult ProgramRun::play() {
  while (true) {
    for (ProgramCursor &walk : walks)
      while (!walk.done() && !walk.communicates()) {
        if (failed(act(walk)))
          return failure();
        walk.step();
      }
    FailureOr<bool> met = meet(walks);
    if (failed(met))
      return failure();
    if (!*met)
      return reportDeadlock(walks);
  }
}

//===-- After the entry ----------------------------------------------------------------------===//

LogicalResult ProgramRun::collectGradients(ProgramCursor &walk) {
  for (auto &[op, shards] : walk.accumulators) {
    auto buffer = cast<BufferOp>(op);
    auto dist = cast<DistType>(*buffer.getDist());
    FailureOr<Tensor> whole = collect(buffer, shards, dist.getTensor(), dist.getSharding(), walk.mesh);
    if (failed(whole))
      return failure();
    // A tied parameter's gradient is the sum of one term per stage.
    auto [at, first] = outcome.accumulators.try_emplace(buffer.getOf()->str(), *whole);
    if (!first)
      combineInto(ReduceKind::sum, at->second, *whole);
  }
  return success();
}

LogicalResult ProgramRun::finish(ProgramCursor &walk) {
  for (BufferOp buffer : walk.storage.stored()) {
    if (buffer.getKind() != BufferKind::state)
      continue;
    auto dist = cast<DistType>(*buffer.getDist());
    RankedTensorType local = dist.getSharding().getLocalType(dist.getTensor(), walk.mesh);
    SmallVector<Tensor> parts;
    for (int64_t slot = 0; slot < partsOf(buffer); ++slot) {
      FailureOr<Tensor> part =
          collect(buffer, walk.storage.peek(buffer, slot, local), dist.getTensor(), dist.getSharding(), walk.mesh);
      if (failed(part))
        return failure();
      parts.push_back(*part);
    }
    outcome.written[buffer.getOf()->str()] = parts.size() == 1 ? parts.front() : stack(parts);
  }
  return success();
}

FailureOr<Outcome> ProgramRun::run() {
  if (failed(begin()) || failed(play()))
    return failure();
  // Inputs of other programs first.
  for (ProgramCursor &walk : walks)
    if (failed(collectGradients(walk)))
      return failure();
  for (ProgramCursor &walk : walks)
    if (failed(finish(walk)))
      return failure();
  for (auto &[name, parts] : fetched)
    outcome.outputs[name] =
        parts.size() == 1 ? parts.begin()->second : stack(llvm::to_vector(llvm::make_second_range(parts)));
  return outcome;
}

FailureOr<Outcome> runPrograms(ModuleOp module, StringRef entry, const Named &variables, const Named &inputs) {
  return ProgramRun(module, entry, variables, inputs).run();
}

FailureOr<Outcome> runEntry(ModuleOp module, StringRef name, const Named &variables, const Named &inputs) {
  if (auto step = module.lookupSymbol<StepOp>(name))
    return runStep(step, variables, inputs, getCalls(step));
  return runPrograms(module, name, variables, inputs);
}

SmallVector<StringRef> entryNames(ModuleOp module) {
  SmallVector<StringRef> names;
  for (StepOp step : module.getOps<StepOp>())
    names.push_back(step.getSymName());
  if (names.empty() && !module.getOps<ProgramOp>().empty())
    for (EntryOp entry : (*module.getOps<ProgramOp>().begin()).getOps<EntryOp>())
      names.push_back(entry.getSymName());
  return names;
}

} // namespace par::interp
