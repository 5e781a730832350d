// Two-level collectives for groups with several ranks on each of several hosts (the hierarchical all-reduce of Jia et
// al. 2018, "Highly scalable deep learning training system with mixed-precision"):
//
//     all_reduce      reduce_scatter within hosts, all_reduce of each rank's part between them, all_gather within
//     all_gather      between hosts of each rank's own shard, then within, a host's shards block by block
//     reduce_scatter  within hosts, block by block, then between them
//
// A host then sends each element once to each other host, not once to each rank. The pass runs after all passes that
// group collectives and move their ends: one collective on a queue becomes several on the same queue, which run in
// order.
//
// Not handled: exchanges (each rank sends other bytes to every other one anyway), and all-reduces of a number of
// elements that the ranks of a host do not divide (scalars).
#include "Grouping.h"
#include "LevelChains.h"
#include "par/Base/PlanPlace.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Phases/Collectives/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_LEVELCOLLECTIVESPASS
#include "par/Phases/Collectives/Passes.h.inc"

namespace {

/// A chain on the queue that runs beside the last backward: it has no end yet, and its results are stored.
struct Open {
  Chain chain;
  Operation *collective; ///< that it stands for
};

/// Works on one block.
class Leveler {
public:
  Leveler(BlockOp block, StageOp stage, StageGroups &groups, bool always, Views &views)
      : block(block), stage(stage), groups(groups), always(always), views(views), chains(views, OpBuilder(block)) {}

  /// How many collectives it took apart.
  unsigned run();

private:
  bool isWorth(Operation *collective, const HostLevels &levels);
  void level(Operation *collective, const HostLevels &levels);
  void closeAll();

  BlockOp block;
  StageOp stage;
  StageGroups &groups;
  bool always;
  Views &views;
  ChainBuilder chains;
  SmallVector<Open> open;
};

} // namespace

static std::optional<format::CollKind> kindOf(Operation *collective) {
  if (isa<AllReduceOp>(collective))
    return format::CollKind::AllReduce;
  if (isa<AllGatherOp>(collective))
    return format::CollKind::AllGather;
  return isa<ReduceScatterOp>(collective) ? std::optional(format::CollKind::ReduceScatter) : std::nullopt;
}

/// Whether two levels take less time by the hardware file; of equals the one collective stays.
bool Leveler::isWorth(Operation *collective, const HostLevels &levels) {
  if (always)
    return true;
  format::CollKind kind = *kindOf(collective);
  // Bytes in the sense of the instruction's n.
  int64_t bytes = getByteSize(kind == format::CollKind::ReduceScatter ? ValueRange(collective->getResults())
                                                                      : ValueRange(collective->getOperands()));
  RankGroup group = groups.widest(stage, getAxes(cast<CollectiveOpInterface>(collective).getAxes()));
  return leveledTime(kind, bytes, stage, levels, groups) < groups.costs.collective(kind, bytes, group).ns;
}

/// An in-place reduction keeps its buffer: no other op may write it, so it need not be kept.
static void dropWhatIsReplaced(Chain &chain, ValueRange results, const Views &views) {
  llvm::SmallSetVector<StringRef, 4> buffers;
  for (Value result : results)
    for (Operation *user : result.getUsers())
      if (auto store = dyn_cast<StoreOp>(user))
        buffers.insert(store.getBuffer());
  llvm::erase_if(chain.kept, [&](Value value) {
    auto load = views.seen(value).getDefiningOp<LoadOp>();
    return load && buffers.contains(load.getBuffer());
  });
}

static DoneOp doneOf(Operation *collective) {
  for (Operation *user : collective->getUsers())
    if (auto done = dyn_cast<DoneOp>(user))
      return done;
  return {};
}

void Leveler::level(Operation *collective, const HostLevels &levels) {
  Chain chain = chains.build(collective, levels);
  DoneOp done = doneOf(collective);
  dropWhatIsReplaced(chain, done ? done.getResults() : collective->getResults(), views);
  if (!getQueue(collective).empty() && !done) {
    open.push_back({std::move(chain), collective});
    return;
  }
  Operation *end = done ? done.getOperation() : collective;
  end->replaceAllUsesWith(chains.end(chain, end->getBlock(), end));
  if (done)
    done.erase();
  collective->erase();
}

