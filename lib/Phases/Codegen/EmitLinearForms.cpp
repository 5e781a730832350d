// The nests of LinearForms.h, in the loops of one thread.
#include "RowEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace par::codegen {

void RowEmitter::emitUpdates(const Nest &nest, function_ref<Value(Value)> isOwn) {
  unsigned whole = nest.addressed->loop;
  SmallVector<unsigned> order, inner;
  for (unsigned loop : nest.freeLoops())
    if (loop != whole)
      (loop < whole ? order : inner).push_back(loop);
  llvm::append_range(order, nest.reducedLoops);
  size_t named = order.size();
  llvm::append_range(order, inner);
  // The element is known where all loops are open that its index depends on.
  linalg::GenericOp op = nest.op;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInputOperand(nest.addressed->index));
  for (size_t number = named; number < order.size(); ++number)
    if (map.isFunctionOfDim(order[number]))
      named = number + 1;
  emitUpdates(nest, order, named, 0, isOwn);
}

void RowEmitter::emitUpdates(const Nest &nest, ArrayRef<unsigned> order, size_t named, size_t number,
                             function_ref<Value(Value)> isOwn) {
  OpBuilder &builder = elements.builder;
  auto goOn = [&] {
    if (number == order.size())
      return accumulateElement(nest);
    open(nest, order[number], {}, [&](ValueRange) {
      emitUpdates(nest, order, named, number + 1, isOwn);
      return SmallVector<Value>();
    });
  };
  if (number != named)
    return goOn();
  linalg::GenericOp op = nest.op;
  OpOperand *indices = op.getDpsInputOperand(nest.addressed->index);
  Value index = elements.readElement(indices->get(), applyMap(op.getMatchingIndexingMap(indices), iteration));
  if (!index.getType().isInteger(64))
    index = arith::ExtSIOp::create(builder, elements.loc, builder.getI64Type(), index);
  Value here = arith::CmpIOp::create(builder, elements.loc, arith::CmpIPredicate::ult, index,
                                     elements.constant(nest.loops[nest.addressed->loop]));
  if (isOwn)
    here = arith::AndIOp::create(builder, elements.loc, here, isOwn(index));
  auto branch = scf::IfOp::create(builder, elements.loc, here, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  ElementEmitter::Memo outer = elements.memo;
  elements.dims[nest.addressed->loop] = index;
  goOn();
  elements.memo = std::move(outer);
}

/// Loops before the running one, that one, loops after it. The first element begins with the reduction's identity.
void RowEmitter::emitRunning(const Nest &nest) {
  OpBuilder &builder = elements.builder;
  const Running &running = *nest.running;
  int64_t size = nest.loops[running.loop];
  SmallVector<unsigned> outer, inner;
  for (unsigned loop : nest.freeLoops())
    if (loop != running.loop)
      (loop < running.loop ? outer : inner).push_back(loop);
  auto subtract = [&](Value x, Value y) {
    return arith::SubIOp::create(builder, elements.loc, x, y, arith::IntegerOverflowFlags::nsw).getResult();
  };
  // Place i as the loop goes, from the end if it is reversed.
  auto place = [&](Value i) { return running.reverse ? subtract(elements.constant(size - 1), i) : i; };
  auto first = [&] {
    Value here = place(elements.constant(0));
    elements.dims[running.loop] = elements.dims[running.reduced] = here;
    storeElement(nest, running.exclusive ? start(nest) : elements.computeBody(nest.op, iteration, start(nest)));
  };
  auto next = [&](Value i) {
    Value here = place(i), neighbour = place(subtract(i, elements.constant(1)));
    elements.dims[running.loop] = neighbour;
    auto [base, address] = resultElement(nest);
    Value before = elements.load(base, getElementTypeOrSelf(nest.value().getType()), address);
    elements.dims[running.loop] = here;
    elements.dims[running.reduced] = running.exclusive ? neighbour : here;
    storeElement(nest, elements.computeBody(nest.op, iteration, before));
  };
  forEach(nest, outer, 0, [&] {
    ElementEmitter::Memo known = elements.memo;
    forEach(nest, inner, 0, first);
    loop(elements.constant(1), elements.constant(size), elements.constant(1), {}, [&](Value i, ValueRange) {
      elements.memo = known;
      forEach(nest, inner, 0, [&] { next(i); });
      return SmallVector<Value>();
    });
    elements.memo = std::move(known);
  });
}

void RowEmitter::forEach(const Nest &nest, ArrayRef<unsigned> loops, size_t number, function_ref<void()> body) {
  if (number == loops.size())
    return body();
  open(nest, loops[number], {}, [&](ValueRange) {
    forEach(nest, loops, number + 1, body);
    return SmallVector<Value>();
  });
}

} // namespace par::codegen
