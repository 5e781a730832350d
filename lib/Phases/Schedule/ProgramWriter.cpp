// Writes the program of each device: one block for each variant of a task, with loads and stores of its buffers, and an
// entry that runs them in the step's order.
#include "ProgramWriter.h"

#include "par/Dialect/Calls.h"
#include "par/Dialect/Space.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace par {

ProgramWriter::ProgramWriter(const StepTasks &tasks, const StepOrder &order, const Buffers &buffers, int64_t &tag)
    : tasks(tasks), order(order), buffers(buffers) {
  for (const Task &task : tasks.list) {
    tags.push_back(tag);
    tag += countTags(task);
  }
}

//===-- Inside a block -----------------------------------------------------------------------===//

/// The value inside the block, loaded at its first use.
Value ProgramWriter::load(OpBuilder &builder, Location loc, Value value) {
  value = tasks.canonical(value);
  Value &local = locals[value];
  if (!local && StepTasks::isMicrobatchIndex(value)) {
    local = LoadOp::create(builder, loc, value.getType(), numberName());
  } else if (!local) {
    const BufferPlan *plan = &buffers.of(value);
    if (StepTasks::stalenessOf(value) > 0 && older.count(plan->name))
      plan = buffers.olderOf(*plan, tasks.deviceOf(value));
    local = LoadOp::create(builder, loc, plan->type, plan->name);
  }
  return local;
}

/// A whole sum is stored in the variable that it updates.
void ProgramWriter::store(OpBuilder &builder, Location loc, Value value, Value local, bool whole) {
  StoreOp::create(builder, loc, local, buffers.of(value).name);
  if (whole)
    for (const BufferPlan &state : buffers.alsoStoredTo(value))
      StoreOp::create(builder, loc, local, state.name);
}

void ProgramWriter::execute(OpBuilder &builder, RunOp run) {
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (Value operand : run.getOperands())
    operands.push_back(load(builder, run.getLoc(), operand));
  for (Value result : run.getResults())
    types.push_back(tasks.localType(result));
  auto exec = ExecOp::create(builder, run.getLoc(), types, run.getFragment(), operands);
  for (auto [result, local] : llvm::zip(run.getResults(), exec.getResults()))
    locals[result] = local;
}

/// The location of the op that makes a run's result: the run's own location is the begin of its fragment.
static Location locationOf(Value value, const StepTasks &tasks) {
  auto run = value.getDefiningOp<RunOp>();
  if (!run)
    return value.getLoc();
  Value made =
      tasks.fragmentOf(run).getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber());
  return made.getDefiningOp() ? made.getLoc() : value.getLoc();
}

/// The first microbatch stores its summand; the others add theirs to the buffer.
void ProgramWriter::addSum(OpBuilder &builder, OpResult sum, const Variant &variant) {
  auto loop = cast<LoopOp>(sum.getOwner());
  Operation *yield = loop.getBody().front().getTerminator();
  Value made = yield->getOperand(sum.getResultNumber());
  Location loc = locationOf(made, tasks);
  Value summand = load(builder, loc, made);
  if (!variant.first)
    summand = AddOp::create(builder, loc, load(builder, loc, sum), summand);
  locals[sum] = summand;
}

/// Copies the version that an update replaces, for microbatches that still compute with it.
void ProgramWriter::keepOlder(OpBuilder &builder, Location loc, const BufferPlan &state, unsigned device) {
  if (const BufferPlan *plan = buffers.olderOf(state, device))
    StoreOp::create(builder, loc, LoadOp::create(builder, loc, state.type, state.name), plan->name);
}

void ProgramWriter::keepOlderOf(OpBuilder &builder, Value result) {
  unsigned device = tasks.deviceOf(result);
  keepOlder(builder, result.getLoc(), buffers.of(result), device);
  for (const BufferPlan &state : buffers.alsoStoredTo(result))
    keepOlder(builder, result.getLoc(), state, device);
}

