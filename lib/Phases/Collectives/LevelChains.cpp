#include "LevelChains.h"

using namespace mlir;

namespace par {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The same elements with other dims in front of those from `from` on.
static RankedTensorType typeWith(RankedTensorType type, ArrayRef<int64_t> front, unsigned from) {
  SmallVector<int64_t> shape(front);
  llvm::append_range(shape, type.getShape().drop_front(from));
  return type.clone(shape);
}

/// A kernel that gives its operand under another shape, which Memory makes a view of.
KernelOp Views::kernelOf(Location loc, RankedTensorType from, RankedTensorType to) {
  KernelOp &known = made[{from, to}];
  if (known)
    return known;
  auto module = cast<ModuleOp>(symbols.getOp());
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto kernel = KernelOp::create(builder, loc, "kernel", builder.getFunctionType({from}, {to}), "generated");
  if (kernel.getBody().empty())
    kernel.getBody().emplaceBlock().addArgument(from, loc);
  OpBuilder inner = OpBuilder::atBlockEnd(&kernel.getBlock());
  if (!kernel.getBlock().empty())
    inner.setInsertionPointToStart(&kernel.getBlock());
  ReturnOp::create(inner, loc, buildReshape(inner, loc, kernel.getBody().getArgument(0), to.getShape()));
  symbols.insert(kernel);
  names.insert(kernel.getSymNameAttr());
  return known = kernel;
}

Value ChainBuilder::see(Value value, RankedTensorType type) {
  if (value.getType() == type)
    return value;
  KernelOp kernel = views.kernelOf(loc, typeOf(value), type);
  return LaunchOp::create(builder, loc, TypeRange{type}, FlatSymbolRefAttr::get(kernel.getSymNameAttr()), value)
      .getResult(0);
}

/// One of a chain: on the collective's queue, or marked as such. `byBlocks`: one collective for each block of dim 0, in
/// a group.
Operation *ChainBuilder::add(Chain &chain, Operation *made, bool byBlocks) {
  auto collective = cast<CollectiveOpInterface>(made);
  collective.setQueue(queue);
  collective.setLevel(queue.empty());
  collective.setByBlocks(byBlocks);
  chain.ops.push_back(made);
  if (!isa<AllReduceOp>(made)) // which is in place
    llvm::append_range(chain.kept, made->getOperands());
  return made;
}

Chain ChainBuilder::reduce(AllReduceOp reduce, const HostLevels &levels) {
  Chain chain;
  SmallVector<Value> seen;
  SmallVector<Type> shards, wholes;
  for (Value input : reduce.getInputs()) {
    chain.types.push_back(input.getType());
    int64_t shard = typeOf(input).getNumElements() / levels.each;
    seen.push_back(see(input, typeOf(input).clone({levels.each, shard})));
    shards.push_back(typeOf(input).clone({1, shard}));
    wholes.push_back(seen.back().getType());
  }
  SmallVector<int64_t> zeros(seen.size(), 0);
  Operation *made =
      add(chain, ReduceScatterOp::create(builder, loc, shards, seen, reduce.getKind(), zeros, names(levels.within)));
  made = add(chain, AllReduceOp::create(builder, loc, shards, made->getResults(), reduce.getKindAttr(),
                                        names(levels.between)));
  add(chain, AllGatherOp::create(builder, loc, wholes, made->getResults(), zeros, names(levels.within)));
  return chain;
}

Chain ChainBuilder::gather(AllGatherOp gather, const HostLevels &levels) {
  Chain chain;
  SmallVector<Value> seen;
  SmallVector<Type> ofHosts, wholes;
  for (auto [input, result] : llvm::zip(gather.getInputs(), gather.getResults())) {
    RankedTensorType type = typeOf(input);
    chain.types.push_back(result.getType());
    seen.push_back(see(input, typeWith(type, 1, 0)));
    ofHosts.push_back(typeWith(type, levels.hosts, 0));
    wholes.push_back(typeWith(type, {levels.hosts, levels.each * type.getDimSize(0)}, 1));
  }
  SmallVector<int64_t> zeros(seen.size(), 0), ones(seen.size(), 1);
  Operation *made = add(chain, AllGatherOp::create(builder, loc, ofHosts, seen, zeros, names(levels.between)));
  add(chain, AllGatherOp::create(builder, loc, wholes, made->getResults(), ones, names(levels.within)),
      /*byBlocks=*/true);
  return chain;
}

Chain ChainBuilder::scatter(ReduceScatterOp scatter, const HostLevels &levels) {
  Chain chain;
  SmallVector<Value> seen;
  SmallVector<Type> ofHosts, shards;
  for (auto [input, result] : llvm::zip(scatter.getInputs(), scatter.getResults())) {
    RankedTensorType type = typeOf(result);
    chain.types.push_back(type);
    seen.push_back(see(input, typeWith(type, {levels.hosts, levels.each * type.getDimSize(0)}, 1)));
    ofHosts.push_back(typeWith(type, levels.hosts, 0));
    shards.push_back(typeWith(type, 1, 0));
  }
  SmallVector<int64_t> zeros(seen.size(), 0), ones(seen.size(), 1);
  Operation *made =
      add(chain, ReduceScatterOp::create(builder, loc, ofHosts, seen, scatter.getKind(), ones, names(levels.within)),
          /*byBlocks=*/true);
  add(chain, ReduceScatterOp::create(builder, loc, shards, made->getResults(), scatter.getKind(), zeros,
                                     names(levels.between)));
  return chain;
}

Chain ChainBuilder::build(Operation *collective, const HostLevels &levels) {
  builder.setInsertionPoint(collective);
  loc = collective->getLoc();
  queue = getQueue(collective);
  if (auto op = dyn_cast<AllGatherOp>(collective))
    return gather(op, levels);
  if (auto op = dyn_cast<ReduceScatterOp>(collective))
    return scatter(op, levels);
  return reduce(cast<AllReduceOp>(collective), levels);
}

SmallVector<Value> ChainBuilder::end(const Chain &chain, Block *block, Operation *before) {
  if (before)
    builder.setInsertionPoint(before);
  else
    builder.setInsertionPointToEnd(block);
  loc = chain.ops.back()->getLoc();
  ValueRange results = chain.results();
  if (!getQueue(chain.ops.back()).empty())
    results = DoneOp::create(builder, loc, results.getTypes(), results, chain.kept).getResults();
  SmallVector<Value> ended;
  for (auto [result, type] : llvm::zip(results, chain.types))
    ended.push_back(see(result, cast<RankedTensorType>(type)));
  return ended;
}

} // namespace par
