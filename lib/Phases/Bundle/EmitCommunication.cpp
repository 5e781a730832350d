// Emits collectives, sends and receives as instructions. A multi-operand collective becomes a group with one
// instruction an operand, an asynchronous one runs on its own queue with events around it, and parts without elements
// are dropped on all members alike.
#include "EmitProgram.h"
#include "Layouts.h"

#include "par/Dialect/Parts.h"

#include <set>

using namespace mlir;

namespace par {

/// Groups hold at most this many; larger ones are several.
void ProgramEmitter::beginGroup(Operation *op, size_t done, size_t count) {
  if (done % format::maxGroup != 0)
    return;
  size_t members = std::min<size_t>(count - done, format::maxGroup);
  if (members > 1)
    append(op, format::Op::Group).n = members;
}

/// Booleans are 0 or 1 in a byte each: `and` is the smallest, `or` the largest.
static format::Reduction reductionOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::sum:
    return format::Reduction::Sum;
  case ReduceKind::max:
  case ReduceKind::bitOr:
    return format::Reduction::Max;
  case ReduceKind::min:
  case ReduceKind::bitAnd:
    return format::Reduction::Min;
  case ReduceKind::product:
    return format::Reduction::Prod;
  }
  llvm_unreachable("all kinds are handled");
}

/// `and` and `or` of integers would be something else than min and max.
static LogicalResult checkReduction(Operation *op, ReduceKind kind, Type type) {
  bool bits = kind == ReduceKind::bitAnd || kind == ReduceKind::bitOr;
  if (bits && !getElementTypeOrSelf(type).isInteger(1))
    return op->emitError() << "reduces " << type << " by " << stringifyReduceKind(kind)
                           << "; over ranks that is supported only for booleans";
  return success();
}

/// One all-reduce in place: result and operand lie in one buffer, as Memory's gate has verified.
LogicalResult ProgramEmitter::emitReduction(Operation *op, unsigned index, const std::string &name, ReduceKind kind,
                                            uint64_t tag) {
  BufferOp to = bufferOf(op->getResult(index));
  auto type = cast<RankedTensorType>(op->getResult(index).getType());
  if (failed(checkReduction(op, kind, type)))
    return failure();
  format::Instruction &made = append(op, format::Op::Coll);
  made.operands = {part(format::Access::ReadWrite, to, 0, type)};
  made.comm = comm(name);
  made.coll = format::CollKind::AllReduce;
  made.reduction = reductionOf(kind);
  made.type = dtypeOf(type.getElementType());
  made.n = type.getNumElements();
  made.tag = tag;
  return success();
}

/// The dims that one operand of a gather, scatter or exchange works along.
static bool worksAlongDim0(Operation *op, unsigned index) {
  for (StringRef name : {"dims", "split_dims", "concat_dims"})
    if (auto dims = op->getAttrOfType<DenseI64ArrayAttr>(name))
      if (dims[index] != 0)
        return false;
  return true;
}

/// One operand of a collective, or one of the blocks of dim 0 that it works on one by one (`by_blocks`).
struct ProgramEmitter::Piece {
  unsigned index = 0;
  int64_t block = 0, blocks = 1;
};

std::vector<ProgramEmitter::Piece> ProgramEmitter::piecesOf(CollectiveOpInterface op) {
  std::vector<Piece> pieces;
  for (auto [index, operand] : llvm::enumerate(op->getOperandTypes())) {
    int64_t blocks = op.getByBlocks() ? cast<RankedTensorType>(operand).getDimSize(0) : 1;
    for (int64_t block = 0; block < blocks; ++block)
      pieces.push_back({unsigned(index), block, blocks});
  }
  return pieces;
}

format::Operand ProgramEmitter::pieceOf(format::Access access, Value value, Piece piece) {
  BufferOp buffer = bufferOf(value);
  auto type = cast<RankedTensorType>(value.getType());
  if (piece.blocks == 1)
    return part(access, buffer, 0, type);
  type = type.clone(type.getShape().drop_front());
  return part(access, buffer, piece.block * getByteSize(type), type);
}

