#include "RegisterRow.h"
#include "ThreadEmitter.h"

using namespace mlir;

namespace par::cuda {

using namespace codegen;

/// Threads after the last columns compute those once more, because they must be at every sync, and store nothing.
void ThreadEmitter::emitColumns() {
  Value thread = threads.thread();
  team = remainder(thread, launch.blockRows);
  member = divide(thread, launch.blockRows);
  int64_t groups = launch.rows / launch.perThread;
  Value group = add(multiply(threads.block(), launch.blockRows), team), active;
  if (groups % launch.blockRows) {
    active = isBelow(group, groups);
    group = least(group, groups - 1);
  }
  for (unsigned column = 0; column < launch.perThread; ++column) {
    bindNeighbour(group, column);
    columns.emplace_back(row.rowIndices, row.rowStep);
  }
  for (const Nest &nest : plan.nests) {
    elements.memo.clear();
    SmallVector<Value> values = nest.isReduction() ? reduceColumns(nest) : forColumns(nest, [&](unsigned) {
      return elements.computeBody(nest.op, row.iteration, {});
    });
    held[nest.value()] = values;
  }
  storeColumns(active);
}

SmallVector<Value> ThreadEmitter::forColumns(const Nest &nest, function_ref<Value(unsigned)> body) {
  SmallVector<Value> values;
  ElementEmitter::Memo outer = elements.memo;
  for (unsigned column = 0; column < columns.size(); ++column) {
    elements.memo = outer;
    bindColumn(nest, column);
    values.push_back(body(column));
  }
  elements.memo = std::move(outer);
  return values;
}

void ThreadEmitter::bindColumn(const Nest &nest, unsigned column) {
  std::tie(row.rowIndices, row.rowStep) = columns[column];
  row.bindLoops(nest);
  for (auto &[value, own] : held)
    elements.registers[value] = own[column];
}

void ThreadEmitter::storeColumns(Value active) {
  if (launch.threadsPerRow > 1)
    sync(); // every read of a tied argument in these columns precedes its stores
  elements.memo.clear();
  Value first = launch.threadsPerRow > 1 ? isBelow(member, 1) : Value();
  emitIf(both(first, active), [&] {
    for (const Nest &nest : plan.nests)
      for (unsigned column = 0; !nest.results.empty() && column < columns.size(); ++column) {
        bindColumn(nest, column);
        row.storeElement(nest, held[nest.value()][column]);
      }
  });
}

/// The value of a reduction in each column, which all threads of the column know afterwards.
SmallVector<Value> ThreadEmitter::reduceColumns(const Nest &nest) {
  std::optional<Combiner> combiner = findCombiner(nest.op);
  int64_t all = 1;
  for (int64_t size : sizesOf(nest, nest.reducedLoops))
    all *= size;
  if (!combiner || all < launch.threadsPerRow)
    return forColumns(nest, [&](unsigned) { return row.reduceToRegister(nest, 0, row.start(nest)); });
  Value identity = arith::ConstantOp::create(builder, elements.loc, combiner->identity);
  SmallVector<Value> parts(columns.size(), identity);
  auto accumulate = [&](ValueRange carried) {
    return forColumns(nest,
                      [&](unsigned column) { return elements.computeBody(nest.op, row.iteration, carried[column]); });
  };
  parts = joinColumns(*combiner, forShare(nest, nest.reducedLoops, 1, parts, accumulate, [] {}));
  return forColumns(nest, [&](unsigned column) { return combiner->combine(builder, row.start(nest), parts[column]); });
}

/// Threads of one column are `blockRows` apart: those of a warp join by exchange. Then each column's parts,
/// one of every warp, are added up by one thread in their order, and read by all.
SmallVector<Value> ThreadEmitter::joinColumns(const Combiner &combiner, SmallVector<Value> parts) {
  for (unsigned mask = warp / 2; mask >= launch.blockRows; mask /= 2)
    for (Value &part : parts)
      part = combiner.combine(builder, part, threads.exchange(part, mask));
  unsigned inWarp = std::max(warp / launch.blockRows, 1u), groups = launch.threadsPerRow / inWarp;
  if (groups <= 1)
    return parts;
  Type type = parts.front().getType();
  int64_t width = launch.blockRows * launch.perThread;
  Value slots = shared(0);
  // A thread's columns are `blockRows` apart there, so that a warp's are in different banks.
  auto place = [&](Value first, int64_t column) { return add(first, constant(column * launch.blockRows)); };
  Value leads = inWarp > 1 ? arith::CmpIOp::create(builder, elements.loc, arith::CmpIPredicate::eq,
                                                   remainder(member, inWarp), constant(0))
                                 .getResult()
                           : Value();
  sync(); // all have read the last reduction's slots
  emitIf(leads, [&] {
    Value first = add(multiply(divide(member, inWarp), width), team);
    for (auto [column, part] : llvm::enumerate(parts))
      elements.store(part, slots, place(first, column));
  });
  sync();
  row.loop(threads.thread(), constant(width), constant(launch.threads()), {}, [&](Value column, ValueRange) {
    Value all = elements.load(slots, type, column);
    for (unsigned group = 1; group < groups; ++group)
      all = combiner.combine(builder, all, elements.load(slots, type, add(column, constant(group * width))));
    elements.store(all, slots, column);
    return SmallVector<Value>();
  });
  sync();
  for (auto [column, part] : llvm::enumerate(parts))
    part = elements.load(slots, type, place(team, column));
  return parts;
}

} // namespace par::cuda
