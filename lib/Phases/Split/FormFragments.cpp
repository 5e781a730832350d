// Outlines the ops of each stage into fragments and runs, with transfers between stages. A value that is used on
// several stages is passed on from each user's stage to the next; a variable is owned by the first stage that uses it.
#include "GroupOps.h"
#include "par/Dialect/Modes.h"
#include "par/Phases/Split/Passes.h"

#include "llvm/ADT/StringSet.h"

#include <map>
#include <set>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_FORMFRAGMENTSPASS
#include "par/Phases/Split/Passes.h.inc"

namespace {

/// Rebuilds one step out of runs, transfers and the other step ops.
class FragmentFormer {
public:
  FragmentFormer(StepOp step, SmallVector<StageOp> stages, const llvm::StringSet<> &written)
      : step(step), module(step->getParentOfType<ModuleOp>()), stages(std::move(stages)), written(written),
        builder(step.getContext()) {}

  void run();

private:
  /// Parts of a loop of fragments while it is built.
  struct LoopParts {
    SmallVector<Value> inner;
    SmallVector<Type> types;
    SmallVector<Attribute> kinds, labels;
    SmallVector<std::pair<Value, int64_t>> results; ///< old value, stage
  };

  DistType distType(Type tensor, int64_t stage) {
    return DistType::get(builder.getContext(), cast<RankedTensorType>(tensor),
                         FlatSymbolRefAttr::get(stages[stage].getSymNameAttr()), ShardingAttr());
  }
  Value at(Value old, int64_t stage);
  Value readAt(ReadOp read, int64_t stage);
  void replaceArguments(Block *fresh);
  void emit(const OpGroup &group);
  void dropGradients(Block &old);
  void emitOps(Block &old);
  void emitBeside(SmallVector<Operation *> &pending);
  void emitLoop(LoopOp loop);
  void emitReduce(StageAllReduceOp reduce);
  int64_t ownerOf(WriteOp write);
  void emitWrite(WriteOp write);
  std::set<int64_t> readersOf(WriteOp carried, int64_t stage);
  void emitCarried(WriteOp write, Value value, int64_t stage);
  void handCarried(LoopOp loop, unsigned number, LoopParts &parts);
  void handOn(Value old);
  std::set<int64_t> usersOf(Value old);
  std::string nameOf(const OpGroup &group);

  StepOp step;
  ModuleOp module;
  SmallVector<StageOp> stages;
  const llvm::StringSet<> &written; ///< by some step
  OpBuilder builder;
  std::map<std::pair<void *, int64_t>, Value> values; ///< (old value, stage) -> new value
  llvm::StringMap<unsigned> names;
  Block *entry = nullptr;
};

} // namespace