void ProgramWriter::writeCompute(OpBuilder &builder, const Task &task, const Variant &variant) {
  for (Value result : tasks.resultsOf(task))
    keepOlderOf(builder, result);
  for (Operation *op : task.ops)
    execute(builder, cast<RunOp>(op));
  for (OpResult sum : task.sums)
    addSum(builder, sum, variant);
  if (variant.last)
    for (Operation *op : task.tail)
      execute(builder, cast<RunOp>(op));
  for (auto &[value, name] : task.fetches)
    FetchOp::create(builder, value.getLoc(), load(builder, value.getLoc(), value), name, task.loop != nullptr,
                    TypeAttr::get(value.getType()));
  for (Value result : tasks.resultsOf(task)) {
    bool inTail = llvm::is_contained(task.tail, result.getDefiningOp());
    bool reduced =
        variant.last && isa<LoopOp>(result.getDefiningOp()) && tasks.isReducedOnly(task, cast<OpResult>(result));
    if (!reduced && (!inTail || variant.last))
      store(builder, result.getLoc(), result, locals.lookup(result),
            variant.last || !isa<LoopOp>(result.getDefiningOp()));
  }
}

void ProgramWriter::writeTransfer(OpBuilder &builder, const Task &task, unsigned device) {
  bool sends = tasks.deviceOf(task.stages[0]) == device;
  ArrayRef<int64_t> peers = tasks.ranksOf(tasks.deviceOf(task.stages[sends ? 1 : 0]));
  int64_t tag = tags[&task - tasks.list.data()];
  Location loc = task.ops.front()->getLoc();
  SmallVector<Value> values;
  SmallVector<Type> types;
  for (Operation *op : task.ops) {
    if (sends)
      values.push_back(load(builder, op->getLoc(), op->getOperand(0)));
    types.push_back(tasks.localType(op->getResult(0)));
  }
  if (sends) {
    SendOp::create(builder, loc, values, peers, tag);
    return;
  }
  for (Value result : tasks.resultsOf(task))
    keepOlderOf(builder, result);
  auto received = RecvOp::create(builder, loc, types, peers, tag);
  for (auto [op, local] : llvm::zip(task.ops, received.getResults()))
    if (llvm::is_contained(tasks.resultsOf(task), op->getResult(0)))
      store(builder, op->getLoc(), op->getResult(0), local);
}

//===-- Blocks and entries -------------------------------------------------------------------===//

ProgramWriter::Variant ProgramWriter::variantOf(size_t position) const {
  const TaskInstance &instance = order.instances[position];
  const Task &task = tasks.list[instance.task];
  int64_t microbatch = instance.microbatch % task.count();
  bool ends =
      !task.tail.empty() || llvm::any_of(task.sums, [&](OpResult sum) { return !buffers.alsoStoredTo(sum).empty(); });
  return {!task.sums.empty() && microbatch == 0, ends && microbatch == task.count() - 1,
          buffers.getVersions().olderAt(position)};
}

std::string ProgramWriter::nameOf(const Task &task, unsigned device, const Variant &variant) {
  std::string name = tasks.prefix + task.name;
  if (task.kind == Task::Kind::Transfer)
    return name + (tasks.deviceOf(task.stages[0]) == device ? ".send" : ".recv");
  if (task.count() > 1 && (variant.first || variant.last))
    name += variant.last ? ".last" : ".first";
  if (variant.older.empty())
    return name;
  // Parameters may be updated at several places of the order: a tied one's copy where another stage sends it.
  unsigned sets = llvm::count_if(olderSets, [&](auto &known) { return known.first.first == &task; });
  unsigned number = olderSets.try_emplace({&task, variant.older}, sets + 1).first->second;
  return name + ".older" + (number > 1 ? std::to_string(number) : "");
}