/// A gather, scatter or exchange of one piece.
LogicalResult ProgramEmitter::emitExchange(CollectiveOpInterface op, const std::string &name, Piece piece,
                                           uint64_t tag) {
  Value from = op->getOperand(piece.index), to = op->getResult(piece.index);
  auto gets = cast<RankedTensorType>(to.getType());
  int64_t given = cast<RankedTensorType>(from.getType()).getNumElements() / piece.blocks,
          got = gets.getNumElements() / piece.blocks;
  format::Operand reads = pieceOf(format::Access::Read, from, piece),
                  writes = pieceOf(format::Access::Write, to, piece);
  format::Instruction &made = append(op, format::Op::Coll);
  made.operands = {reads, writes};
  made.comm = comm(name);
  made.type = dtypeOf(gets.getElementType());
  made.tag = tag;
  if (auto scatter = dyn_cast<ReduceScatterOp>(op.getOperation())) {
    made.coll = format::CollKind::ReduceScatter;
    made.reduction = reductionOf(scatter.getKind());
    made.n = got;
    return checkReduction(op, scatter.getKind(), gets);
  }
  if (isa<AllGatherOp>(op.getOperation())) {
    made.coll = format::CollKind::AllGather;
    made.n = given;
    return success();
  }
  StageOp stage = tables.names.lookup<StageOp>(program.getFirstStage().getAttr());
  made.coll = format::CollKind::AllToAll;
  made.n = given / stage.getMesh().getSize(getAxes(op.getAxes()));
  return success();
}

LogicalResult ProgramEmitter::emitCollective(CollectiveOpInterface op, const std::string &name) {
  std::vector<Piece> pieces = piecesOf(op);
  for (auto [done, piece] : llvm::enumerate(pieces)) {
    beginGroup(op, done, pieces.size());
    uint64_t tag = tables.communicators.freshTag();
    if (auto reduce = dyn_cast<AllReduceOp>(op.getOperation())) {
      if (failed(emitReduction(op, piece.index, name, reduce.getKind(), tag)))
        return failure();
      continue;
    }
    if (!op.getByBlocks() && !worksAlongDim0(op, piece.index))
      return op->emitError() << "works along another dim than 0; -par-flatten-collectives must come before";
    if (failed(emitExchange(op, name, piece, tag)))
      return failure();
  }
  return success();
}

uint32_t ProgramEmitter::queueNamed(StringRef name) {
  uint32_t index = llvm::find(out.queues, name) - out.queues.begin();
  if (index == out.queues.size())
    out.queues.push_back(name.str());
  return index;
}

uint32_t ProgramEmitter::event(const std::string &name) {
  out.events.push_back({name, format::Index::None, 1});
  return out.events.size() - 1;
}

LogicalResult ProgramEmitter::emitBeside(CollectiveOpInterface op) {
  uint32_t beside = queueNamed(op.getQueue());
  std::string number = std::to_string(out.events.size() / 2);
  uint32_t ready = event("ready." + number), done = event("done." + number);
  append(op, format::Op::Signal).event = ready;
  queue = beside;
  append(op, format::Op::Wait).event = ready;
  LogicalResult emitted = emitCollective(op, tables.communicators.overAxes(getAxes(op.getAxes()), op.getQueue()));
  append(op, format::Op::Signal).event = done;
  queue = 0;
  for (Value result : op->getResults())
    writtenBeside[buffers.lookup(bufferOf(result))].push_back({done, beside});
  return emitted;
}

/// The event is that of the last collective before it that writes the buffer.
void ProgramEmitter::emitDone(DoneOp done) {
  llvm::SmallSetVector<uint32_t, 2> events;
  for (Value value : done.getValues())
    events.insert(writtenBeside[buffers.lookup(bufferOf(value))].pop_back_val().first);
  for (uint32_t event : events)
    append(done, format::Op::Wait).event = event;
}

static bool movesNothing(const format::Instruction &it) {
  bool counts = it.op == format::Op::Coll || it.op == format::Op::Send || it.op == format::Op::Recv ||
                it.op == format::Op::Copy || it.op == format::Op::Fill;
  return counts && it.n == 0;
}

/// All members of a communication leave out the same: they agree on how many elements there are.
void ProgramEmitter::dropEmpty(format::Block &block) {
  std::vector<format::Instruction> kept;
  for (size_t n = 0; n < block.instructions.size();) {
    const format::Instruction &head = block.instructions[n];
    size_t members = head.op == format::Op::Group ? head.n : 0, begin = n + (members > 0),
           end = begin + std::max<size_t>(members, 1);
    size_t left = 0;
    for (size_t m = begin; m < end; ++m)
      left += !movesNothing(block.instructions[m]);
    if (left > 1) {
      kept.push_back(head);
      kept.back().n = left;
    }
    for (size_t m = begin; m < end; ++m)
      if (!movesNothing(block.instructions[m]))
        kept.push_back(block.instructions[m]);
    n = end;
  }
  block.instructions = std::move(kept);
}