/// The variable at a stage. Parameters, their averages that an evaluation reads, and buffers that a step writes, are
/// owned by the first stage that uses them; the others have copies.
Value FragmentFormer::readAt(ReadOp read, int64_t stage) {
  Value &value = values[{read.getResult().getAsOpaquePointer(), stage}];
  if (value)
    return value;
  auto variable = module.lookupSymbol<VariableOp>(read.getVariable());
  StringAttr name = variable.getSymNameAttr();
  bool owned = variable.getKind() == VariableKind::parameter || variable.getKind() == VariableKind::state ||
               (variable.getKind() == VariableKind::buffer && written.contains(name.getValue()));
  std::set<int64_t> users = usersOf(read);
  if (owned && !users.empty() && stage != *users.begin()) {
    name = builder.getStringAttr(name.getValue() + "." + stages[stage].getSymName());
    if (!module.lookupSymbol(name)) {
      auto atVariable = OpBuilder::atBlockEnd(module.getBody());
      atVariable.setInsertionPointAfter(variable);
      auto copy = cast<VariableOp>(atVariable.clone(*variable));
      copy.setSymNameAttr(name);
      copy.setKind(VariableKind::copy);
      copy.setOfAttr(FlatSymbolRefAttr::get(variable.getSymNameAttr()));
      copy.removeSourceAttr();
      copy.removeInitAttr();
    }
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(entry);
  // Reads are in the order of their first uses.
  for (Operation &op : *entry)
    if (isa<ReadOp>(op))
      builder.setInsertionPointAfter(&op);
  value = ReadOp::create(builder, read.getLoc(), distType(read.getType(), stage), name);
  return value;
}

Value FragmentFormer::at(Value old, int64_t stage) {
  if (auto read = old.getDefiningOp<ReadOp>())
    return readAt(read, stage);
  auto argument = dyn_cast<BlockArgument>(old);
  if (argument && argument.getArgNumber() == 0 && isa<LoopOp>(argument.getOwner()->getParentOp()))
    stage = -1; // the index of the microbatch is the same everywhere
  auto found = values.find({old.getAsOpaquePointer(), stage});
  return found == values.end() ? Value() : found->second;
}

/// Stages of the ops that use a value, through loops and returns. A value that a loop or the step returns as it came in
/// has no op that makes it: it is handed out on the first stage, as `home` says.
std::set<int64_t> FragmentFormer::usersOf(Value old) {
  std::set<int64_t> users;
  for (OpOperand &use : old.getUses()) {
    Operation *user = use.getOwner();
    if (auto loop = dyn_cast<LoopOp>(user)) {
      for (int64_t stage : usersOf(loop.getBody().getArgument(use.getOperandNumber() + 1)))
        users.insert(stage);
    } else if (auto reduce = dyn_cast<StageAllReduceOp>(user)) {
      users.insert(home(reduce.getOperand(use.getOperandNumber())));
    } else if (isa<YieldOp, ReturnOp>(user)) {
      if (isa<BlockArgument>(old))
        users.insert(0);
    } else if (!isa<WriteOp>(user)) {
      users.insert(getStage(user).value_or(0));
    }
  }
  return users;
}

/// One argument for each stage that uses an input; values of the old arguments are mapped.
void FragmentFormer::replaceArguments(Block *fresh) {
  SmallVector<Attribute> names;
  SmallVector<int64_t> dims;
  Block &old = *fresh->getPrevNode();
  for (BlockArgument argument : old.getArguments())
    for (int64_t stage : usersOf(argument)) {
      values[{argument.getAsOpaquePointer(), stage}] =
          fresh->addArgument(distType(argument.getType(), stage), argument.getLoc());
      if (step.getInputs())
        names.push_back((*step.getInputs())[argument.getArgNumber()]);
      if (step.getBatchDims())
        dims.push_back((*step.getBatchDims())[argument.getArgNumber()]);
    }
  if (step.getInputs())
    step.setInputsAttr(builder.getArrayAttr(names));
  if (step.getBatchDims())
    step.setBatchDims(dims);
}

std::string FragmentFormer::nameOf(const OpGroup &group) {
  std::string name =
      (step.getSymName() + "." + stages[group.stage].getSymName() + "." + stringifyFragmentKind(group.kind)).str();
  if (unsigned again = names[name]++)
    name += std::to_string(again);
  return name;
}

/// Passes a value on from user to next user: 2 -> 3 -> 5 upwards, 5 -> 3 -> 2 downwards.
void FragmentFormer::handOn(Value old) {
  int64_t from = home(old);
  std::set<int64_t> users = usersOf(old);
  auto link = [&](int64_t source, int64_t target) {
    Value value = values[{old.getAsOpaquePointer(), source}];
    values[{old.getAsOpaquePointer(), target}] =
        TransferOp::create(builder, old.getLoc(), distType(old.getType(), target), value);
  };
  int64_t previous = from;
  for (auto user = users.upper_bound(from); user != users.end(); ++user) {
    link(previous, *user);
    previous = *user;
  }
  previous = from;
  for (auto user = std::make_reverse_iterator(users.lower_bound(from)); user != users.rend(); ++user) {
    link(previous, *user);
    previous = *user;
  }
}

/// Outlines a group and runs it; markers dissolve, names stay outside.
void FragmentFormer::emit(const OpGroup &group) {
  std::set<Operation *> inside(group.ops.begin(), group.ops.end());
  llvm::SetVector<Value> arguments, results;
  for (Operation *op : group.ops)
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp() || !inside.count(operand.getDefiningOp()))
        arguments.insert(operand);
  for (Operation *op : group.ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.count(user); }))
        results.insert(result);
  SmallVector<Type> argumentTypes, resultTypes;
  SmallVector<Value> operands;
  SmallVector<Type> distTypes;
  for (Value argument : arguments) {
    argumentTypes.push_back(argument.getType());
    operands.push_back(at(argument, group.stage));
  }
  for (Value result : results) {
    resultTypes.push_back(result.getType());
    distTypes.push_back(distType(result.getType(), group.stage));
  }
  auto atModule = OpBuilder(step);
  Location loc = group.ops.front()->getLoc();
  auto fragment = FragmentOp::create(atModule, loc, nameOf(group), builder.getFunctionType(argumentTypes, resultTypes),
                                     stages[group.stage].getSymName(), group.kind);
  auto body = OpBuilder::atBlockEnd(&fragment.getBlock());
  IRMapping mapping;
  for (auto [argument, inner] : llvm::zip(arguments, fragment.getArguments()))
    mapping.map(argument, inner);
  for (Operation *op : group.ops) {
    if (auto cotangent = dyn_cast<CotangentOp>(op)) {
      mapping.map(cotangent.getResult(), mapping.lookup(cotangent.getSeed()));
      continue;
    }
    setStage(body.clone(*op, mapping), -1);
  }
  SmallVector<Value> inner;
  for (Value result : results)
    inner.push_back(mapping.lookup(result));
  ReturnOp::create(body, loc, inner);
  auto run = RunOp::create(builder, loc, distTypes, fragment.getSymName(), operands);
  for (auto [old, now] : llvm::zip(results, run.getResults()))
    values[{old.getAsOpaquePointer(), group.stage}] = now;
  for (Value old : results)
    handOn(old);
}