void ProgramWriter::writeBlock(ProgramOp program, StringRef name, const Task &task, unsigned device,
                               const Variant &variant) {
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  Location loc = task.ops.empty() ? program.getLoc() : task.ops.front()->getLoc();
  auto block = BlockOp::create(builder, loc, name);
  block.getBody().emplaceBlock();
  auto inner = OpBuilder::atBlockEnd(&block.getBody().front());
  locals.clear();
  older = variant.older;
  if (task.kind == Task::Kind::Transfer)
    isApart(task) ? writeExchange(inner, task, device) : writeTransfer(inner, task, device);
  else if (task.kind == Task::Kind::Reduce && isApart(task))
    writeReduceApart(inner, task, device);
  else if (task.kind == Task::Kind::Reduce)
    writeReduce(inner, task, device);
  else
    writeCompute(inner, task, variant);
}

/// How many calls a device works on at once.
int64_t ProgramWriter::countCallsAtOnce(unsigned device) const {
  std::vector<size_t> begins(getCalls(tasks.step), order.instances.size()), ends = findCallEnds(device);
  for (auto [position, instance] : llvm::enumerate(order.instances))
    if (const Task &task = tasks.list[instance.task]; tasks.isOn(task, device))
      begins[instance.microbatch / task.count()] = std::min(begins[instance.microbatch / task.count()], position);
  size_t count = 1;
  auto fits = [&] {
    return llvm::all_of(llvm::seq<size_t>(count, begins.size()),
                        [&](size_t call) { return ends[call - count] < begins[call]; });
  };
  while (!fits())
    ++count;
  return count;
}

/// Writes blocks that leave each microbatch's index in its slot, if an op computes with it. Each block adds one to the
/// index of the block before it; the first one starts again from 0.
void ProgramWriter::writeNumbers(ProgramOp program, unsigned device) {
  int64_t count = tasks.countNumbered(device);
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  Location loc = program.getLoc();
  auto type = RankedTensorType::get({}, builder.getI64Type());
  std::string slots = numberName(), counter = slots + ".counted";
  auto buffer = [&](StringRef name, int64_t depth) {
    BufferOp::create(builder, loc, name, BufferKind::temp, StringAttr(), false,
                     depth > 1 ? SlotIndex::microbatch : SlotIndex::none, depth, type, TypeAttr(), DenseI64ArrayAttr());
  };
  if (count == 0)
    return;
  buffer(slots, count * countCallsAtOnce(device));
  buffer(counter, 1);
  for (bool first : {true, false}) {
    if (!first && count == 1)
      break;
    auto block = BlockOp::create(builder, loc, numberBlock(first));
    block.getBody().emplaceBlock();
    auto inner = OpBuilder::atBlockEnd(&block.getBody().front());
    Value number = buildSplat(inner, loc, type, first ? 0 : 1);
    if (!first)
      number = AddOp::create(inner, loc, LoadOp::create(inner, loc, type, counter), number);
    StoreOp::create(inner, loc, number, slots);
    StoreOp::create(inner, loc, number, counter);
  }
}

/// Writes the indices of a call's microbatches before all other blocks of the call on a device.
void ProgramWriter::numberCall(unsigned device, int64_t call, Runs &runs) {
  int64_t count = tasks.countNumbered(device);
  for (int64_t microbatch = 0; microbatch < count; ++microbatch)
    runs.add(FlatSymbolRefAttr::get(tasks.step->getContext(), numberBlock(microbatch == 0)), call * count + microbatch,
             call);
}

/// Delayed writes of the step, or of each microbatch: all loads before all stores, as variables may swap values. Null
/// if there are none.
Attribute ProgramWriter::writeLate(ProgramOp program, unsigned device, bool perMicrobatch) {
  auto afterLoop = buffers.writesAfterLoop(device);
  llvm::erase_if(afterLoop, [&](auto &write) { return write.second.perMicrobatch != perMicrobatch; });
  if (afterLoop.empty())
    return {};
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  std::string name = tasks.prefix + (perMicrobatch ? "carry" : "write");
  auto block = BlockOp::create(builder, program.getLoc(), name);
  block.getBody().emplaceBlock();
  auto inner = OpBuilder::atBlockEnd(&block.getBody().front());
  locals.clear();
  older.clear();
  for (auto &[value, state] : afterLoop)
    keepOlder(inner, value.getLoc(), state, device);
  for (auto &[value, state] : afterLoop)
    load(inner, value.getLoc(), value);
  for (auto &[value, state] : afterLoop)
    StoreOp::create(inner, value.getLoc(), locals.lookup(value), state.name);
  return FlatSymbolRefAttr::get(builder.getContext(), name);
}

