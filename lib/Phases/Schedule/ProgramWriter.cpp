// Writes the program of each device: one block for each variant of a task, with loads and stores of its buffers, and an
// entry that runs them in the step's order.
#include "ProgramWriter.h"

#include "par/Dialect/Calls.h"
#include "par/Dialect/Space.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace par {

ProgramWriter::ProgramWriter(const Activities &activities, const StepOrder &order, const Buffers &buffers, int64_t &tag)
    : activities(activities), order(order), buffers(buffers) {
  for (const Activity &activity : activities.list) {
    tags.push_back(tag);
    tag += countTags(activity);
  }
}

//===-- Inside a block -----------------------------------------------------------------------===//

/// The value inside the block, loaded where it is first needed.
Value ProgramWriter::load(OpBuilder &builder, Location loc, Value value) {
  value = activities.canonical(value);
  Value &local = locals[value];
  if (!local && Activities::isNumber(value)) {
    local = LoadOp::create(builder, loc, value.getType(), numberName());
  } else if (!local) {
    const BufferPlan *plan = &buffers.of(value);
    if (Activities::behindOf(value) > 0 && older.count(plan->name))
      plan = buffers.olderOf(*plan, activities.deviceOf(value));
    local = LoadOp::create(builder, loc, plan->type, plan->name);
  }
  return local;
}

/// A sum goes to the variable that it makes where it is whole.
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
    types.push_back(activities.localType(result));
  auto exec = ExecOp::create(builder, run.getLoc(), types, run.getFragment(), operands);
  for (auto [result, local] : llvm::zip(run.getResults(), exec.getResults()))
    locals[result] = local;
}

/// The location of the op that makes a run's result: the run's own location is the begin of its fragment.
static Location locationOf(Value value) {
  auto run = value.getDefiningOp<RunOp>();
  if (!run)
    return value.getLoc();
  Value made = Activities::fragmentOf(run).getBody().front().getTerminator()->getOperand(
      cast<OpResult>(value).getResultNumber());
  return made.getDefiningOp() ? made.getLoc() : value.getLoc();
}

/// The first microbatch stores its summand; the others add theirs to the buffer.
void ProgramWriter::addSum(OpBuilder &builder, OpResult sum, const Variant &variant) {
  auto loop = cast<LoopOp>(sum.getOwner());
  Operation *yield = loop.getBody().front().getTerminator();
  Value made = yield->getOperand(sum.getResultNumber());
  Location loc = locationOf(made);
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
  unsigned device = activities.deviceOf(result);
  keepOlder(builder, result.getLoc(), buffers.of(result), device);
  for (const BufferPlan &state : buffers.alsoStoredTo(result))
    keepOlder(builder, result.getLoc(), state, device);
}

void ProgramWriter::writeCompute(OpBuilder &builder, const Activity &activity, const Variant &variant) {
  for (Value result : activities.resultsOf(activity))
    keepOlderOf(builder, result);
  for (Operation *op : activity.ops)
    execute(builder, cast<RunOp>(op));
  for (OpResult sum : activity.sums)
    addSum(builder, sum, variant);
  if (variant.last)
    for (Operation *op : activity.tail)
      execute(builder, cast<RunOp>(op));
  for (auto &[value, name] : activity.fetches)
    FetchOp::create(builder, value.getLoc(), load(builder, value.getLoc(), value), name, activity.loop != nullptr,
                    TypeAttr::get(value.getType()));
  for (Value result : activities.resultsOf(activity)) {
    bool behind = llvm::is_contained(activity.tail, result.getDefiningOp());
    bool reduced = variant.last && isa<LoopOp>(result.getDefiningOp()) &&
                   activities.isReducedOnly(activity, cast<OpResult>(result));
    if (!reduced && (!behind || variant.last))
      store(builder, result.getLoc(), result, locals.lookup(result),
            variant.last || !isa<LoopOp>(result.getDefiningOp()));
  }
}

