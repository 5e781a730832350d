#include "ProgramWriter.h"

#include "par/Dialect/Space.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace par {

ProgramWriter::ProgramWriter(const Activities &activities, const StepOrder &order, const Buffers &buffers,
                             int64_t &tag)
    : activities(activities), order(order), buffers(buffers) {
  for (const Activity &activity : activities.list) {
    tags.push_back(tag);
    tag += countTags(activity);
  }
}

//===-- Inside a block
//------------------------------------------------------------------------------------------===//

/// The value inside the block, loaded where it is first needed.
Value ProgramWriter::load(OpBuilder &builder, Location loc, Value value) {
  value = activities.canonical(value);
  Value &local = locals[value];
  if (!local && Activities::isNumber(value)) {
    local = LoadOp::create(builder, loc, value.getType(), numberName());
  } else if (!local) {
    const BufferPlan &plan = buffers.of(value);
    local = LoadOp::create(builder, loc, plan.type, plan.name);
  }
  return local;
}

void ProgramWriter::store(OpBuilder &builder, Location loc, Value value, Value local) {
  StoreOp::create(builder, loc, local, buffers.of(value).name);
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

/// The first microbatch's summand is the sum so far, every other one is added to what stands in the buffer.
void ProgramWriter::addSum(OpBuilder &builder, OpResult sum, Variant variant) {
  auto loop = cast<LoopOp>(sum.getOwner());
  Operation *yield = loop.getBody().front().getTerminator();
  Value summand = load(builder, yield->getLoc(), yield->getOperand(sum.getResultNumber()));
  Location loc = summand.getLoc();
  if (!variant.first)
    summand = AddOp::create(builder, loc, load(builder, loc, sum), summand);
  locals[sum] = summand;
}

void ProgramWriter::writeCompute(OpBuilder &builder, const Activity &activity, Variant variant) {
  for (Operation *op : activity.ops)
    execute(builder, cast<RunOp>(op));
  for (OpResult sum : activity.sums)
    addSum(builder, sum, variant);
  if (variant.last)
    for (Operation *op : activity.tail)
      execute(builder, cast<RunOp>(op));
  for (auto &[value, name] : activity.fetches)
    FetchOp::create(builder, value.getLoc(), load(builder, value.getLoc(), value), name,
                    activity.loop != nullptr, TypeAttr::get(value.getType()));
  for (Value result : activities.resultsOf(activity)) {
    bool behind = llvm::is_contained(activity.tail, result.getDefiningOp());
    bool reduced = variant.last && isa<LoopOp>(result.getDefiningOp()) &&
                   activities.isReducedOnly(activity, cast<OpResult>(result));
    if (!reduced && (!behind || variant.last))
      store(builder, result.getLoc(), result, locals.lookup(result));
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
  auto received = RecvOp::create(builder, loc, types, peers, tag);
  for (auto [op, local] : llvm::zip(activity.ops, received.getResults()))
    if (llvm::is_contained(activities.resultsOf(activity), op->getResult(0)))
      store(builder, op->getLoc(), op->getResult(0), local);
}

//===-- Blocks and entries
//--------------------------------------------------------------------------------------===//

ProgramWriter::Variant ProgramWriter::variantOf(const Activity &activity, int64_t microbatch) const {
  return {!activity.sums.empty() && microbatch == 0,
          !activity.tail.empty() && microbatch == activity.count() - 1};
}

std::string ProgramWriter::nameOf(const Activity &activity, unsigned device, Variant variant) const {
  std::string name = activities.prefix + activity.name;
  if (activity.kind == Activity::Kind::Transfer)
    return name + (activities.deviceOf(activity.stages[0]) == device ? ".send" : ".recv");
  if (activity.count() == 1 || variant == Variant())
    return name;
  return name + (variant.last ? ".last" : ".first");
}

void ProgramWriter::writeBlock(ProgramOp program, StringRef name, const Activity &activity, unsigned device,
                               Variant variant) {
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  Location loc = activity.ops.empty() ? program.getLoc() : activity.ops.front()->getLoc();
  auto block = BlockOp::create(builder, loc, name);
  block.getBody().emplaceBlock();
  auto inner = OpBuilder::atBlockEnd(&block.getBody().front());
  locals.clear();
  if (activity.kind == Activity::Kind::Transfer)
    isApart(activity) ? writeExchange(inner, activity, device) : writeTransfer(inner, activity, device);
  else if (activity.kind == Activity::Kind::Reduce && isApart(activity))
    writeReduceApart(inner, activity, device);
  else if (activity.kind == Activity::Kind::Reduce)
    writeReduce(inner, activity, device);
  else
    writeCompute(inner, activity, variant);
}

/// Numbers the microbatches where something computes with their numbers: before all else, one run for each, which counts
/// on from the one before it and leaves the number in the microbatch's slot.
void ProgramWriter::writeNumbers(ProgramOp program, unsigned device, SmallVectorImpl<Attribute> &runs,
                                 SmallVectorImpl<int64_t> &microbatches) {
  int64_t count = activities.countNumbered(device);
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  Location loc = program.getLoc();
  auto type = RankedTensorType::get({}, builder.getI64Type());
  std::string slots = numberName(), counter = slots + ".counted", name = activities.prefix + "number";
  auto buffer = [&](StringRef name, int64_t depth) {
    BufferOp::create(builder, loc, name, BufferKind::temp, StringAttr(), false, depth > 1 ? SlotIndex::mb : SlotIndex::none,
                     depth, type, TypeAttr(), DenseI64ArrayAttr());
  };
  if (count == 0)
    return;
  buffer(slots, count);
  buffer(counter, 1);
  for (bool first : {true, false}) {
    if (!first && count == 1)
      break;
    auto block = BlockOp::create(builder, loc, name + (first ? ".first" : ""));
    block.getBody().emplaceBlock();
    auto inner = OpBuilder::atBlockEnd(&block.getBody().front());
    Value number = buildSplat(inner, loc, type, first ? 0 : 1);
    if (!first)
      number = AddOp::create(inner, loc, LoadOp::create(inner, loc, type, counter), number);
    StoreOp::create(inner, loc, number, slots);
    StoreOp::create(inner, loc, number, counter);
  }
  for (int64_t microbatch = 0; microbatch < count; ++microbatch) {
    runs.push_back(FlatSymbolRefAttr::get(builder.getContext(), name + (microbatch ? "" : ".first")));
    microbatches.push_back(microbatch);
  }
}

/// Writes that had to wait, of the step or of each microbatch: all loads before all stores, for variables that change places.
void ProgramWriter::writeLate(ProgramOp program, unsigned device, bool perMicrobatch, SmallVectorImpl<Attribute> &runs,
                              SmallVectorImpl<int64_t> &microbatches) {
  auto late = buffers.lateWrites(device);
  llvm::erase_if(late, [&](auto &write) { return write.second.perMicrobatch != perMicrobatch; });
  if (late.empty())
    return;
  int64_t count = late.front().second.depth;
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  std::string name = activities.prefix + (perMicrobatch ? "carry" : "write");
  auto block = BlockOp::create(builder, program.getLoc(), name);
  block.getBody().emplaceBlock();
  auto inner = OpBuilder::atBlockEnd(&block.getBody().front());
  locals.clear();
  for (auto &[value, state] : late)
    load(inner, value.getLoc(), value);
  for (auto &[value, state] : late)
    StoreOp::create(inner, value.getLoc(), locals.lookup(value), state.name);
  for (int64_t microbatch = 0; microbatch < count; ++microbatch) {
    runs.push_back(FlatSymbolRefAttr::get(builder.getContext(), name));
    microbatches.push_back(microbatch);
  }
}

void ProgramWriter::writeBuffers(ProgramOp program, unsigned device) {
  SymbolTable symbols(program);
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  for (const BufferPlan *plan : buffers.ofDevice(device)) {
    if (symbols.lookup(plan->name)) // state that another step uses too
      continue;
    bool many = plan->depth > 1;
    auto buffer = BufferOp::create(builder, program.getLoc(), plan->name, plan->kind,
                                   plan->of.empty() ? StringAttr() : builder.getStringAttr(plan->of),
                                   plan->kind == BufferKind::input && plan->perMicrobatch,
                                   many ? SlotIndex::mb : SlotIndex::none, plan->depth, plan->type,
                                   plan->dist ? TypeAttr::get(plan->dist) : TypeAttr(), DenseI64ArrayAttr());
    if (plan->saved)
      buffer->setAttr(savedAttr, builder.getUnitAttr());
    symbols.insert(buffer);
  }
}

void ProgramWriter::write(ProgramOp program, unsigned device) {
  writeBuffers(program, device);
  SmallVector<Attribute> runs;
  SmallVector<int64_t> microbatches;
  writeNumbers(program, device, runs, microbatches);
  llvm::StringSet<> written;
  for (const Instance &instance : order.instances) {
    const Activity &activity = activities.list[instance.activity];
    if (!activities.isOn(activity, device))
      continue;
    Variant variant = variantOf(activity, instance.microbatch);
    std::string name = nameOf(activity, device, variant);
    if (written.insert(name).second)
      writeBlock(program, name, activity, device, variant);
    runs.push_back(FlatSymbolRefAttr::get(program.getContext(), name));
    microbatches.push_back(instance.microbatch);
  }
  writeLate(program, device, /*perMicrobatch=*/true, runs, microbatches);
  writeLate(program, device, /*perMicrobatch=*/false, runs, microbatches);
  auto builder = OpBuilder::atBlockEnd(&program.getBody().front());
  EntryOp::create(builder, StepOp(activities.step).getLoc(), StepOp(activities.step).getSymName(),
                  builder.getArrayAttr(runs), microbatches);
}

} // namespace par