int64_t ProgramWriter::microbatchesOfCall() const {
  int64_t count = 1;
  for (const Task &task : tasks.list)
    count = std::max(count, task.count());
  return count;
}

/// The instance after which a device has computed all of each call.
std::vector<size_t> ProgramWriter::findCallEnds(unsigned device) const {
  std::vector<size_t> ends(getCalls(tasks.step), order.instances.size());
  for (auto [position, instance] : llvm::enumerate(order.instances))
    if (const Task &task = tasks.list[instance.task]; !task.isCommunication() && tasks.isOn(task, device))
      ends[instance.microbatch / task.count()] = position;
  return ends;
}

void ProgramWriter::writeBuffers(ProgramOp program, unsigned device) {
  SymbolTable symbols(program);
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  for (const BufferPlan *plan : buffers.ofDevice(device)) {
    if (symbols.lookup(plan->name)) // state that another step uses too
      continue;
    // A slot index names the reader's microbatch, so V5 finds a value of another microbatch even in the same slot.
    auto buffer = BufferOp::create(builder, program.getLoc(), plan->name, plan->kind,
                                   plan->of.empty() ? StringAttr() : builder.getStringAttr(plan->of),
                                   plan->kind == BufferKind::input && plan->perMicrobatch,
                                   plan->perVersion                   ? SlotIndex::version
                                   : plan->depth > 1 || plan->several ? SlotIndex::microbatch
                                                                      : SlotIndex::none,
                                   plan->depth, plan->type, plan->dist ? TypeAttr::get(plan->dist) : TypeAttr(),
                                   DenseI64ArrayAttr());
    buffer.setSaved(plan->saved);
    buffer.setHost(plan->moved);
    symbols.insert(buffer);
  }
}

void ProgramWriter::write(ProgramOp program, unsigned device) {
  writeBuffers(program, device);
  writeNumbers(program, device);
  Runs runs;
  std::set<int64_t> begun;
  llvm::StringSet<> written;
  Attribute afterLoop;
  int64_t calls = getCalls(tasks.step);
  std::vector<size_t> ends = findCallEnds(device);
  for (auto [position, instance] : llvm::enumerate(order.instances)) {
    const Task &task = tasks.list[instance.task];
    if (!tasks.isOn(task, device))
      continue;
    int64_t call = instance.microbatch / task.count(), number = instance.microbatch;
    if (begun.insert(call).second)
      numberCall(device, call, runs);
    Variant variant = variantOf(position);
    std::string name = nameOf(task, device, variant);
    if (written.insert(name).second)
      writeBlock(program, name, task, device, variant);
    // A task of a batch, outside its loops, carries the index of the batch's first microbatch.
    if (!task.loop && calls > 1)
      number *= microbatchesOfCall();
    runs.add(FlatSymbolRefAttr::get(program.getContext(), name), number, buffers.getVersions().at(position));
    if (calls > 1 && ends[call] == position)
      if (Attribute block = afterLoop ? afterLoop : afterLoop = writeLate(program, device, /*perMicrobatch=*/false))
        runs.add(block, call * microbatchesOfCall(), call);
  }
  if (calls == 1) {
    if (Attribute block = writeLate(program, device, /*perMicrobatch=*/true))
      for (int64_t microbatch = 0; microbatch < microbatchesOfCall(); ++microbatch)
        runs.add(block, microbatch, 0);
    if (Attribute block = writeLate(program, device, /*perMicrobatch=*/false))
      runs.add(block, 0, 0);
  }
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  auto entry = EntryOp::create(builder, StepOp(tasks.step).getLoc(), StepOp(tasks.step).getSymName(),
                               builder.getArrayAttr(runs.blocks), runs.microbatches);
  if (calls > 1)
    entry->setAttr(versionsAttr, builder.getDenseI64ArrayAttr(runs.versions));
}

} // namespace par