void ProgramWriter::writeTransfer(OpBuilder &builder, const Activity &activity, unsigned device) {
  bool sends = activities.deviceOf(activity.stages[0]) == device;
  ArrayRef<int64_t> peers = activities.ranksOf(activities.deviceOf(activity.stages[sends ? 1 : 0]));
  int64_t tag = tags[&activity - activities.list.data()];
  Location loc = activity.ops.front()->getLoc();
  SmallVector<Value> values;
  SmallVector<Type> types;
  for (Operation *op : activity.ops) {
    if (sends)
      values.push_back(load(builder, op->getLoc(), op->getOperand(0)));
    types.push_back(activities.localType(op->getResult(0)));
  }
  if (sends) {
    SendOp::create(builder, loc, values, peers, tag);
    return;
  }
  for (Value result : activities.resultsOf(activity))
    keepOlderOf(builder, result);
  auto received = RecvOp::create(builder, loc, types, peers, tag);
  for (auto [op, local] : llvm::zip(activity.ops, received.getResults()))
    if (llvm::is_contained(activities.resultsOf(activity), op->getResult(0)))
      store(builder, op->getLoc(), op->getResult(0), local);
}

//===-- Blocks and entries -------------------------------------------------------------------===//

ProgramWriter::Variant ProgramWriter::variantOf(size_t position) const {
  const Instance &instance = order.instances[position];
  const Activity &activity = activities.list[instance.activity];
  int64_t microbatch = instance.microbatch % activity.count();
  bool ends = !activity.tail.empty() ||
              llvm::any_of(activity.sums, [&](OpResult sum) { return !buffers.alsoStoredTo(sum).empty(); });
  return {!activity.sums.empty() && microbatch == 0, ends && microbatch == activity.count() - 1,
          buffers.getVersions().olderAt(position)};
}

std::string ProgramWriter::nameOf(const Activity &activity, unsigned device, const Variant &variant) {
  std::string name = activities.prefix + activity.name;
  if (activity.kind == Activity::Kind::Transfer)
    return name + (activities.deviceOf(activity.stages[0]) == device ? ".send" : ".recv");
  if (activity.count() > 1 && (variant.first || variant.last))
    name += variant.last ? ".last" : ".first";
  if (variant.older.empty())
    return name;
  // Parameters may be updated at several places of the order, a tied one's copy where it comes from another stage.
  unsigned sets = llvm::count_if(olderSets, [&](auto &known) { return known.first.first == &activity; });
  unsigned number = olderSets.try_emplace({&activity, variant.older}, sets + 1).first->second;
  return name + ".older" + (number > 1 ? std::to_string(number) : "");
}

void ProgramWriter::writeBlock(ProgramOp program, StringRef name, const Activity &activity, unsigned device,
                               const Variant &variant) {
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  Location loc = activity.ops.empty() ? program.getLoc() : activity.ops.front()->getLoc();
  auto block = BlockOp::create(builder, loc, name);
  block.getBody().emplaceBlock();
  auto inner = OpBuilder::atBlockEnd(&block.getBody().front());
  locals.clear();
  older = variant.older;
  if (activity.kind == Activity::Kind::Transfer)
    isApart(activity) ? writeExchange(inner, activity, device) : writeTransfer(inner, activity, device);
  else if (activity.kind == Activity::Kind::Reduce && isApart(activity))
    writeReduceApart(inner, activity, device);
  else if (activity.kind == Activity::Kind::Reduce)
    writeReduce(inner, activity, device);
  else
    writeCompute(inner, activity, variant);
}

