#include "EmitThreads.h"

#include "../RowEmitter.h"
#include "Combiner.h"
#include "Threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace par::cuda {

using namespace codegen;

static constexpr unsigned warp = 32;
/// What every operand's address is a multiple of: one access of a thread.
static constexpr int64_t operandAlignment = 16;

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t all = 1;
  for (int64_t size : sizes)
    all *= size;
  return all;
}

namespace {

/// Emits a kernel into a function whose arguments are the operands' pointers and the immediates.
class ThreadEmitter {
public:
  ThreadEmitter(func::FuncOp function, const KernelPlan &plan, const LaunchPlan &launch,
                const KernelBuffers &buffers, LLVM::LLVMFuncOp target)
      : plan(plan), launch(launch), target(target), row(function, plan, buffers, target),
        elements(row.elements), builder(elements.builder), threads{builder, elements.loc} {}

  void emit();

private:
  Value constant(int64_t value) { return elements.constant(value); }
  Value add(Value x, Value y) {
    return arith::AddIOp::create(builder, elements.loc, x, y, arith::IntegerOverflowFlags::nsw);
  }
  Value multiply(Value x, int64_t by) {
    return arith::MulIOp::create(builder, elements.loc, x, constant(by), arith::IntegerOverflowFlags::nsw);
  }
  Value divide(Value x, int64_t by) { return arith::DivUIOp::create(builder, elements.loc, x, constant(by)); }
  Value remainder(Value x, int64_t by) {
    return arith::RemUIOp::create(builder, elements.loc, x, constant(by));
  }
  Value isBelow(Value x, int64_t limit) {
    return arith::CmpIOp::create(builder, elements.loc, arith::CmpIPredicate::ult, x, constant(limit));
  }
  void emitIf(Value condition, function_ref<void()> body);
  SmallVector<Value> split(Value number, ArrayRef<int64_t> sizes);

  void emitRows();
  void emitTeams();
  void emitColumns();
  void bindRow(Value number) { row.rowIndices = split(number, plan.rowLoops); }
  void emitTeamRow(Value active);
  void emitNest(const Nest &nest);
  SmallVector<Value> forShare(const Nest &nest, ArrayRef<unsigned> loops, bool several, ValueRange carried,
                              function_ref<SmallVector<Value>(ValueRange)> body, function_ref<void()> after);
  static SmallVector<int64_t> sizesOf(const Nest &nest, ArrayRef<unsigned> loops);
  Value reduce(const Nest &nest);
  Value join(const Combiner &combiner, Value part);
  Value joinColumns(const Combiner &combiner, Value part);
  void sync();
  Value shared(int64_t offset);
  void placeValues(Value team);

  const KernelPlan &plan;
  const LaunchPlan &launch;
  LLVM::LLVMFuncOp target;
  RowEmitter row;
  ElementEmitter &elements;
  OpBuilder &builder;
  Threads threads;
  LLVM::GlobalOp memory;
  /// Of this thread: its place among those that share a row, and of these rows in the block.
  Value member, team;
};

} // namespace

void ThreadEmitter::emitIf(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(builder, elements.loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  ElementEmitter::Memo outer = elements.memo;
  body();
  elements.memo = std::move(outer);
}

/// The index in an iteration space of these sizes of its element `number`; of size 1: 0.
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
  Value first =
      multiply(add(multiply(threads.block(), launch.threads()), threads.thread()), launch.perThread);
  emitIf(isBelow(first, launch.rows), [&] {
    SmallVector<Value> begin = split(first, plan.rowLoops);
    size_t last = begin.size();
    while (last > 0 && plan.rowLoops[last - 1] == 1)
      --last;
    SmallVector<std::pair<SmallVector<Value>, RowEmitter::Pending>> rows;
    for (unsigned i = 0; i < launch.perThread; ++i) {
      row.rowIndices = begin;
      if (i > 0)
        row.rowIndices[last - 1] = add(begin[last - 1], constant(i));
      rows.emplace_back(row.rowIndices, row.computeRow());
    }
    for (auto &[indices, pending] : rows) {
      row.rowIndices = indices;
      row.storeRow(pending);
    }
  });
}

/// A part of the block's shared memory as a generic pointer.
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
    LLVM::ReturnOp::create(outside, elements.loc,
                           LLVM::UndefOp::create(outside, elements.loc, type).getResult());
  }
  Value base = LLVM::AddrSpaceCastOp::create(
      builder, elements.loc, any,
      LLVM::AddressOfOp::create(builder, elements.loc, space, memory.getSymName()));
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
  if (launch.kind == LaunchPlan::Team && launch.members == warp)
    threads.syncWarp();
  else
    threads.syncBlock();
}

