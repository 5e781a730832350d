#include "KernelPlan.h"

using namespace mlir;

namespace par::codegen {

/// Address that `nest` writes in an iteration.
static AffineExpr writtenAddress(const Nest &nest) {
  MLIRContext *context = nest.op->getContext();
  Index index;
  for (unsigned loop : nest.resultLoops)
    index.push_back(getAffineDimExpr(loop, context));
  AffineExpr address = linearize(index, shapeOf(nest.value()), context);
  return simplifyAddress(address);
}

/// True if `read`, by `reader`, is over before `writer` stores to the same bytes: it comes earlier in the row
/// and keeps to the row, or it reads the very element that is written.
static bool precedes(const KernelPlan &plan, const Nest &reader, const Nest &writer, const Read &read) {
  MLIRContext *context = reader.op->getContext();
  ArrayRef<int64_t> shape = shapeOf(read.source), written = shapeOf(writer.value());
  if (&reader == &writer && !reader.isReduction())
    return read.address == writtenAddress(writer);
  bool single = plan.bytesPerRow(writer) == getElementBytes(getElementTypeOrSelf(writer.value().getType()));
  if (&reader >= &writer && !single)
    return false;
  for (size_t row = 0; row < plan.rows.size(); ++row) {
    unsigned dim = writer.rowDims[row];
    if (shape != written)
      return false;
    if (shape[dim] != 1 && read.index[dim] != getAffineDimExpr(reader.rowLoop(row), context))
      return false;
  }
  return true;
}

LogicalResult checkTied(func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers) {
  for (const Nest &writer : plan.nests)
    for (unsigned result : writer.results)
      for (const Nest &reader : plan.nests)
        for (const Read &read : reader.reads) {
          auto argument = dyn_cast<BlockArgument>(read.source);
          if (!argument || buffers.arguments[argument.getArgNumber()] != buffers.results[result])
            continue;
          if (!precedes(plan, reader, writer, read))
            return emitError(function.getLoc())
                   << "kernel @" << function.getName() << ": result " << result << " cannot take over argument "
                   << argument.getArgNumber() << ", which is read after parts of the result are stored";
        }
  return success();
}

} // namespace par::codegen
