#include "RegisterRow.h"
#include "ThreadEmitter.h"

using namespace mlir;

namespace par::cuda {

using namespace codegen;

/// Each cooperative group of threads has one row. Threads after the last row compute it once more, because exchanges
/// need all threads of a warp, and so do threads after its last chunk; they store nothing. There is no branch around
/// the compute, so all loads can be under way at the same time.
void ThreadEmitter::emitHeld() {
  Value thread = threads.thread();
  member = remainder(thread, launch.threadsPerRow);
  team = divide(thread, launch.threadsPerRow);
  Value number = add(multiply(threads.block(), launch.blockRows), team), active;
  if (launch.rows % launch.blockRows) {
    active = isBelow(number, launch.rows);
    number = least(number, launch.rows - 1);
  }
  bindRow(number);
  int64_t all = findRegisterRow(plan)->elements / launch.perThread;
  for (int64_t turn = 0; turn < launch.chunksPerThread; ++turn) {
    Value chunk = add(member, constant(turn * launch.threadsPerRow));
    bool whole = (turn + 1) * launch.threadsPerRow <= all;
    chunks.push_back({whole ? chunk : least(chunk, all - 1), whole ? Value() : isBelow(chunk, all)});
  }
  int64_t slots = 0;
  Pending pending;
  for (const Nest &nest : plan.nests) {
    elements.memo.clear();
    row.bindLoops(nest);
    if (!lastLoop(nest, sharedLoops(nest)) || nest.isReduction()) {
      Value value = !nest.isReduction()                 ? elements.computeBody(nest.op, row.iteration, {})
                    : lastLoop(nest, nest.reducedLoops) ? reduceHeld(nest, slots)
                                                        : row.reduceToRegister(nest, 0, row.start(nest));
      slots += nest.isReduction() ? slotBytes : 0;
      elements.registers[nest.value()] = value;
      if (!nest.results.empty())
        pending.push_back({&nest, value});
      continue;
    }
    if (overwritesArgument(nest) && launch.threadsPerRow > 1)
      sync(); // earlier nests have read the argument, whosever its elements are
    computeHeld(nest, active);
  }
  storePending(pending, active);
}

bool ThreadEmitter::overwritesArgument(const Nest &nest) const {
  return llvm::any_of(nest.results,
                      [&](unsigned result) { return llvm::is_contained(buffers.arguments, buffers.results[result]); });
}

void ThreadEmitter::forChunk(const Nest &nest, ArrayRef<unsigned> loops, unsigned chunk, function_ref<void()> body) {
  SmallVector<int64_t> sizes = sizesOf(nest, loops);
  size_t last = llvm::find(loops, *lastLoop(nest, loops)) - loops.begin();
  sizes[last] /= launch.perThread;
  ElementEmitter::Memo outer = elements.memo;
  SmallVector<Value> index = split(chunks[chunk].number, sizes);
  for (auto [loop, at] : llvm::zip(loops, index))
    elements.dims[loop] = at;
  Value first = multiply(index[last], launch.perThread);
  for (unsigned i = 0; i < launch.perThread; ++i) {
    elements.dims[loops[last]] = i ? add(first, constant(i)) : first;
    elements.step = {loops[last], launch.perThread, index[last], i};
    elements.memo = outer;
    for (auto &[value, own] : held)
      elements.registers[value] = own[chunk * launch.perThread + i];
    body();
  }
  elements.step.reset();
  elements.memo = std::move(outer);
}

/// Each chunk has its own sum, so chunks need not wait for each other.
Value ThreadEmitter::reduceHeld(const Nest &nest, int64_t slots) {
  std::optional<Combiner> combiner = findCombiner(nest.op);
  Value all;
  for (unsigned chunk = 0; chunk < chunks.size(); ++chunk) {
    Value identity = arith::ConstantOp::create(builder, elements.loc, combiner->identity), part = identity;
    forChunk(nest, nest.reducedLoops, chunk, [&] { part = elements.computeBody(nest.op, row.iteration, part); });
    if (Value valid = chunks[chunk].valid)
      part = arith::SelectOp::create(builder, elements.loc, valid, part, identity);
    all = all ? combiner->combine(builder, all, part) : part;
  }
  return combiner->combine(builder, row.start(nest), join(*combiner, all, slots));
}

/// Computes all elements before it stores any: loads that may alias a store do not wait for it.
void ThreadEmitter::computeHeld(const Nest &nest, Value active) {
  SmallVector<unsigned> loops = nest.freeLoops();
  SmallVector<Value> values;
  for (unsigned chunk = 0; chunk < chunks.size(); ++chunk)
    forChunk(nest, loops, chunk, [&] { values.push_back(elements.computeBody(nest.op, row.iteration, {})); });
  ArrayRef<Value> left = values;
  for (unsigned chunk = 0; !nest.results.empty() && chunk < chunks.size(); ++chunk)
    emitIf(both(chunks[chunk].valid, active), [&] {
      forChunk(nest, loops, chunk, [&] {
        row.storeElement(nest, left.front());
        left = left.drop_front();
      });
    });
  held[nest.value()] = std::move(values);
}

} // namespace par::cuda
