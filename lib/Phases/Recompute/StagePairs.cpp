// Pairs of forward and backward with their microbatches in flight, and the rewrite of one to a set of saved values.
#include "StagePairs.h"

#include "par/Base/TypeSize.h"
#include "par/Dialect/Calls.h"
#include "par/Solver/Order/OrderTable.h"

using namespace mlir;

namespace par {

/// Microbatches in flight by stage.
static SmallVector<int64_t> countInFlight(ModuleOp module, int64_t microbatches, StringRef schedule) {
  unsigned stages = llvm::range_size(module.getOps<StageOp>()), devices = getStagesByRanks(module).size();
  SmallVector<int64_t> counts(stages, 1);
  auto found = countInFlight(schedule, stages, devices, microbatches);
  if (!found)
    llvm::consumeError(found.takeError());
  else
    counts.assign(found->begin(), found->end());
  return counts;
}

static int64_t countInFlight(const FragmentPair &pair, StringRef schedule) {
  FragmentOp forward = pair.getForward();
  auto module = forward->getParentOfType<ModuleOp>();
  auto loop = pair.getBackwardRun()->getParentOfType<LoopOp>();
  SmallVector<int64_t> counts =
      countInFlight(module, loop.getCount() * getCalls(loop->getParentOfType<StepOp>()), schedule);
  for (auto [count, stage] : llvm::zip(counts, module.getOps<StageOp>()))
    if (stage.getSymName() == forward.getStage())
      return count;
  return 1;
}

std::vector<std::vector<StagePair>> findPairsByRanks(ModuleOp module, StringRef schedule) {
  auto stagesByRanks = getStagesByRanks(module);
  std::vector<std::vector<StagePair>> groups(stagesByRanks.size());
  llvm::StringMap<unsigned> groupOf, orderOf;
  for (auto [index, stages] : llvm::enumerate(stagesByRanks))
    for (StageOp stage : stages)
      groupOf[stage.getSymName()] = index;
  for (auto [index, stage] : llvm::enumerate(module.getOps<StageOp>()))
    orderOf[stage.getSymName()] = index;
  for (const FragmentPair &pair : FragmentPair::findAll(module))
    groups[groupOf[pair.getForward().getStage()]].push_back({pair, countInFlight(pair, schedule)});
  for (std::vector<StagePair> &group : groups)
    llvm::stable_sort(group, [&](const StagePair &one, const StagePair &other) {
      return orderOf.lookup(one.pair.getForward().getStage()) < orderOf.lookup(other.pair.getForward().getStage());
    });
  llvm::erase_if(groups, [](const std::vector<StagePair> &group) { return group.empty(); });
  return groups;
}

std::string nameStages(ArrayRef<StagePair> stages) {
  std::string name;
  for (StagePair stage : stages)
    name += (name.empty() ? "" : "+") + stage.pair.getForward().getStage().drop_front().str();
  return name;
}

SmallVector<StageResiduals> summarizeResiduals(ModuleOp module, StringRef schedule) {
  SmallVector<StageResiduals> result;
  for (const FragmentPair &pair : FragmentPair::findAll(module)) {
    StageResiduals &stage = result.emplace_back();
    stage.stage = pair.getForward().getStage().str();
    stage.inFlight = countInFlight(pair, schedule);
    stage.savedBytes = getByteSize(pair.getResiduals().getArrayRef());
  }
  std::map<std::string, unsigned> order;
  for (auto [index, stage] : llvm::enumerate(module.getOps<StageOp>()))
    order[stage.getSymName().str()] = index;
  llvm::stable_sort(result, [&](const StageResiduals &left, const StageResiduals &right) {
    return order[left.stage] < order[right.stage];
  });
  return result;
}

void recomputeCheap(StagePair &stage, bool keepOperands) {
  FragmentPair &pair = stage.pair;
  for (llvm::DenseSet<Value> cheap = pair.findCheap(pair.getResiduals(), keepOperands, stage.inFlight); !cheap.empty();
       cheap = pair.findCheap(pair.getResiduals(), keepOperands, stage.inFlight)) {
    ValueSet saved = pair.getResiduals();
    pair.recompute([&](Value value) { return saved.contains(value) && !cheap.contains(value); });
  }
}

void recomputeAllBut(StagePair &stage, const ValueSet &saved, bool keepOperands) {
  llvm::DenseSet<Value> cheap = stage.pair.findCheap(saved, keepOperands, stage.inFlight);
  stage.pair.recompute([&](Value value) { return saved.contains(value) && !cheap.contains(value); });
  recomputeCheap(stage, keepOperands);
}

int64_t countResidualBytes(const StagePair &stage, bool keepOperands) {
  ValueSet saved = stage.pair.getResiduals();
  for (llvm::DenseSet<Value> cheap = stage.pair.findCheap(saved, keepOperands, stage.inFlight); !cheap.empty();
       cheap = stage.pair.findCheap(saved, keepOperands, stage.inFlight))
    saved.remove_if([&](Value value) { return cheap.contains(value); });
  return stage.inFlight * getByteSize(saved.getArrayRef());
}

} // namespace par