void FragmentFormer::emitLoop(LoopOp loop) {
  Block *body = new Block;
  Block &old = loop.getBody().front();
  values[{old.getArgument(0).getAsOpaquePointer(), -1}] =
      body->addArgument(old.getArgument(0).getType(), loop.getLoc());
  SmallVector<Value> slices;
  for (auto [operand, argument] : llvm::zip(loop.getSlices(), old.getArguments().drop_front()))
    for (int64_t stage : usersOf(argument)) {
      slices.push_back(at(operand, stage));
      values[{argument.getAsOpaquePointer(), stage}] =
          body->addArgument(distType(argument.getType(), stage), argument.getLoc());
    }
  OpBuilder::InsertPoint outside = builder.saveInsertionPoint();
  builder.setInsertionPointToEnd(body);
  for (const OpGroup &group : groupLoop(loop, stages.size()))
    emit(group);
  auto yield = cast<YieldOp>(old.getTerminator());
  LoopParts parts;
  for (auto [value, result] : llvm::zip(yield.getOperands(), loop.getResults())) {
    int64_t stage = std::max<int64_t>(home(value), 0);
    parts.inner.push_back(at(value, stage));
    parts.types.push_back(distType(result.getType(), stage));
    parts.results.push_back({result, home(result)});
  }
  llvm::append_range(parts.kinds, yield.getKinds());
  if (loop.getLabels())
    llvm::append_range(parts.labels, *loop.getLabels());
  for (unsigned number = 0; number < loop.getNumResults(); ++number)
    handCarried(loop, number, parts);
  YieldOp::create(builder, yield.getLoc(), builder.getArrayAttr(parts.kinds), parts.inner);
  builder.restoreInsertionPoint(outside);
  auto fresh = LoopOp::create(builder, loop.getLoc(), parts.types, loop.getCount(), slices,
                              loop.getLabels() ? builder.getArrayAttr(parts.labels) : ArrayAttr());
  fresh.getBody().push_back(body);
  for (auto [at, result] : llvm::zip(parts.results, fresh.getResults()))
    values[{at.first.getAsOpaquePointer(), at.second}] = result;
  for (Value value : loop.getResults())
    handOn(value);
}