/// Teams take rows in turn; the threads of a team take the same turns, so they meet at every sync.
void ThreadEmitter::emitTeams() {
  Value thread = threads.thread();
  member = remainder(thread, launch.members);
  team = divide(thread, launch.members);
  placeValues(team);
  Value block = threads.block();
  if (plan.scratchBytes)
    elements.scratchBegin = multiply(block, plan.scratchBytes);
  Value first = add(multiply(block, launch.blockRows), team);
  auto emitOne = [&](Value number, ValueRange) {
    bindRow(number);
    emitTeamRow({});
    sync(); // before the next row's values take the place of this one's
    return SmallVector<Value>();
  };
  row.loop(first, constant(launch.rows), constant(int64_t(launch.grid) * launch.blockRows), {}, emitOne);
}

/// Threads behind the last row compute it once more, because they must be at every sync, and store nothing.
void ThreadEmitter::emitColumns() {
  Value thread = threads.thread();
  team = remainder(thread, launch.blockRows);
  member = divide(thread, launch.blockRows);
  Value number = add(multiply(threads.block(), launch.blockRows), team);
  Value active = launch.rows % launch.blockRows ? isBelow(number, launch.rows) : Value();
  if (active)
    number = arith::MinUIOp::create(builder, elements.loc, number, constant(launch.rows - 1));
  bindRow(number);
  emitTeamRow(active);
}

/// All nests of a row, shared by its threads. What has one element a row, all of them know; the first one
/// stores it.
void ThreadEmitter::emitTeamRow(Value active) {
  RowEmitter::Pending pending;
  for (const Nest &nest : plan.nests) {
    elements.memo.clear();
    row.bindLoops(nest);
    if (!row.isSingle(nest)) {
      emitNest(nest);
      sync();
      continue;
    }
    Value value = nest.isReduction() ? reduce(nest) : elements.computeBody(nest.op, row.iteration, {});
    elements.registers[nest.value()] = value;
    if (!nest.results.empty())
      pending.push_back({&nest, value});
  }
  if (pending.empty())
    return;
  sync(); // every read of a tied argument in this row precedes its stores
  Value stores = isBelow(member, 1);
  if (active)
    stores = arith::AndIOp::create(builder, elements.loc, stores, active);
  elements.memo.clear();
  emitIf(stores, [&] { row.storeRow(pending); });
}

/// The iterations of this thread in `loops`, by turns, or by runs of several where they divide the last loop.
/// `after` stands behind each run.
SmallVector<Value> ThreadEmitter::forShare(const Nest &nest, ArrayRef<unsigned> loops, bool several,
                                           ValueRange carried,
                                           function_ref<SmallVector<Value>(ValueRange)> body,
                                           function_ref<void()> after) {
  SmallVector<int64_t> sizes = sizesOf(nest, loops);
  int64_t all = 1, last = 1, position = 0;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    all *= size;
    if (size > 1)
      last = size, position = i;
  }
  int64_t run = several ? 4 : 1;
  while (run > 1 && (last % run || all < run * launch.members))
    run /= 2;
  auto turn = [&](Value number, ValueRange values) {
    SmallVector<Value> next = llvm::to_vector(values), index = split(number, sizes);
    ElementEmitter::Memo outer = elements.memo;
    for (int64_t i = 0; i < run; ++i) {
      for (auto [place, loop] : llvm::enumerate(loops))
        elements.dims[loop] = index[place];
      if (i > 0)
        elements.dims[loops[position]] = add(index[position], constant(i));
      elements.memo = outer;
      next = body(next);
    }
    after();
    elements.memo = std::move(outer);
    return next;
  };
  return row.loop(multiply(member, run), constant(all), constant(run * launch.members), carried, turn);
}

SmallVector<int64_t> ThreadEmitter::sizesOf(const Nest &nest, ArrayRef<unsigned> loops) {
  return llvm::map_to_vector(loops, [&](unsigned loop) { return nest.loops[loop]; });
}

/// A nest with several elements a row: each thread computes some; long reductions are shared one after
/// another.
void ThreadEmitter::emitNest(const Nest &nest) {
  SmallVector<unsigned> free = nest.freeLoops();
  SmallVector<int64_t> sizes = sizesOf(nest, free);
  int64_t all = product(sizes);
  bool isLong = product(sizesOf(nest, nest.reducedLoops)) >= warp && 2 * all < launch.members;
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
  };
  forShare(nest, free, /*several=*/!nest.isReduction(), {}, compute, store);
}

