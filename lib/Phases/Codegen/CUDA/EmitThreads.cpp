// Emits a kernel for a GPU by its launch plan: several rows a thread with wide loads and stores, or several threads a
// row that share loops and reductions. Reductions join in a fixed order, by shuffles in a warp and shared memory across
// warps.
#include "EmitThreads.h"

#include "RegisterRow.h"
#include "ThreadEmitter.h"

using namespace mlir;

namespace par::cuda {

using namespace codegen;

/// Alignment of every operand's address: one access of a thread.
static constexpr int64_t operandAlignment = 16;

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t all = 1;
  for (int64_t size : sizes)
    all *= size;
  return all;
}

Value ThreadEmitter::both(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::AndIOp::create(builder, elements.loc, x, y);
}

void ThreadEmitter::emitIf(Value condition, function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(builder, elements.loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  ElementEmitter::Memo outer = elements.memo;
  body();
  elements.memo = std::move(outer);
}

SmallVector<Value> ThreadEmitter::split(Value number, ArrayRef<int64_t> sizes) {
  SmallVector<Value> index(sizes.size());
  bool outermost = true;
  size_t first = 0;
  while (first < sizes.size() && sizes[first] == 1)
    ++first;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) {
      index[i] = constant(0);
      continue;
    }
    outermost = i == first;
    index[i] = outermost ? number : remainder(number, std::max<int64_t>(sizes[i], 1));
    if (!outermost)
      number = divide(number, std::max<int64_t>(sizes[i], 1));
  }
  return index;
}

/// A thread has `perThread` rows, and computes all before it stores one: then loads and stores become wide.
void ThreadEmitter::emitRows() {
  elements.allocateStack();
  Value number = add(multiply(threads.block(), launch.threads()), threads.thread());
  emitIf(isBelow(number, launch.rows / launch.perThread), [&] {
    SmallVector<std::pair<SmallVector<Value>, RowEmitter::Pending>> rows;
    for (unsigned i = 0; i < launch.perThread; ++i) {
      bindNeighbour(number, i);
      rows.emplace_back(row.rowIndices, row.computeRow());
    }
    for (auto &[indices, pending] : rows) {
      row.rowIndices = indices;
      row.storeRow(pending);
    }
  });
}

void ThreadEmitter::bindNeighbour(Value run, unsigned offset) {
  SmallVector<int64_t> sizes = plan.rowLoops;
  size_t last = sizes.size();
  while (last > 0 && sizes[last - 1] == 1)
    --last;
  if (last == 0 || launch.perThread == 1) {
    bindRow(run);
    return;
  }
  sizes[last - 1] /= launch.perThread;
  row.rowIndices = split(run, sizes);
  Value &along = row.rowIndices[last - 1];
  row.rowStep = {static_cast<unsigned>(last - 1), launch.perThread, along, offset};
  along = multiply(along, launch.perThread);
  if (offset > 0)
    along = add(along, constant(offset));
}

