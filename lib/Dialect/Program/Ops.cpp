#include "par/Dialect/Parts.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "par/Dialect/PartsOps.cpp.inc"

namespace par {

std::string ProgramOp::getRole() {
  auto stages = llvm::to_vector(getStages().getAsRange<FlatSymbolRefAttr>());
  if (stages.size() > 8) // a name in a bundle is short
    return (stages.front().getValue() + ".." + stages.back().getValue()).str();
  return llvm::join(llvm::map_range(stages, [](FlatSymbolRefAttr stage) { return stage.getValue(); }), "+");
}

LogicalResult BufferOp::verify() {
  if (getDepth() < 1)
    return emitOpError() << "has depth " << getDepth() << ", expected at least 1";
  if (getAt() && getAt()->size() != getDepth())
    return emitOpError() << "has " << getAt()->size() << " offsets for " << getDepth() << " slots";
  return success();
}

LogicalResult EntryOp::verify() {
  if (getBlocks().size() != getMicrobatches().size())
    return emitOpError() << "runs " << getBlocks().size() << " blocks with " << getMicrobatches().size()
                         << " microbatch indices";
  auto program = cast<ProgramOp>((*this)->getParentOp());
  llvm::DenseSet<Attribute> blocks; // of thousands of runs each name is looked up once
  for (BlockOp block : program.getOps<BlockOp>())
    blocks.insert(block.getSymNameAttr());
  for (auto name : getBlocks().getAsRange<FlatSymbolRefAttr>())
    if (!blocks.contains(name.getAttr()))
      return emitOpError() << "runs " << name << ", which is no block of " << program.getSymName();
  return success();
}

static LogicalResult verifyBuffer(Operation *op, FlatSymbolRefAttr name, Type type, SymbolTableCollection &symbols) {
  auto program = op->getParentOfType<ProgramOp>();
  auto buffer = program ? symbols.lookupSymbolIn<BufferOp>(program, name) : BufferOp();
  if (!buffer)
    return op->emitOpError() << "names " << name << ", which is no buffer of its program";
  // The first elements may be seen, under any shape.
  auto seen = cast<RankedTensorType>(type);
  RankedTensorType held = buffer.getTensorType();
  if (held.getElementType() != seen.getElementType() || held.getNumElements() < seen.getNumElements())
    return op->emitOpError() << "has type " << type << ", the buffer " << held;
  return success();
}

LogicalResult LoadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyBuffer(*this, getBufferAttr(), getType(), symbols);
}
LogicalResult StoreOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyBuffer(*this, getBufferAttr(), getOperand().getType(), symbols);
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto module = (*this)->getParentOfType<ModuleOp>();
  auto kernel = dyn_cast_or_null<KernelOp>(symbols.lookupSymbolIn(module, getKernelAttr()));
  if (!kernel)
    return emitOpError() << "names " << getKernelAttr() << ", which is no kernel";
  if (TypeRange(getOperandTypes()) != TypeRange(kernel.getArgumentTypes()) ||
      TypeRange(getResultTypes()) != TypeRange(kernel.getResultTypes()))
    return emitOpError() << "does not have the kernel's type " << kernel.getFunctionType();
  return success();
}

static LogicalResult verifyParts(Operation *op, size_t parts, ArrayRef<int64_t> peers,
                                 ArrayRef<ArrayRef<int64_t>> groups) {
  if (peers.size() != parts)
    return op->emitOpError() << "(parts_c1) has " << parts << " parts and " << peers.size() << " peers";
  llvm::SmallDenseSet<int64_t> seen;
  for (ArrayRef<int64_t> group : groups)
    for (int64_t rank : group)
      if (!seen.insert(rank).second)
        return op->emitOpError() << "(parts_c2) has rank " << rank << " twice in its groups";
  return success();
}

LogicalResult SendPartsOp::verify() { return verifyParts(*this, getNumOperands(), getPeers(), getRankGroups()); }
LogicalResult RecvPartsOp::verify() { return verifyParts(*this, getNumResults(), getPeers(), getRankGroups()); }

} // namespace par
