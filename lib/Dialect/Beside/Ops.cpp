#include "par/Dialect/Beside.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "par/Dialect/BesideOps.cpp.inc"

namespace par {

LogicalResult DoneOp::verify() {
  if (getValues().empty() || getResultTypes() != getValues().getTypes())
    return emitOpError() << "(done_c1) has " << getNumResults() << " results for " << getValues().size()
                         << " values, expected some, of their types";
  // Behind Memory.
  if (llvm::all_of(getOperands(), [](Value value) { return isa_and_nonnull<LoadOp>(value.getDefiningOp()); }))
    return success();
  Operation *start = getValues().front().getDefiningOp();
  if (!start || getQueue(start).empty() || !llvm::equal(start->getResults(), getValues()))
    return emitOpError() << "(done_c1) does not have all results of one collective with a queue";
  // Earlier collectives of the same queue that feed this one end before it does, so their operands may be kept as well.
  llvm::SetVector<Value> read(start->operand_begin(), start->operand_end());
  for (size_t next = 0; next < read.size(); ++next)
    if (Operation *op = read[next].getDefiningOp(); op && getQueue(op) == getQueue(start))
      read.insert(op->operand_begin(), op->operand_end());
  for (Value input : getInputs())
    if (!read.contains(input))
      return emitOpError() << "(done_c1) keeps " << input.getType() << ", which is no operand of its collective";
  return success();
}

} // namespace par