Value ThreadEmitter::shared(int64_t offset) {
  auto space = LLVM::LLVMPointerType::get(builder.getContext(), 3),
       any = LLVM::LLVMPointerType::get(builder.getContext());
  if (!memory) {
    OpBuilder outside(target);
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), launch.sharedBytes);
    memory = LLVM::GlobalOp::create(outside, elements.loc, type, false, LLVM::Linkage::Internal,
                                    (target.getName() + ".shared").str(), Attribute(), /*alignment=*/16,
                                    /*addrSpace=*/3);
    Block *block = new Block();
    memory.getInitializerRegion().push_back(block);
    outside.setInsertionPointToStart(block);
    LLVM::ReturnOp::create(outside, elements.loc, LLVM::UndefOp::create(outside, elements.loc, type).getResult());
  }
  Value base = LLVM::AddrSpaceCastOp::create(
      builder, elements.loc, any, LLVM::AddressOfOp::create(builder, elements.loc, space, memory.getSymName()));
  return LLVM::GEPOp::create(builder, elements.loc, any, builder.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

void ThreadEmitter::placeValues(Value team) {
  int64_t offset = 0;
  auto any = LLVM::LLVMPointerType::get(builder.getContext());
  for (const Nest &nest : plan.nests) {
    if (nest.place != Place::Stack)
      continue;
    Value base = shared(offset);
    if (launch.blockRows > 1)
      base = LLVM::GEPOp::create(builder, elements.loc, any, builder.getI8Type(), base,
                                 ArrayRef<LLVM::GEPArg>{multiply(team, launch.rowBytes)});
    elements.stack[nest.value()] = base;
    offset += llvm::alignTo(plan.bytesPerRow(nest), 16);
  }
}

void ThreadEmitter::sync() {
  if (launch.kind != LaunchPlan::Columns && launch.threadsPerRow <= warp)
    threads.syncWarp();
  else
    threads.syncBlock();
}

/// Teams take rows in turn; the threads of a team take the same turns, so they meet at every sync.
void ThreadEmitter::emitTeams() {
  Value thread = threads.thread();
  member = remainder(thread, launch.threadsPerRow);
  team = divide(thread, launch.threadsPerRow);
  placeValues(team);
  Value block = threads.block();
  if (launch.scratchBytes)
    elements.scratchBegin = multiply(block, launch.scratchBytes);
  Value first = add(multiply(block, launch.blockRows), team);
  auto emitOne = [&](Value number, ValueRange) {
    bindRow(number);
    emitTeamRow();
    sync(); // before the next row's values take the place of this one's
    return SmallVector<Value>();
  };
  row.loop(first, constant(launch.rows), constant(int64_t(launch.grid) * launch.blockRows), {}, emitOne);
}

/// All nests of a row, shared by its threads. All threads have the value of a nest with one element a row; the first
/// thread stores it.
void ThreadEmitter::emitTeamRow() {
  Pending pending;
  for (const Nest &nest : plan.nests) {
    elements.memo.clear();
    row.bindLoops(nest);
    if (!plan.isSingle(nest)) {
      emitNest(nest);
      sync();
      continue;
    }
    Value value = nest.isReduction() ? reduce(nest) : elements.computeBody(nest.op, row.iteration, {});
    elements.registers[nest.value()] = value;
    if (!nest.results.empty())
      pending.push_back({&nest, value});
  }
  storePending(pending, {});
}

void ThreadEmitter::storePending(const Pending &pending, Value active) {
  if (pending.empty())
    return;
  if (launch.threadsPerRow > 1)
    sync(); // every read of a tied argument in this row precedes its stores
  elements.memo.clear();
  emitIf(both(isBelow(member, 1), active), [&] { row.storeRow(pending); });
}

/// As many neighbouring iterations of these loops as a thread does at a time.
int64_t ThreadEmitter::runOf(const Nest &nest, ArrayRef<unsigned> loops) const {
  std::optional<unsigned> last = lastLoop(nest, loops);
  if (!last || launch.kind == LaunchPlan::Columns)
    return 1;
  int64_t run = nest.innermost == *last ? launch.perThread : 4;
  while (run > 1 && (nest.loops[*last] % run || product(sizesOf(nest, loops)) < run * launch.threadsPerRow))
    run /= 2;
  return run;
}

/// The iterations of this thread in `loops`: runs of neighbouring elements, one or several at a time while all threads
/// have that many. `after` is emitted after each.
SmallVector<Value> ThreadEmitter::forShare(const Nest &nest, ArrayRef<unsigned> loops, int64_t run, ValueRange carried,
                                           function_ref<SmallVector<Value>(ValueRange)> body,
                                           function_ref<void()> after) {
  SmallVector<int64_t> sizes = sizesOf(nest, loops);
  std::optional<unsigned> last = lastLoop(nest, loops);
  size_t position = last ? llvm::find(loops, *last) - loops.begin() : 0;
  if (run > 1)
    sizes[position] /= run;
  int64_t all = product(sizes);
  int64_t neighbours = run * std::max<int64_t>(columns.size(), 1);
  int64_t runs = std::max<int64_t>(launch.itemsPerThread / neighbours, 1);
  auto turn = [&](int64_t count, Value number, ValueRange values) {
    SmallVector<Value> next = llvm::to_vector(values);
    ElementEmitter::Memo outer = elements.memo;
    for (int64_t i = 0; i < count * run; ++i) {
      int64_t first = i / run * launch.threadsPerRow;
      SmallVector<Value> index = split(first ? add(number, constant(first)) : number, sizes);
      if (run > 1)
        index[position] = add(multiply(index[position], run), constant(i % run));
      for (auto [loop, at] : llvm::zip(loops, index))
        elements.dims[loop] = at;
      elements.memo = outer;
      next = body(next);
    }
    after();
    elements.memo = std::move(outer);
    return next;
  };
  SmallVector<Value> values = llvm::to_vector(carried);
  int64_t stride = runs * launch.threadsPerRow, whole = all / stride * stride;
  if (whole > 0)
    values = row.loop(constant(0), constant(whole), constant(stride), values,
                      [&](Value first, ValueRange from) { return turn(runs, add(first, member), from); });
  if (whole < all)
    values = row.loop(add(member, constant(whole)), constant(all), constant(launch.threadsPerRow), values,
                      [&](Value number, ValueRange from) { return turn(1, number, from); });
  return values;
}

SmallVector<int64_t> ThreadEmitter::sizesOf(const Nest &nest, ArrayRef<unsigned> loops) {
  return llvm::map_to_vector(loops, [&](unsigned loop) { return nest.loops[loop]; });
}

/// All threads of a row read all indices, in their order; each applies the updates of its own elements.
void ThreadEmitter::emitUpdates(const Nest &nest) {
  SmallVector<unsigned> free = nest.freeLoops();
  auto begin = [&](ValueRange) {
    row.storeElement(nest, row.start(nest));
    return SmallVector<Value>();
  };
  forShare(nest, free, 1, {}, begin, [] {});
  sync();
  elements.memo.clear();
  row.emitUpdates(nest, [&](Value index) -> Value {
    return arith::CmpIOp::create(builder, elements.loc, arith::CmpIPredicate::eq,
                                 remainder(index, launch.threadsPerRow), member);
  });
}

/// A nest with several elements a row: each thread computes some; long reductions are shared one after
/// another.
void ThreadEmitter::emitNest(const Nest &nest) {
  SmallVector<unsigned> free = nest.freeLoops();
  if (nest.addressed)
    return emitUpdates(nest);
  if (nest.running)
    return emitIf(isBelow(member, 1), [&] { row.emitRunning(nest); });
  SmallVector<int64_t> sizes = sizesOf(nest, free);
  int64_t all = product(sizes);
  bool isLong = product(sizesOf(nest, nest.reducedLoops)) >= warp && 2 * all < launch.threadsPerRow;
  if (nest.isReduction() && isLong && findCombiner(nest.op)) {
    row.loop(constant(0), constant(all), constant(1), {}, [&](Value number, ValueRange) {
      for (auto [loop, index] : llvm::zip(free, split(number, sizes)))
        elements.dims[loop] = index;
      elements.memo.clear();
      Value value = reduce(nest);
      emitIf(isBelow(member, 1), [&] { row.storeElement(nest, value); });
      return SmallVector<Value>();
    });
    return;
  }
  SmallVector<std::pair<SmallVector<Value>, Value>> run;
  auto compute = [&](ValueRange) {
    Value value = nest.isReduction() ? row.reduceToRegister(nest, 0, row.start(nest))
                                     : elements.computeBody(nest.op, row.iteration, {});
    run.emplace_back(llvm::map_to_vector(free, [&](unsigned loop) { return elements.dims[loop]; }), value);
    return SmallVector<Value>();
  };
  auto store = [&] {
    for (auto &[index, value] : run) {
      for (auto [loop, at] : llvm::zip(free, index))
        elements.dims[loop] = at;
      row.storeElement(nest, value);
    }
    run.clear();
  };
  forShare(nest, free, nest.isReduction() ? 1 : runOf(nest, free), {}, compute, store);
}

/// The value of a reduction, which all threads of the row know afterwards. Parts are joined in a fixed order.
Value ThreadEmitter::reduce(const Nest &nest) {
  SmallVector<unsigned> loops = nest.reducedLoops;
  if (auto inner = llvm::find(loops, nest.innermost); inner != loops.end())
    std::rotate(inner, inner + 1, loops.end());
  std::optional<Combiner> combiner = findCombiner(nest.op);
  if (!combiner || product(sizesOf(nest, loops)) < launch.threadsPerRow / 4)
    return row.reduceToRegister(nest, 0, row.start(nest));
  Value part = arith::ConstantOp::create(builder, elements.loc, combiner->identity);
  auto body = [&](ValueRange carried) {
    return SmallVector<Value>{elements.computeBody(nest.op, row.iteration, carried[0])};
  };
  part = forShare(nest, loops, runOf(nest, loops), part, body, [] {})[0];
  if (launch.threadsPerRow > warp)
    sync(); // all have read the last reduction's slots
  return combiner->combine(builder, row.start(nest), join(*combiner, part, launch.blockRows * launch.rowBytes));
}

/// Within a warp by exchange: all of its threads add the same pairs. Then every thread adds up the warps.
Value ThreadEmitter::join(const Combiner &combiner, Value part, int64_t offset) {
  for (unsigned mask = std::min(warp, launch.threadsPerRow) / 2; mask > 0; mask /= 2)
    part = combiner.combine(builder, part, threads.exchange(part, mask));
  if (launch.threadsPerRow <= warp)
    return part;
  Value slots = shared(offset);
  emitIf(arith::CmpIOp::create(builder, elements.loc, arith::CmpIPredicate::eq, remainder(member, warp), constant(0)),
         [&] { elements.store(part, slots, divide(member, warp)); });
  sync();
  Value all = elements.load(slots, part.getType(), constant(0));
  for (unsigned i = 1; i < launch.threadsPerRow / warp; ++i)
    all = combiner.combine(builder, all, elements.load(slots, part.getType(), constant(i)));
  return launch.joinsAtOnce ? threads.exchange(all, 0) : all; // an exchange with itself stays where it is
}

void ThreadEmitter::emit() {
  builder.setInsertionPointToStart(target.addEntryBlock(builder));
  elements.bindImmediates();
  elements.withoutBranches = true;
  switch (launch.rows ? launch.kind : LaunchPlan::Rows) {
  case LaunchPlan::Rows:
    emitRows();
    break;
  case LaunchPlan::InRegisters:
    emitHeld();
    break;
  case LaunchPlan::Cooperative:
    emitTeams();
    break;
  case LaunchPlan::Columns:
    emitColumns();
    break;
  }
  LLVM::ReturnOp::create(builder, elements.loc, ValueRange());
}

void emitThreads(func::FuncOp function, const KernelPlan &plan, const LaunchPlan &launch, const KernelBuffers &buffers,
                 StringRef symbol) {
  OpBuilder builder(function);
  unsigned immediates = llvm::count_if(function.getArgumentTypes(), [](Type type) { return type.isInteger(64); });
  SmallVector<Type> types(buffers.count, LLVM::LLVMPointerType::get(builder.getContext()));
  types.append(immediates, builder.getI64Type());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types);
  auto target = LLVM::LLVMFuncOp::create(builder, function.getLoc(), symbol, type);
  target.setCConv(LLVM::CConv::PTX_Kernel);
  for (unsigned operand = 0; operand < buffers.count; ++operand) {
    target.setArgAttr(operand, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    target.setArgAttr(operand, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(operandAlignment));
  }
  SmallVector<Attribute> limits{builder.getStrArrayAttr({"nvvm.reqntid", std::to_string(launch.threads())})};
  if (launch.oneBlock)
    limits.push_back(builder.getStrArrayAttr({"nvvm.minctasm", "1"}));
  target.setPassthroughAttr(builder.getArrayAttr(limits));
  ThreadEmitter(function, plan, launch, buffers, target).emit();
}

} // namespace par::cuda
