// Ranks of a line's elements in sorted order (argsort's inverse), in no more memory than the result: indices are put in
// a heap (Williams 1964), removed from the last to the first, and the permutation is inverted along its cycles. It
// takes n log n comparisons by the nest's body. The order is total, so the result is that of comparing each pair.
#include "RowEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace par::codegen {
namespace {

/// One line of a nest that sorts.
class LineSorter {
public:
  LineSorter(RowEmitter &row, const Nest &nest)
      : row(row), nest(nest), elements(row.elements), builder(elements.builder), loc(elements.loc),
        size(nest.loops[nest.sorting->loop]), known(elements.memo) {}

  void emit() {
    Value zero = constant(0), one = constant(1);
    each(zero, constant(size), [&](Value i) { put(i, i); });
    each(zero, constant(size / 2), [&](Value i) { sink(subtract(constant(size / 2 - 1), i), constant(size)); });
    each(one, constant(size), [&](Value i) {
      Value last = subtract(constant(size), i), first = get(zero);
      put(zero, get(last));
      put(last, first);
      sink(zero, last);
    });
    each(zero, constant(size), [&](Value i) { turnCycle(i); });
    each(zero, constant(size), [&](Value i) { put(i, invert(get(i))); });
  }

private:
  Value constant(int64_t value) { return elements.constant(value); }
  Value subtract(Value x, Value y) { return arith::SubIOp::create(builder, loc, x, y); }
  Value add(Value x, Value y) { return arith::AddIOp::create(builder, loc, x, y); }
  Value isLess(Value x, Value y) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, x, y); }
  /// Marks a place as done: negative.
  Value invert(Value x) { return arith::XOrIOp::create(builder, loc, x, constant(-1)); }

  void each(Value from, Value to, function_ref<void(Value)> body) {
    row.loop(from, to, constant(1), {}, [&](Value i, ValueRange) {
      body(i);
      return SmallVector<Value>();
    });
  }

  std::pair<Value, Value> place(Value i) {
    elements.memo = known;
    elements.dims[nest.sorting->loop] = i;
    return row.resultElement(nest);
  }
  Value get(Value i) {
    auto [base, address] = place(i);
    return elements.load(base, builder.getI64Type(), address);
  }
  void put(Value i, Value value) {
    auto [base, address] = place(i);
    elements.store(value, base, address);
  }

  /// Whether element `a` of the line comes before element `b`.
  Value isBefore(Value a, Value b) {
    elements.memo = known;
    elements.dims[nest.sorting->loop] = b;
    elements.dims[nest.sorting->reduced] = a;
    Value counted = elements.computeBody(nest.op, row.iteration, constant(0));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, counted, constant(0));
  }

  /// `then` or `otherwise`, of one type, where the condition says.
  Value choose(Value condition, Type type, function_ref<Value()> then, function_ref<Value()> otherwise) {
    auto branch = scf::IfOp::create(builder, loc, type, condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, then());
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, otherwise());
    return branch.getResult(0);
  }

  /// Opens a loop that runs while `next` is true, with its values.
  void goOn(ValueRange start, function_ref<std::pair<Value, SmallVector<Value>>(ValueRange)> next,
            function_ref<SmallVector<Value>(ValueRange)> body, function_ref<void(ValueRange)> then) {
    auto loop = scf::WhileOp::create(builder, loc, start.getTypes(), start);
    {
      OpBuilder::InsertionGuard guard(builder);
      SmallVector<Location> locs(start.size(), loc);
      builder.createBlock(&loop.getBefore(), {}, start.getTypes(), locs);
      auto [condition, given] = next(loop.getBeforeArguments());
      scf::ConditionOp::create(builder, loc, condition, given);
      builder.createBlock(&loop.getAfter(), {}, start.getTypes(), locs);
      scf::YieldOp::create(builder, loc, body(loop.getAfterArguments()));
    }
    then(loop.getResults());
  }

  /// Sinks the element at `root` among the first `end` of the heap: the later one of each pair below rises while it is
  /// later than that element.
  void sink(Value root, Value end) {
    Value sunk = get(root);
    // Carried: the hole, and the place below it that is to rise.
    auto below = [&](ValueRange at) {
      Value left = add(add(at[0], at[0]), constant(1)), right = add(left, constant(1));
      Value later = choose(
          isLess(right, end), builder.getI64Type(),
          [&] {
            Value turned = isBefore(get(left), get(right));
            return arith::SelectOp::create(builder, loc, turned, right, left).getResult();
          },
          [&] { return left; });
      Value rises = choose(
          isLess(left, end), builder.getI1Type(), [&] { return isBefore(sunk, get(later)); },
          [&] { return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false)).getResult(); });
      return std::pair(rises, SmallVector<Value>{at[0], later});
    };
    auto rise = [&](ValueRange at) {
      put(at[0], get(at[1]));
      return SmallVector<Value>{at[1], at[1]};
    };
    goOn({root, root}, below, rise, [&](ValueRange at) { put(at[0], sunk); });
  }

  /// From "which element is at i" to "where is element i", along one cycle. A place that is done holds the inverse of
  /// its value.
  void turnCycle(Value first) {
    Value next = get(first);
    auto branch = scf::IfOp::create(builder, loc, isLess(constant(-1), next), /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    auto others = [&](ValueRange at) {
      Value open = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, at[1], first);
      return std::pair(open, SmallVector<Value>(at));
    };
    auto turn = [&](ValueRange at) {
      Value behind = get(at[1]);
      put(at[1], invert(at[0]));
      return SmallVector<Value>{at[1], behind};
    };
    goOn({first, next}, others, turn, [&](ValueRange at) { put(first, invert(at[0])); });
  }

  RowEmitter &row;
  const Nest &nest;
  ElementEmitter &elements;
  OpBuilder &builder;
  Location loc;
  int64_t size;
  /// Values known outside of the line.
  ElementEmitter::Memo known;
};

} // namespace

void RowEmitter::emitSorting(const Nest &nest) {
  SmallVector<unsigned> others;
  for (unsigned loop : nest.freeLoops())
    if (loop != nest.sorting->loop)
      others.push_back(loop);
  forEach(nest, others, 0, [&] {
    ElementEmitter::Memo outer = elements.memo;
    LineSorter(*this, nest).emit();
    elements.memo = std::move(outer);
  });
}

} // namespace par::codegen