void FragmentFormer::emitReduce(StageAllReduceOp reduce) {
  SmallVector<Value> operands;
  for (Value operand : reduce.getOperands())
    operands.push_back(at(operand, home(operand)));
  auto fresh =
      StageAllReduceOp::create(builder, reduce.getLoc(), ValueRange(operands).getTypes(), reduce.getKind(), operands);
  for (auto [old, now] : llvm::zip(reduce.getResults(), fresh.getResults()))
    values[{old.getAsOpaquePointer(), home(old)}] = now;
  // A stage without a part in the reduction may use the sum, too.
  for (Value old : reduce.getResults())
    handOn(old);
}

/// The stages that read a carried variable; if none does, the stage that makes its value.
std::set<int64_t> FragmentFormer::readersOf(WriteOp carried, int64_t stage) {
  std::set<int64_t> readers;
  for (auto read : carried->getBlock()->getOps<ReadOp>())
    if (read.getVariable() == carried.getVariable())
      readers.merge(usersOf(read));
  if (readers.empty())
    readers.insert(stage);
  return readers;
}

/// A carried value used on another stage is transferred per microbatch and stacked there.
void FragmentFormer::handCarried(LoopOp loop, unsigned number, LoopParts &parts) {
  Value result = loop.getResult(number);
  auto yield = cast<YieldOp>(loop.getBody().front().getTerminator());
  if (cast<YieldKindAttr>(parts.kinds[number]).getValue() != YieldKind::stack)
    return;
  Value inner = yield.getOperand(number);
  int64_t stage = std::max<int64_t>(home(inner), 0);
  for (Operation *user : result.getUsers()) {
    auto write = dyn_cast<WriteOp>(user);
    if (!write || module.lookupSymbol<VariableOp>(write.getVariable()).getKind() != VariableKind::carried)
      continue;
    for (int64_t reader : readersOf(write, stage)) {
      if (reader == stage || llvm::is_contained(parts.results, std::pair(result, reader)))
        continue;
      Value there = at(inner, reader);
      if (!there)
        there = TransferOp::create(builder, write.getLoc(), distType(inner.getType(), reader), at(inner, stage));
      parts.inner.push_back(there);
      parts.types.push_back(distType(result.getType(), reader));
      parts.kinds.push_back(parts.kinds[number]);
      parts.labels.push_back(builder.getStringAttr(""));
      parts.results.push_back({result, reader});
    }
  }
}

/// Writes a carried value on each stage that reads it, and on no other.
void FragmentFormer::emitCarried(WriteOp write, Value value, int64_t stage) {
  for (int64_t reader : readersOf(write, stage)) {
    Value there = at(write.getOperand(), reader);
    if (!there)
      there = TransferOp::create(builder, write.getLoc(), distType(write.getOperand().getType(), reader), value);
    WriteOp::create(builder, write.getLoc(), there, write.getVariable());
  }
}

/// The first stage that uses a variable that the step writes; -1 if none does.
int64_t FragmentFormer::ownerOf(WriteOp write) {
  for (auto read : write->getBlock()->getOps<ReadOp>())
    if (std::set<int64_t> users = usersOf(read); read.getVariable() == write.getVariable() && !users.empty())
      return *users.begin();
  return -1;
}

/// Writes the owner; copies on other stages get the new value by a transfer.
void FragmentFormer::emitWrite(WriteOp write) {
  Value old = write.getOperand();
  int64_t stage = std::max<int64_t>(home(old), 0);
  Value value = at(old, stage);
  if (!value)
    return; // an input or a variable written back as it is
  VariableKind kind = module.lookupSymbol<VariableOp>(write.getVariable()).getKind();
  if (kind == VariableKind::carried)
    return emitCarried(write, value, stage);
  if (int64_t owner = kind == VariableKind::buffer ? ownerOf(write) : -1; owner >= 0 && owner != stage) {
    Value there = at(old, owner);
    value =
        there ? there : TransferOp::create(builder, write.getLoc(), distType(old.getType(), owner), value).getResult();
  }
  WriteOp::create(builder, write.getLoc(), value, write.getVariable());
  for (auto copy : module.getOps<VariableOp>()) {
    if (copy.getKind() != VariableKind::copy || copy.getOf() != write.getVariable())
      continue;
    for (size_t target = 0; target < stages.size(); ++target) {
      if (copy.getSymName() != (write.getVariable() + "." + stages[target].getSymName()).str())
        continue;
      Value there = TransferOp::create(builder, write.getLoc(), distType(old.getType(), target), value);
      WriteOp::create(builder, write.getLoc(), there, copy.getSymName());
    }
  }
}

