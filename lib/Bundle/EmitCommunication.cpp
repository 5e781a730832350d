#include "EmitProgram.h"
#include "Layouts.h"
#include "par/Memory/Arena.h"

using namespace mlir;

namespace par {

/// Groups hold at most this many; larger ones are several.
void ProgramEmitter::beginGroup(Operation *op, size_t done, size_t count) {
  if (done % format::kMaxGroup != 0)
    return;
  size_t members = std::min<size_t>(count - done, format::kMaxGroup);
  if (members > 1)
    append(op, format::Op::Group).n = members;
}

/// Booleans are 0 or 1 in a byte each: `and` is the smallest, `or` the largest.
static format::Reduction reductionOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::sum:
    return format::Reduction::Sum;
  case ReduceKind::max:
  case ReduceKind::bor:
    return format::Reduction::Max;
  case ReduceKind::min:
  case ReduceKind::band:
    return format::Reduction::Min;
  case ReduceKind::product:
    return format::Reduction::Prod;
  }
  llvm_unreachable("all kinds are handled");
}

/// `and` and `or` of integers would be something else than min and max.
static LogicalResult checkReduction(Operation *op, ReduceKind kind, Type type) {
  bool bits = kind == ReduceKind::band || kind == ReduceKind::bor;
  if (bits && !getElementTypeOrSelf(type).isInteger(1))
    return op->emitError() << "reduces " << type << " by " << stringifyReduceKind(kind)
                           << "; over ranks that is supported for booleans alone";
  return success();
}

/// One all-reduce in place. Memory gives result and operand one buffer.
LogicalResult ProgramEmitter::emitReduction(Operation *op, unsigned index, const std::string &name, ReduceKind kind,
                                            uint64_t tag) {
  BufferOp from = getBuffer(op->getOperand(index)), to = getBuffer(op->getResult(index));
  if (from != to)
    return op->emitError() << "reduces " << from.getSymNameAttr() << " to another buffer, " << to.getSymNameAttr()
                           << "; Memory must give both one";
  if (failed(checkReduction(op, kind, from.getTensorType())))
    return failure();
  format::Instruction &made = append(op, format::Op::Coll);
  made.operands = {operand(format::Access::ReadWrite, to)};
  made.comm = comm(name);
  made.coll = format::CollKind::AllReduce;
  made.reduction = reductionOf(kind);
  made.type = dtypeOf(to.getTensorType().getElementType());
  made.n = to.getTensorType().getNumElements();
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

LogicalResult ProgramEmitter::emitCollective(Operation *op, ArrayAttr axisNames) {
  SmallVector<StringAttr> axes = getAxes(axisNames);
  std::string name = tables.communicators.overAxes(axes);
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    beginGroup(op, i, op->getNumOperands());
    uint64_t tag = tables.communicators.freshTag();
    if (auto reduce = dyn_cast<AllReduceOp>(op)) {
      if (failed(emitReduction(op, i, name, reduce.getKind(), tag)))
        return failure();
      continue;
    }
    if (!worksAlongDim0(op, i))
      return op->emitError() << "works along another dim than 0; -par-flatten-collectives must come before";
    BufferOp from = getBuffer(op->getOperand(i)), to = getBuffer(op->getResult(i));
    int64_t given = from.getTensorType().getNumElements(), got = to.getTensorType().getNumElements();
    format::Instruction &made = append(op, format::Op::Coll);
    made.operands = {operand(format::Access::Read, from), operand(format::Access::Write, to)};
    made.comm = comm(name);
    made.type = dtypeOf(to.getTensorType().getElementType());
    made.tag = tag;
    if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
      made.coll = format::CollKind::ReduceScatter;
      made.reduction = reductionOf(scatter.getKind());
      made.n = got;
      if (failed(checkReduction(op, scatter.getKind(), to.getTensorType())))
        return failure();
    } else if (isa<AllGatherOp>(op)) {
      made.coll = format::CollKind::AllGather;
      made.n = given;
    } else {
      StageOp stage = tables.module.lookupSymbol<StageOp>(program.getStage());
      made.coll = format::CollKind::AllToAll;
      made.n = given / stage.getMesh().getSize(axes);
    }
  }
  return success();
}

LogicalResult ProgramEmitter::emitWorldReduce(WorldReduceOp reduce) {
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
  FailureOr<std::string> name =
      tables.communicators.between(send, program.getRanks(), send.getPeers(), /*sends=*/true);
  if (failed(name))
    return failure();
  for (auto [i, value] : llvm::enumerate(send.getOperands())) {
    beginGroup(send, i, send.getNumOperands());
    BufferOp from = getBuffer(value);
    format::Instruction &made = append(send, format::Op::Send);
    made.operands = {operand(format::Access::Read, from)};
    made.comm = comm(*name);
    made.type = dtypeOf(from.getTensorType().getElementType());
    made.n = from.getTensorType().getNumElements();
    made.peer = {1};
    made.tag = tables.communicators.tagOf(Communicators::Scope::Transfer, send.getTag(), i);
  }
  return success();
}

LogicalResult ProgramEmitter::emitRecv(RecvOp recv) {
  FailureOr<std::string> name =
      tables.communicators.between(recv, program.getRanks(), recv.getPeers(), /*sends=*/false);
  if (failed(name))
    return failure();
  for (auto [i, value] : llvm::enumerate(recv.getResults())) {
    beginGroup(recv, i, recv.getNumResults());
    BufferOp to = getBuffer(value);
    format::Instruction &made = append(recv, format::Op::Recv);
    made.operands = {operand(format::Access::Write, to)};
    made.comm = comm(*name);
    made.type = dtypeOf(to.getTensorType().getElementType());
    made.n = to.getTensorType().getNumElements();
    made.peer = {0};
    made.tag = tables.communicators.tagOf(Communicators::Scope::Transfer, recv.getTag(), i);
  }
  return success();
}

} // namespace par
