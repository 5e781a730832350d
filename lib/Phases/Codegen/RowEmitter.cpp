// Emits one row of a kernel: initializes accumulators, accumulates reductions in registers or in the row's memory, and
// stores results. A long f32 sum is split into parts that are added separately, so that small terms are not lost.
#include "RowEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace par::codegen {

/// Elements that one f32 may add up one after another, and how many of a longer sum a part has.
static constexpr int64_t longSum = 4096, partOfSum = 512;

SmallVector<Value> RowEmitter::loop(Value from, Value to, Value step, ValueRange carried,
                                    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(elements.builder, elements.loc, from, to, step, carried,
                                 [&](OpBuilder &nested, Location, Value iv, ValueRange args) {
                                   OpBuilder::InsertPoint outside = elements.builder.saveInsertionPoint();
                                   elements.builder.restoreInsertionPoint(nested.saveInsertionPoint());
                                   scf::YieldOp::create(elements.builder, elements.loc, body(iv, args));
                                   elements.builder.restoreInsertionPoint(outside);
                                 });
  return llvm::to_vector(ValueRange(loop.getResults()));
}

RowEmitter::Pending RowEmitter::computeRow() {
  ElementEmitter::Memo rowMemo;
  Pending pending;
  for (const Nest &nest : plan.nests) {
    bool single = plan.isSingle(nest);
    bool straight = single && !nest.isReduction();
    // Index values of one nest are valid in the next if the same loops are rows in both.
    bool shares = straight && hasRowsInOrder(nest);
    elements.memo = shares ? std::move(rowMemo) : ElementEmitter::Memo();
    bindLoops(nest);
    if (single) {
      Value value = straight ? elements.computeBody(nest.op, iteration, {}) : reduceToRegister(nest, 0, start(nest));
      elements.registers[nest.value()] = value;
      if (!nest.results.empty())
        pending.push_back({&nest, value});
    } else if (nest.addressed) {
      emitStart(nest, 0);
      emitUpdates(nest);
    } else if (nest.running) {
      emitRunning(nest);
    } else if (nest.sorting) {
      emitSorting(nest);
    } else if (nest.isReduction() && llvm::is_contained(nest.resultLoops, nest.innermost)) {
      emitStart(nest, 0);
      emitAccumulation(nest, loopOrder(nest), 0);
    } else {
      emitElements(nest, 0);
    }
    if (shares)
      rowMemo = std::move(elements.memo);
  }
  return pending;
}

void RowEmitter::emitRowsTogether(ArrayRef<Value> lastIndices) {
  const Nest &nest = plan.nests.front();
  SmallVector<unsigned> order = loopOrder(nest);
  auto forEachRow = [&](function_ref<void()> act) {
    for (Value index : lastIndices) {
      elements.memo = ElementEmitter::Memo();
      elements.dims[nest.rowLoop(plan.rows.size() - 1)] = index;
      act();
    }
  };
  rowIndices.push_back(lastIndices.front());
  elements.memo = ElementEmitter::Memo();
  bindLoops(nest);
  rowIndices.pop_back();
  forEachRow([&] { emitStart(nest, 0); });
  forEach(nest, order, 0, [&] { forEachRow([&] { accumulateElement(nest); }); });
}

void RowEmitter::storeRow(const Pending &pending) {
  for (auto &[nest, value] : pending) {
    bindLoops(*nest);
    storeElement(*nest, value);
  }
}

bool RowEmitter::hasRowsInOrder(const Nest &nest) {
  for (size_t row = 0; row < plan.rows.size(); ++row)
    if (nest.rowLoop(row) != row)
      return false;
  return true;
}

void RowEmitter::bindLoops(const Nest &nest) {
  iteration.clear();
  elements.setLoops(nest.loops);
  for (auto [position, size] : llvm::enumerate(nest.loops))
    iteration.push_back(size == 1 ? elements.builder.getAffineConstantExpr(0)
                                  : elements.builder.getAffineDimExpr(position));
  for (size_t dim = 0; dim < plan.rows.size(); ++dim)
    elements.dims[nest.rowLoop(dim)] = rowIndices[dim];
  elements.step = rowStep;
  if (rowStep)
    elements.step->dim = nest.rowLoop(rowStep->dim);
}

SmallVector<Value> RowEmitter::open(const Nest &nest, unsigned position, ValueRange carried,
                                    function_ref<SmallVector<Value>(ValueRange)> body) {
  int64_t size = nest.loops[position];
  if (size == 1)
    return body(carried);
  return loop(elements.constant(0), elements.constant(size), elements.constant(1), carried,
              [&](Value iv, ValueRange args) {
                elements.dims[position] = iv;
                ElementEmitter::Memo outer = elements.memo;
                SmallVector<Value> next = body(args);
                elements.memo = std::move(outer);
                return next;
              });
}

Value RowEmitter::start(const Nest &nest) {
  linalg::GenericOp op = nest.op;
  OpOperand *init = op.getDpsInitOperand(0);
  return elements.readElement(init->get(), applyMap(op.getMatchingIndexingMap(init), iteration));
}

/// The sum of a nest if one f32 would take so many elements one after another that small ones were lost in it.
static std::optional<Combiner> findLongSum(const Nest &nest) {
  int64_t count = 1;
  for (unsigned position : nest.reducedLoops)
    count *= nest.loops[position];
  std::optional<Combiner> combiner = count > longSum ? findCombiner(nest.op) : std::nullopt;
  bool adds = combiner && isa<arith::AddFOp>(combiner->op) && !combiner->op->getResult(0).getType().isF64();
  return adds ? combiner : std::nullopt;
}