/// The value of a reduction, which all threads of the row know afterwards. Parts are joined in a fixed order.
Value ThreadEmitter::reduce(const Nest &nest) {
  SmallVector<unsigned> loops = nest.reducedLoops;
  if (auto inner = llvm::find(loops, nest.innermost); inner != loops.end())
    std::rotate(inner, inner + 1, loops.end());
  std::optional<Combiner> combiner = findCombiner(nest.op);
  if (!combiner || product(sizesOf(nest, loops)) < launch.members / 4)
    return row.reduceToRegister(nest, 0, row.start(nest));
  Value part = arith::ConstantOp::create(builder, elements.loc, combiner->identity);
  auto body = [&](ValueRange carried) {
    return SmallVector<Value>{elements.computeBody(nest.op, row.iteration, carried[0])};
  };
  part = forShare(nest, loops, /*several=*/launch.kind == LaunchPlan::Team, part, body, [] {})[0];
  Value joined = launch.kind == LaunchPlan::Team ? join(*combiner, part) : joinColumns(*combiner, part);
  return combiner->combine(builder, row.start(nest), joined);
}

/// Within a warp by exchange: all of its threads add the same pairs. Then every thread adds up the warps.
Value ThreadEmitter::join(const Combiner &combiner, Value part) {
  for (unsigned mask = warp / 2; mask > 0; mask /= 2)
    part = combiner.combine(builder, part, threads.exchange(part, mask));
  if (launch.members == warp)
    return part;
  Value slots = shared(launch.blockRows * launch.rowBytes);
  sync(); // all have read what the last reduction left
  emitIf(arith::CmpIOp::create(builder, elements.loc, arith::CmpIPredicate::eq, remainder(member, warp),
                               constant(0)),
         [&] { elements.store(part, slots, divide(member, warp)); });
  sync();
  Value all = elements.load(slots, part.getType(), constant(0));
  for (unsigned i = 1; i < launch.members / warp; ++i)
    all = combiner.combine(builder, all, elements.load(slots, part.getType(), constant(i)));
  return all;
}

/// Threads of one row are `blockRows` apart. Halves are joined until one is left: few values at hand, in a
/// fixed order.
Value ThreadEmitter::joinColumns(const Combiner &combiner, Value part) {
  Value slots = shared(0), own = add(multiply(member, launch.blockRows), team);
  sync(); // all have read what the last reduction left
  elements.store(part, slots, own);
  for (unsigned half = launch.members / 2; half > 0; half /= 2) {
    sync();
    emitIf(isBelow(member, half), [&] {
      Value other = elements.load(slots, part.getType(), add(own, constant(half * launch.blockRows)));
      elements.store(combiner.combine(builder, elements.load(slots, part.getType(), own), other), slots, own);
    });
  }
  sync();
  return elements.load(slots, part.getType(), team);
}

void ThreadEmitter::emit() {
  builder.setInsertionPointToStart(target.addEntryBlock(builder));
  elements.bindImmediates();
  switch (launch.kind) {
  case LaunchPlan::Rows:
    emitRows();
    break;
  case LaunchPlan::Team:
    emitTeams();
    break;
  case LaunchPlan::Columns:
    emitColumns();
    break;
  }
  LLVM::ReturnOp::create(builder, elements.loc, ValueRange());
}

void emitThreads(func::FuncOp function, const KernelPlan &plan, const LaunchPlan &launch,
                 const KernelBuffers &buffers, StringRef symbol) {
  OpBuilder builder(function);
  unsigned immediates =
      llvm::count_if(function.getArgumentTypes(), [](Type type) { return type.isInteger(64); });
  SmallVector<Type> types(buffers.count, LLVM::LLVMPointerType::get(builder.getContext()));
  types.append(immediates, builder.getI64Type());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types);
  auto target = LLVM::LLVMFuncOp::create(builder, function.getLoc(), symbol, type);
  target.setCConv(LLVM::CConv::PTX_Kernel);
  for (unsigned operand = 0; operand < buffers.count; ++operand) {
    target.setArgAttr(operand, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    target.setArgAttr(operand, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(operandAlignment));
  }
  auto threads = builder.getStrArrayAttr({"nvvm.reqntid", std::to_string(launch.threads())});
  target.setPassthroughAttr(builder.getArrayAttr({threads}));
  ThreadEmitter(function, plan, launch, buffers, target).emit();
}

} // namespace par::cuda
