// All-reduce across stages in programs: first over a device's stages, then over the devices that use the result.
#include "ProgramWriter.h"

using namespace mlir;

namespace par {

Value ProgramWriter::combine(OpBuilder &builder, Location loc, ReduceKind kind, Value left, Value right) {
  switch (kind) {
  case ReduceKind::sum:
    return AddOp::create(builder, loc, left, right);
  case ReduceKind::max:
    return MaximumOp::create(builder, loc, left, right);
  case ReduceKind::min:
    return MinimumOp::create(builder, loc, left, right);
  case ReduceKind::bitAnd:
    return AndOp::create(builder, loc, left, right);
  case ReduceKind::bitOr:
    return OrOp::create(builder, loc, left, right);
  case ReduceKind::product:
    return MultiplyOp::create(builder, loc, left, right);
  }
  llvm_unreachable("all kinds are handled");
}

/// Whether a reduction adds values of several stages of a device. Floats are then added stage by stage, as if each
/// stage had a device of its own: the sum has the same bits.
static bool addsInOrder(const StepTasks &tasks, const Task &task) {
  auto reduce = cast<StageAllReduceOp>(task.ops.front());
  return reduce.getKind() == ReduceKind::sum && tasks.devicesOf(task).size() < task.stages.size() &&
         isa<FloatType>(getTensorType(reduce.getOperands().front().getType()).getElementType());
}

/// A device's operands of a reduction, combined. If they must be added in order, each one lies at its own index, with
/// zeros at the indices of other devices.
Value ProgramWriter::combineLocally(OpBuilder &builder, const Task &task, unsigned device) {
  auto reduce = cast<StageAllReduceOp>(task.ops.front());
  Location loc = reduce.getLoc();
  bool inOrder = addsInOrder(tasks, task);
  Value local;
  SmallVector<Value> places;
  for (Value operand : reduce.getOperands()) {
    bool here = tasks.deviceOf(operand) == device;
    RankedTensorType type = tasks.localType(operand);
    if (inOrder)
      places.push_back(here ? buildReshape(builder, loc, load(builder, loc, operand), {1})
                            : buildSplat(builder, loc, RankedTensorType::get({1}, type.getElementType()), 0));
    else if (here)
      local = local ? combine(builder, loc, reduce.getKind(), local, load(builder, loc, operand))
                    : load(builder, loc, operand);
  }
  return inOrder ? ConcatOp::create(builder, loc, places, 0) : local;
}

/// The sum of a vector's elements, from the first one on.
static Value addElements(OpBuilder &builder, Location loc, Value vector) {
  Value sum;
  for (int64_t at = 0; at < cast<RankedTensorType>(vector.getType()).getDimSize(0); ++at) {
    Value one = buildReshape(builder, loc, SliceOp::create(builder, loc, vector, {at}, {at + 1}, {1}), {});
    sum = sum ? AddOp::create(builder, loc, sum, one) : one;
  }
  return sum;
}

/// The ranks of the same position on these devices, one group a position.
ArrayAttr ProgramWriter::groupRanks(OpBuilder &builder, ArrayRef<unsigned> devices) {
  SmallVector<Attribute> groups;
  for (size_t member = 0; member < tasks.ranksOf(devices.front()).size(); ++member) {
    SmallVector<int64_t> ranks;
    for (unsigned device : devices)
      ranks.push_back(tasks.ranksOf(device)[member]);
    groups.push_back(builder.getDenseI64ArrayAttr(ranks));
  }
  return builder.getArrayAttr(groups);
}

/// Devices that use the result reduce it among themselves, each rank with those of its position. Before that the others
/// send their values to the first of them, so only ranks that use the result receive it.
void ProgramWriter::writeReduce(OpBuilder &builder, const Task &task, unsigned device) {
  auto reduce = cast<StageAllReduceOp>(task.ops.front());
  Location loc = reduce.getLoc();
  int64_t tag = tags[&task - tasks.list.data()];
  SmallVector<Value> needed = tasks.resultsOf(task);
  SmallVector<unsigned> wanting, others;
  for (unsigned other : tasks.devicesOf(task))
    (llvm::any_of(needed, [&](Value value) { return tasks.deviceOf(value) == other; }) ? wanting : others)
        .push_back(other);
  if (wanting.empty())
    return;
  Value local = combineLocally(builder, task, device);
  for (auto [index, other] : llvm::enumerate(others)) {
    int64_t own = tag + 1 + index;
    if (other == device)
      SendOp::create(builder, loc, local, tasks.ranksOf(wanting.front()), own);
    if (device != wanting.front())
      continue;
    auto received = RecvOp::create(builder, loc, TypeRange(local.getType()), tasks.ranksOf(other), own);
    local = combine(builder, loc, reduce.getKind(), local, received.getResult(0));
  }
  if (!llvm::is_contained(wanting, device))
    return;
  if (wanting.size() > 1)
    local = WorldAllReduceOp::create(builder, loc, TypeRange(local.getType()), local, reduce.getKind(),
                                     groupRanks(builder, wanting), tag)
                .getResult(0);
  if (addsInOrder(tasks, task))
    local = addElements(builder, loc, local);
  for (Value result : reduce.getResults())
    if (tasks.deviceOf(result) == device && llvm::is_contained(needed, result))
      store(builder, loc, result, local);
}

} // namespace par