/// How many calls a device works on at once.
int64_t ProgramWriter::countCallsAtOnce(unsigned device) const {
  std::vector<size_t> begins(getCalls(activities.step), order.instances.size()), ends = findCallEnds(device);
  for (auto [position, instance] : llvm::enumerate(order.instances))
    if (const Activity &activity = activities.list[instance.activity]; activities.isOn(activity, device))
      begins[instance.microbatch / activity.count()] =
          std::min(begins[instance.microbatch / activity.count()], position);
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
  int64_t count = activities.countNumbered(device);
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  Location loc = program.getLoc();
  auto type = RankedTensorType::get({}, builder.getI64Type());
  std::string slots = numberName(), counter = slots + ".counted";
  auto buffer = [&](StringRef name, int64_t depth) {
    BufferOp::create(builder, loc, name, BufferKind::temp, StringAttr(), false,
                     depth > 1 ? SlotIndex::mb : SlotIndex::none, depth, type, TypeAttr(), DenseI64ArrayAttr());
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

/// Numbers a call's microbatches before all else that a device does for it.
void ProgramWriter::numberCall(unsigned device, int64_t call, Runs &runs) {
  int64_t count = activities.countNumbered(device);
  for (int64_t microbatch = 0; microbatch < count; ++microbatch)
    runs.add(FlatSymbolRefAttr::get(activities.step->getContext(), numberBlock(microbatch == 0)),
             call * count + microbatch, call);
}

/// Writes that had to wait, of the step or of each microbatch: all loads before all stores, for variables that change
/// places. Null if there are none.
Attribute ProgramWriter::writeLate(ProgramOp program, unsigned device, bool perMicrobatch) {
  auto late = buffers.lateWrites(device);
  llvm::erase_if(late, [&](auto &write) { return write.second.perMicrobatch != perMicrobatch; });
  if (late.empty())
    return {};
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  std::string name = activities.prefix + (perMicrobatch ? "carry" : "write");
  auto block = BlockOp::create(builder, program.getLoc(), name);
  block.getBody().emplaceBlock();
  auto inner = OpBuilder::atBlockEnd(&block.getBody().front());
  locals.clear();
  older.clear();
  for (auto &[value, state] : late)
    keepOlder(inner, value.getLoc(), state, device);
  for (auto &[value, state] : late)
    load(inner, value.getLoc(), value);
  for (auto &[value, state] : late)
    StoreOp::create(inner, value.getLoc(), locals.lookup(value), state.name);
  return FlatSymbolRefAttr::get(builder.getContext(), name);
}

int64_t ProgramWriter::microbatchesOfCall() const {
  int64_t count = 1;
  for (const Activity &activity : activities.list)
    count = std::max(count, activity.count());
  return count;
}

/// Behind which instance a device has computed all of each call.
std::vector<size_t> ProgramWriter::findCallEnds(unsigned device) const {
  std::vector<size_t> ends(getCalls(activities.step), order.instances.size());
  for (auto [position, instance] : llvm::enumerate(order.instances))
    if (const Activity &activity = activities.list[instance.activity];
        !activity.isCommunication() && activities.isOn(activity, device))
      ends[instance.microbatch / activity.count()] = position;
  return ends;
}

void ProgramWriter::writeBuffers(ProgramOp program, unsigned device) {
  SymbolTable symbols(program);
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  for (const BufferPlan *plan : buffers.ofDevice(device)) {
    if (symbols.lookup(plan->name)) // state that another step uses too
      continue;
    // A slot index names the reader's microbatch, so V5 finds a value of another microbatch even in the same slot.
    bool many = plan->depth > 1 || plan->several;
    auto buffer = BufferOp::create(builder, program.getLoc(), plan->name, plan->kind,
                                   plan->of.empty() ? StringAttr() : builder.getStringAttr(plan->of),
                                   plan->kind == BufferKind::input && plan->perMicrobatch,
                                   plan->perVersion ? SlotIndex::ver
                                   : many           ? SlotIndex::mb
                                                    : SlotIndex::none,
                                   plan->depth, plan->type, plan->dist ? TypeAttr::get(plan->dist) : TypeAttr(),
                                   DenseI64ArrayAttr());
    if (plan->saved)
      buffer.setSaved(true);
    symbols.insert(buffer);
  }
}

void ProgramWriter::write(ProgramOp program, unsigned device) {
  writeBuffers(program, device);
  writeNumbers(program, device);
  Runs runs;
  std::set<int64_t> begun;
  llvm::StringSet<> written;
  Attribute late;
  int64_t calls = getCalls(activities.step);
  std::vector<size_t> ends = findCallEnds(device);
  for (auto [position, instance] : llvm::enumerate(order.instances)) {
    const Activity &activity = activities.list[instance.activity];
    if (!activities.isOn(activity, device))
      continue;
    int64_t call = instance.microbatch / activity.count(), number = instance.microbatch;
    if (begun.insert(call).second)
      numberCall(device, call, runs);
    Variant variant = variantOf(position);
    std::string name = nameOf(activity, device, variant);
    if (written.insert(name).second)
      writeBlock(program, name, activity, device, variant);
    // A task of a batch, outside its loops, carries the index of the batch's first microbatch.
    if (!activity.loop && calls > 1)
      number *= microbatchesOfCall();
    runs.add(FlatSymbolRefAttr::get(program.getContext(), name), number, buffers.getVersions().at(position));
    if (calls > 1 && ends[call] == position)
      if (Attribute block = late ? late : late = writeLate(program, device, /*perMicrobatch=*/false))
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
  auto entry = EntryOp::create(builder, StepOp(activities.step).getLoc(), StepOp(activities.step).getSymName(),
                               builder.getArrayAttr(runs.blocks), runs.microbatches);
  if (calls > 1)
    entry->setAttr(versionsAttr, builder.getDenseI64ArrayAttr(runs.versions));
}

} // namespace par
