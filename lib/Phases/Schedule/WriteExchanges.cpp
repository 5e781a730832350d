// Transfers between stages of different meshes in programs: a value is sent in parts, which each receiver concatenates.
#include "ProgramWriter.h"

#include "par/Dialect/ExchangeSides.h"
#include "par/Dialect/Parts.h"

using namespace mlir;

namespace par {

/// The ranks of each group, those that send first.
static ArrayAttr rankGroups(OpBuilder &builder, const Exchange &exchange, StageOp from, StageOp to) {
  SmallVector<int64_t> members(from.getRanks());
  llvm::append_range(members, to.getRanks());
  SmallVector<Attribute> groups;
  for (const std::vector<unsigned> &group : exchange.groups)
    groups.push_back(
        builder.getDenseI64ArrayAttr(llvm::map_to_vector(group, [&](unsigned member) { return members[member]; })));
  return builder.getArrayAttr(groups);
}

/// Pads `value` with zeros at its end to this shape.
static Value padTo(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  SmallVector<int64_t> low(shape.size()), high;
  for (auto [now, then] : llvm::zip(type.getShape(), shape))
    high.push_back(then - now);
  auto zero = cast<TypedAttr>(builder.getZeroAttr(type.getElementType()));
  return PadOp::create(builder, loc, value, low, high, zero);
}

static Value sliceAt(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> start, ArrayRef<int64_t> shape) {
  if (cast<RankedTensorType>(value.getType()).getShape() == shape)
    return value;
  SmallVector<int64_t> limits, strides(shape.size(), 1);
  for (auto [begin, size] : llvm::zip(start, shape))
    limits.push_back(begin + size);
  return SliceOp::create(builder, loc, value, start, limits, strides);
}

/// The grid's pieces, row by row, concatenated along its last dim first.
static Value join(OpBuilder &builder, Location loc, SmallVector<Value> pieces, ArrayRef<int64_t> grid) {
  for (int64_t dim = grid.size() - 1; dim >= 0; --dim) {
    SmallVector<Value> joined;
    for (size_t at = 0; at < pieces.size(); at += grid[dim])
      joined.push_back(grid[dim] == 1
                           ? pieces[at]
                           : ConcatOp::create(builder, loc, ArrayRef(pieces).slice(at, grid[dim]), dim).getResult());
    pieces = std::move(joined);
  }
  return pieces.front();
}

ProgramWriter::Crossing ProgramWriter::crossingOf(DistType from, DistType to, int64_t tag) const {
  auto stageOf = [&](DistType dist) -> StageOp {
    return *llvm::find_if(tasks.stages,
                          [&](StageOp stage) { return stage.getSymNameAttr() == dist.getStage().getAttr(); });
  };
  return {from, to, stageOf(from), stageOf(to), tag};
}

static Exchange exchangeOf(DistType from, DistType to, StageOp here, StageOp there) {
  std::optional<Exchange> found =
      findExchange(to.getTensor(), from.getSharding(), here.getMesh(), to.getSharding(), there.getMesh());
  assert(found && "Partition lays transfers so that they nest");
  return std::move(*found);
}

void ProgramWriter::sendParts(OpBuilder &builder, Location loc, Value local, Crossing crossing) {
  Exchange exchange = exchangeOf(crossing.from, crossing.to, crossing.here, crossing.there);
  SmallVector<Value> slices, parts;
  Value padded = padTo(builder, loc, local, exchange.padded);
  for (const std::vector<int64_t> &start : exchange.slices)
    slices.push_back(sliceAt(builder, loc, padded, start, exchange.piece));
  SmallVector<int64_t> peers;
  for (const Exchange::Send &send : exchange.sends) {
    parts.push_back(slices[send.slice]);
    peers.push_back(send.peer);
  }
  SendPartsOp::create(builder, loc, parts, peers, rankGroups(builder, exchange, crossing.here, crossing.there),
                      crossing.tag);
}

Value ProgramWriter::recvParts(OpBuilder &builder, Location loc, Crossing crossing) {
  Exchange exchange = exchangeOf(crossing.from, crossing.to, crossing.here, crossing.there);
  RankedTensorType local = crossing.to.getSharding().getLocalType(crossing.to.getTensor(), crossing.there.getMesh());
  SmallVector<Type> types(exchange.senders, local.clone(exchange.piece));
  auto peers = llvm::to_vector(llvm::seq<int64_t>(0, exchange.senders));
  auto received = RecvPartsOp::create(builder, loc, types, peers,
                                      rankGroups(builder, exchange, crossing.here, crossing.there), crossing.tag);
  Value whole = join(builder, loc, SmallVector<Value>(received.getResults()), exchange.grid);
  return sliceAt(builder, loc, whole, SmallVector<int64_t>(local.getRank()), local.getShape());
}

bool ProgramWriter::isApart(const Task &task) const {
  return llvm::any_of(task.stages, [&](unsigned stage) {
    return StageOp(tasks.stages[stage]).getMesh() != StageOp(tasks.stages[task.stages.front()]).getMesh();
  });
}

int64_t ProgramWriter::countTags(const Task &task) const {
  int64_t devices = tasks.devicesOf(task).size();
  if (!task.isCommunication())
    return 0;
  if (task.kind == Task::Kind::Reduce)
    return isApart(task) ? devices * task.ops.front()->getNumOperands() : devices;
  return isApart(task) ? task.ops.size() : 1;
}

/// Sends each value of a transfer by itself: their shardings may differ.
void ProgramWriter::writeExchange(OpBuilder &builder, const Task &task, unsigned device) {
  int64_t tag = tags[&task - tasks.list.data()];
  bool sends = tasks.deviceOf(task.stages[0]) == device;
  if (!sends)
    for (Value result : tasks.resultsOf(task))
      keepOlderOf(builder, result);
  for (Operation *op : task.ops) {
    auto transfer = cast<TransferOp>(op);
    Crossing crossing = crossingOf(transfer.getOperand().getType(), transfer.getType(), tag++);
    if (sends)
      sendParts(builder, op->getLoc(), load(builder, op->getLoc(), transfer.getOperand()), crossing);
    else if (Value local = recvParts(builder, op->getLoc(), crossing);
             llvm::is_contained(tasks.resultsOf(task), transfer.getResult()))
      store(builder, op->getLoc(), transfer.getResult(), local);
  }
}

/// An all-reduce across stages of different meshes: each user stage receives the other stages' values and adds them up,
/// stage by stage.
void ProgramWriter::writeReduceApart(OpBuilder &builder, const Task &task, unsigned device) {
  auto reduce = cast<StageAllReduceOp>(task.ops.front());
  Location loc = reduce.getLoc();
  int64_t tag = tags[&task - tasks.list.data()];
  SmallVector<Value> needed = tasks.resultsOf(task);
  llvm::MapVector<unsigned, Type> wanting; // devices, and the type of the result on one of their stages
  for (Value result : needed)
    wanting.try_emplace(tasks.deviceOf(result), result.getType());
  Value whole;
  for (Value operand : reduce.getOperands()) {
    bool here = tasks.deviceOf(operand) == device;
    Value part = here ? load(builder, loc, operand) : Value();
    for (auto &[target, type] : wanting) {
      Crossing crossing = crossingOf(cast<DistType>(operand.getType()), cast<DistType>(type), tag++);
      if (target == tasks.deviceOf(operand))
        continue;
      if (here)
        sendParts(builder, loc, part, crossing);
      else if (target == device)
        part = recvParts(builder, loc, crossing);
    }
    if (part && wanting.contains(device))
      whole = whole ? combine(builder, loc, reduce.getKind(), whole, part) : part;
  }
  for (Value result : needed)
    if (tasks.deviceOf(result) == device)
      store(builder, loc, result, whole);
}

} // namespace par