/// Ops outside the loops, as fragments with the reductions over stages between them.
void FragmentFormer::emitBeside(SmallVector<Operation *> &pending) {
  if (pending.empty())
    return;
  for (const OpGroup &group : groupBehind(pending, stages.size())) {
    if (isa<StageAllReduceOp>(group.ops.front()))
      for (Operation *op : group.ops)
        emitReduce(cast<StageAllReduceOp>(op));
    else
      emit(group);
  }
  pending.clear();
}

/// Emits loops in place, groups the ops outside them, and puts writes at the end.
void FragmentFormer::emitOps(Block &old) {
  SmallVector<Operation *> pending;
  SmallVector<WriteOp> writes;
  for (Operation &op : old.without_terminator()) {
    if (auto loop = dyn_cast<LoopOp>(op)) {
      emitBeside(pending);
      emitLoop(loop);
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      writes.push_back(write);
    } else if (!isa<ReadOp>(op)) {
      pending.push_back(&op);
    }
  }
  emitBeside(pending);
  for (WriteOp write : writes)
    emitWrite(write);
}

/// Whether loops accumulate a value, or its summands.
static bool isAccumulated(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto add = dyn_cast_or_null<AddOp>(op))
    return llvm::all_of(add->getOperands(), isAccumulated);
  return isa_and_nonnull<LoopOp>(op);
}

/// Replaces each gradient op by its operand, and lists the variables whose gradients no loop accumulates.
void FragmentFormer::dropGradients(Block &old) {
  SmallVector<StringRef> others;
  for (auto gradient : llvm::make_early_inc_range(old.getOps<GradientOp>())) {
    if (!gradient.getRows() && !isAccumulated(gradient.getOperand()))
      others.push_back(gradient.getVariable());
    gradient.replaceAllUsesWith(gradient.getOperand());
    gradient.erase();
  }
  if (!others.empty())
    step->setAttr(unaccumulatedAttr, builder.getStrArrayAttr(others));
}

void FragmentFormer::run() {
  Block &old = step.getBlock();
  dropGradients(old);
  entry = new Block;
  step.getBody().push_back(entry);
  replaceArguments(entry);
  builder.setInsertionPointToEnd(entry);
  emitOps(old);
  SmallVector<Value> results;
  for (Value result : old.getTerminator()->getOperands()) {
    int64_t stage = std::max<int64_t>(home(result), 0);
    // A variable is handed out on a stage that has it.
    if (std::set<int64_t> users = usersOf(result); result.getDefiningOp<ReadOp>() && !users.empty())
      stage = *users.begin();
    results.push_back(at(result, stage));
  }
  ReturnOp::create(builder, old.getTerminator()->getLoc(), results);
  old.dropAllReferences();
  old.erase();
  step.setFunctionType(builder.getFunctionType(entry->getArgumentTypes(), ValueRange(results).getTypes()));
}

namespace {
struct FormFragmentsPass : impl::FormFragmentsPassBase<FormFragmentsPass> {
  void runOnOperation() override {
    SmallVector<StageOp> stages(getOperation().getOps<StageOp>());
    if (stages.empty()) {
      getOperation().emitError() << "has no par.stage; Annotate makes at least one";
      return signalPassFailure();
    }
    llvm::StringSet<> written;
    for (StepOp step : getOperation().getOps<StepOp>())
      for (WriteOp write : step.getBlock().getOps<WriteOp>())
        written.insert(write.getVariable());
    for (StepOp step : getOperation().getOps<StepOp>())
      FragmentFormer(step, stages, written).run();
  }
};
} // namespace

} // namespace par