void ProgramEmitter::emitWaits(format::Block &block) const {
  std::vector<format::Instruction> ordered;
  std::set<std::pair<uint32_t, uint32_t>> waited; // a queue, and an event that it has waited for
  size_t grouped = 0;                             // instructions that are still members of a group
  auto wait = [&](uint32_t queue, uint32_t event) {
    if (!waited.insert({queue, event}).second)
      return;
    ordered.emplace_back().op = format::Op::Wait;
    ordered.back().queue = queue;
    ordered.back().event = event;
  };
  for (size_t n = 0; n < block.instructions.size(); ++n) {
    const format::Instruction &it = block.instructions[n];
    if (it.op == format::Op::Signal)
      for (uint32_t queue = 0; queue < out.queues.size(); ++queue)
        waited.erase({queue, it.event});
    // A group waits as a whole, before it begins.
    size_t members = it.op == format::Op::Group ? it.n : 0;
    for (size_t m = n; grouped == 0 && m <= n + members; ++m)
      for (const format::Operand &operand : block.instructions[m].operands)
        for (auto [done, queue] : writtenBeside.lookup(ownerOf(out, operand.buffer)))
          if (queue != it.queue)
            wait(it.queue, done);
    grouped = members ? members : grouped - (grouped > 0);
    ordered.push_back(it);
  }
  block.instructions = std::move(ordered);
}

LogicalResult ProgramEmitter::emitWorldAllReduce(WorldAllReduceOp reduce) {
  std::string name = tables.communicators.overGroups(reduce.getGroups());
  for (unsigned i = 0; i < reduce->getNumOperands(); ++i) {
    beginGroup(reduce, i, reduce->getNumOperands());
    uint64_t tag = tables.communicators.tagOf(Communicators::Scope::World, reduce.getTag(), i);
    if (failed(emitReduction(reduce, i, name, reduce.getKind(), tag)))
      return failure();
  }
  return success();
}

LogicalResult ProgramEmitter::emitSend(SendOp send) {
  FailureOr<std::string> name = tables.communicators.between(send, program.getRanks(), send.getPeers(), /*sends=*/true);
  if (failed(name))
    return failure();
  for (auto [i, value] : llvm::enumerate(send.getOperands())) {
    beginGroup(send, i, send.getNumOperands());
    auto type = cast<RankedTensorType>(value.getType());
    format::Instruction &made = append(send, format::Op::Send);
    made.operands = {part(format::Access::Read, bufferOf(value), 0, type)};
    made.comm = comm(*name);
    made.type = dtypeOf(type.getElementType());
    made.n = type.getNumElements();
    made.peer = {1};
    made.tag = tables.communicators.tagOf(Communicators::Scope::Transfer, send.getTag(), i);
  }
  return success();
}

/// All parts of a value have one tag: a rank has one part at most for another.
void ProgramEmitter::emitParts(Operation *op, ValueRange parts, ArrayRef<int64_t> peers, ArrayAttr groups,
                               int64_t tag) {
  std::string name = tables.communicators.overParts(groups);
  bool sends = isa<SendPartsOp>(op);
  for (auto [i, value] : llvm::enumerate(parts)) {
    beginGroup(op, i, parts.size());
    auto type = cast<RankedTensorType>(value.getType());
    format::Instruction &made = append(op, sends ? format::Op::Send : format::Op::Recv);
    made.operands = {part(sends ? format::Access::Read : format::Access::Write, bufferOf(value), 0, type)};
    made.comm = comm(name);
    made.type = dtypeOf(type.getElementType());
    made.n = type.getNumElements();
    made.peer = {static_cast<uint32_t>(peers[i])};
    made.tag = tables.communicators.tagOf(Communicators::Scope::Transfer, tag, 0);
  }
}

LogicalResult ProgramEmitter::emitRecv(RecvOp recv) {
  FailureOr<std::string> name =
      tables.communicators.between(recv, program.getRanks(), recv.getPeers(), /*sends=*/false);
  if (failed(name))
    return failure();
  for (auto [i, value] : llvm::enumerate(recv.getResults())) {
    beginGroup(recv, i, recv.getNumResults());
    auto type = cast<RankedTensorType>(value.getType());
    format::Instruction &made = append(recv, format::Op::Recv);
    made.operands = {part(format::Access::Write, bufferOf(value), 0, type)};
    made.comm = comm(*name);
    made.type = dtypeOf(type.getElementType());
    made.n = type.getNumElements();
    made.peer = {0};
    made.tag = tables.communicators.tagOf(Communicators::Scope::Transfer, recv.getTag(), i);
  }
  return success();
}

} // namespace par