Value RowEmitter::sumInParts(const Nest &nest, const Combiner &sum, size_t number) {
  unsigned position = nest.reducedLoops[number];
  int64_t size = nest.loops[position];
  bool last = number + 1 == nest.reducedLoops.size();
  Value zero = arith::ConstantOp::create(elements.builder, elements.loc, sum.identity);
  auto add = [&](Value before) {
    return last ? elements.computeBody(nest.op, iteration, before)
                : sum.combine(elements.builder, before, sumInParts(nest, sum, number + 1));
  };
  if (size == 1)
    return add(zero);
  auto part = [&](Value from, Value to) {
    return loop(from, to, elements.constant(1), zero, [&](Value iv, ValueRange carried) {
      elements.dims[position] = iv;
      ElementEmitter::Memo outer = elements.memo;
      Value next = add(carried[0]);
      elements.memo = std::move(outer);
      return SmallVector<Value>{next};
    })[0];
  };
  Value end = elements.constant(size), step = elements.constant(partOfSum);
  if (size <= 2 * partOfSum)
    return part(elements.constant(0), end);
  return loop(elements.constant(0), end, step, zero, [&](Value begin, ValueRange carried) {
    Value next = arith::AddIOp::create(elements.builder, elements.loc, begin, step);
    Value to = arith::MinSIOp::create(elements.builder, elements.loc, next, end);
    return SmallVector<Value>{sum.combine(elements.builder, carried[0], part(begin, to))};
  })[0];
}

Value RowEmitter::reduceToRegister(const Nest &nest, size_t number, Value value) {
  if (number == 0)
    if (std::optional<Combiner> sum = findLongSum(nest))
      return sum->combine(elements.builder, value, sumInParts(nest, *sum, 0));
  if (number == nest.reducedLoops.size())
    return elements.computeBody(nest.op, iteration, value);
  return open(nest, nest.reducedLoops[number], value, [&](ValueRange carried) {
    return SmallVector<Value>{reduceToRegister(nest, number + 1, carried[0])};
  })[0];
}

void RowEmitter::openParts(Value from, Value to, bool whole, function_ref<void(Value, Value)> body) {
  Value side = elements.constant(KernelPlan::square);
  loop(from, to, side, {}, [&](Value begin, ValueRange) {
    Value end = arith::AddIOp::create(elements.builder, elements.loc, begin, side);
    body(begin, whole ? end : arith::MinSIOp::create(elements.builder, elements.loc, end, to).getResult());
    return SmallVector<Value>();
  });
}

void RowEmitter::emitElements(const Nest &nest, size_t number) {
  SmallVector<unsigned> free = nest.freeLoops();
  if (number == free.size()) {
    storeElement(nest, nest.isReduction() ? reduceToRegister(nest, 0, start(nest))
                                          : elements.computeBody(nest.op, iteration, {}));
    return;
  }
  open(nest, free[number], {}, [&](ValueRange) {
    emitElements(nest, number + 1);
    return SmallVector<Value>();
  });
}

void RowEmitter::emitStart(const Nest &nest, size_t number) {
  SmallVector<unsigned> free = nest.freeLoops();
  if (number == free.size())
    return storeElement(nest, start(nest));
  open(nest, free[number], {}, [&](ValueRange) {
    emitStart(nest, number + 1);
    return SmallVector<Value>();
  });
}

SmallVector<unsigned> RowEmitter::loopOrder(const Nest &nest) {
  SmallVector<unsigned> order;
  for (unsigned position : nest.freeLoops())
    if (position < nest.innermost)
      order.push_back(position);
  llvm::append_range(order, nest.reducedLoops);
  for (unsigned position : nest.freeLoops())
    if (position > nest.innermost)
      order.push_back(position);
  order.push_back(nest.innermost);
  return order;
}

void RowEmitter::accumulateElement(const Nest &nest) {
  auto [base, address] = resultElement(nest);
  Value before = elements.load(base, getElementTypeOrSelf(nest.value().getType()), address);
  elements.store(elements.computeBody(nest.op, iteration, before), base, address);
}

void RowEmitter::emitAccumulation(const Nest &nest, ArrayRef<unsigned> order, size_t number) {
  if (number == order.size())
    return accumulateElement(nest);
  open(nest, order[number], {}, [&](ValueRange) {
    emitAccumulation(nest, order, number + 1);
    return SmallVector<Value>();
  });
}

std::pair<Value, Value> RowEmitter::resultElement(const Nest &nest) {
  Index index;
  for (unsigned position : nest.resultLoops)
    index.push_back(iteration[position]);
  if (nest.place != Place::Result)
    return {elements.baseOf(nest), elements.expand(simplifyAddress(nest.addressInRow(index)))};
  AffineExpr address = linearize(index, shapeOf(nest.value()), elements.builder.getContext());
  return {elements.pointer(buffers.results[nest.results.front()]), elements.expand(simplifyAddress(address))};
}

void RowEmitter::storeElement(const Nest &nest, Value value) {
  auto [base, address] = resultElement(nest);
  elements.store(value, base, address);
}

} // namespace par::codegen