/// Ends each open chain before the next one starts, the last one at the block's end: temporary memory is then that of
/// one chain.
void Leveler::closeAll() {
  for (auto [index, each] : llvm::enumerate(open)) {
    Operation *next = index + 1 < open.size() ? open[index + 1].chain.ops.front() : nullptr;
    SmallVector<Value> ended = chains.end(each.chain, &block.getBody().front(), next);
    for (auto [value, result] : llvm::zip(ended, each.collective->getResults())) {
      for (Operation *store : llvm::to_vector(result.getUsers()))
        if (store->isBeforeInBlock(value.getDefiningOp()))
          store->moveAfter(value.getDefiningOp());
      result.replaceAllUsesWith(value);
    }
    each.collective->erase();
  }
}

/// An all-reduce of values that the ranks of a host divide, and one of the others, in its place.
static SmallVector<Operation *> divisible(Operation *collective, int64_t each) {
  if (!isa<AllReduceOp>(collective))
    return {collective};
  SmallVector<unsigned> some, others;
  for (auto [index, value] : llvm::enumerate(collective->getOperands()))
    (cast<RankedTensorType>(value.getType()).getNumElements() % each ? others : some).push_back(index);
  if (some.empty() || others.empty())
    return some.empty() ? SmallVector<Operation *>() : SmallVector<Operation *>{collective};
  OpBuilder builder(collective);
  DoneOp done = doneOf(collective);
  SmallVector<Operation *> made;
  for (ArrayRef<unsigned> indices : {ArrayRef(some), ArrayRef(others)}) {
    SmallVector<Value> operands;
    SmallVector<Type> types;
    for (unsigned index : indices) {
      operands.push_back(collective->getOperand(index));
      types.push_back(operands.back().getType());
    }
    builder.setInsertionPoint(collective);
    OperationState state(collective->getLoc(), collective->getName(), operands, types, collective->getAttrs());
    Operation *part = builder.create(state);
    ValueRange results = part->getResults();
    if (done) {
      builder.setInsertionPoint(done);
      results = DoneOp::create(builder, done.getLoc(), types, results, ValueRange()).getResults();
    }
    for (auto [index, result] : llvm::zip(indices, results))
      (done ? done->getResult(index) : collective->getResult(index)).replaceAllUsesWith(result);
    made.push_back(part);
  }
  if (done)
    done.erase();
  collective->erase();
  return {made.front()};
}

unsigned Leveler::run() {
  unsigned count = 0;
  for (Operation *collective : collectivesOf(block)) {
    std::optional<HostLevels> levels =
        kindOf(collective) ? findHostLevels(stage, getAxes(cast<CollectiveOpInterface>(collective).getAxes()), groups)
                           : std::nullopt;
    if (!levels || !isWorth(collective, *levels))
      continue;
    for (Operation *part : divisible(collective, levels->each)) {
      level(part, *levels);
      ++count;
    }
  }
  closeAll();
  return count;
}

namespace {
struct LevelCollectivesPass : impl::LevelCollectivesPassBase<LevelCollectivesPass> {
  using LevelCollectivesPassBase::LevelCollectivesPassBase;

  void runOnOperation() override {
    auto costs = CostTable::find(hardware);
    if (!costs) {
      getOperation().emitError() << llvm::toString(costs.takeError());
      return signalPassFailure();
    }
    if (!costs->hardware().hasHosts() && !always)
      return; // one link everywhere
    SymbolTable names(getOperation());
    Views views(names);
    StageGroups groups(*costs);
    unsigned count = 0;
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      auto stage = names.lookup<StageOp>(program.getFirstStage().getAttr());
      for (BlockOp block : program.getOps<BlockOp>())
        count += Leveler(block, stage, groups, always, views).run();
    }
    if (!always || count > 0)
      return;
    emitError(placeInPlan(&getContext(), said))
        << "collectives.algorithm is hierarchical, but no collective of this plan joins ranks that are "
           "several on each of several hosts; say auto";
    signalPassFailure();
  }
};
} // namespace

} // namespace par
