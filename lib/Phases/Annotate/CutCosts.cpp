// Builds the stage_cut problem of a forward step: consecutive ops of one module become a node, with its predicted time,
// weights and saved activations; each value that crosses groups becomes a link. The solver is Solver/StageCut.
#include "CutCosts.h"

#include "par/Base/Provenance.h"
#include "par/Costs/CostTable.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Interfaces/Optimizer.h"
#include "par/Phases/Annotate/GradientFlow.h"
#include "par/Solver/Order/OrderTable.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace par {

/// Groups of consecutive ops that are of one place of the model.
static std::vector<OpGroup> groupBy(ArrayRef<Operation *> ops,
                                    llvm::function_ref<StringRef(const Provenance &)> placeOf) {
  std::vector<OpGroup> groups;
  std::string last;
  for (Operation *op : ops) {
    std::optional<Provenance> from = getProvenance(op->getLoc());
    // Constants and ops of a pass have no module: they belong to their neighbours' group.
    std::string place = from ? placeOf(*from).str() : last;
    if (groups.empty() || place != last)
      groups.emplace_back();
    groups.back().push_back(op);
    last = place;
  }
  return groups;
}

std::vector<OpGroup> groupForCuts(ArrayRef<Operation *> ops, size_t fewest) {
  std::vector<OpGroup> modules = groupBy(ops, [](const Provenance &from) { return from.module; });
  return modules.size() >= fewest ? modules : groupBy(ops, [](const Provenance &from) { return from.path; });
}

int64_t flopsOf(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost ? cost.getFlops() : 0;
}

namespace {

/// Fills the problem group by group.
class CutProblemBuilder {
public:
  CutProblemBuilder(StepOp step, ArrayRef<OpGroup> groups, const Plan &plan, const CostTable &costs,
                    ArrayRef<unsigned> inFlight, ArrayRef<ArrayRef<int64_t>> stages)
      : flow(step), groups(groups), plan(plan), costs(costs), inFlight(inFlight), stages(stages) {
    devices = std::max<int64_t>(1, plan.numDevices());
    ranks = std::max<int64_t>(1, *plan.ranks / devices);
    over = plan.axesSize(*plan.batch.over);
    // If stages have meshes of their own, figures are of one rank and the solver divides them; transfers are those of
    // the stage with the fewest shards of the batch.
    for (auto [stage, mesh] : llvm::enumerate(*plan.pipeline.meshes)) {
      int64_t shares = 1;
      for (const auto &[axis, size] : mesh)
        shares *= llvm::is_contained(*plan.batch.over, axis) ? *size : 1;
      over = stage == 0 ? shares : std::min(over, shares);
      problem.width.push_back(ranksOf(mesh));
      ranks = 1;
    }
    microbatches = plan.rounds();
  }

  StageCutProblem run() {
    problem.stages = *plan.pipeline.stages;
    problem.microbatches = microbatches * plan.calls();
    addLinks();
    problem.inFlight.assign(inFlight.begin(), inFlight.end());
    if (*plan.target.memory) // the stages of a rank share its memory
      problem.limit.assign(problem.stages, **plan.target.memory * devices / problem.stages);
    for (auto [index, group] : llvm::enumerate(groups))
      addNode(index, group);
    for (auto [index, group] : llvm::enumerate(groups))
      addValues(index, group);
    addWeights();
    return std::move(problem);
  }

private:
  void addLinks() {
    auto linkOf = [&](const RankGroup &ends) {
      Link link = costs.link(ends);
      return CutLink{link.latency, link.rate};
    };
    problem.link = linkOf(2);
    for (unsigned stage = 0; stage < stages.size(); ++stage) {
      ArrayRef<int64_t> before = stages[stage ? stage - 1 : 0], own = stages[stage];
      problem.into.push_back(before == own ? CutLink() : linkOf(costs.hardware().endsOf(before, own)));
    }
  }

  void addNode(unsigned index, const OpGroup &group) {
    CutNode node;
    node.name = "g" + std::to_string(index);
    bool recomputes = plan.recompute.recomputesLayers();
    for (Operation *op : group) {
      groupOf[op] = index;
      int64_t bytes = 0;
      for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector(op->getResults())))
        bytes += getByteSize(value);
      int64_t share = microbatches * ranks;
      int64_t time = costs.local(flopsOf(op) / share, bytes / share).ns, backward = flow.backward(op);
      node.forward += time;
      // Recomputation runs forward once more.
      node.backward += time * (backward && recomputes ? backward + 1 : backward);
      for (Value result : op->getResults())
        if (!recomputes && flow.isSaved(result))
          node.saved += getByteSize(result) / share;
      for (Value operand : op->getOperands())
        if (auto read = operand.getDefiningOp<ReadOp>())
          readers[read].push_back(index);
    }
    problem.nodes.push_back(node);
  }

  void addValues(unsigned index, const OpGroup &group) {
    for (Operation *op : group)
      for (Value result : op->getResults()) {
        SmallVector<unsigned> users;
        for (Operation *user : result.getUsers())
          if (auto other = groupOf.find(user); other != groupOf.end() && other->second != index)
            users.push_back(other->second);
        if (users.empty())
          continue;
        llvm::sort(users);
        users.erase(llvm::unique(users), users.end());
        CutValue value;
        value.name = "v" + std::to_string(problem.values.size());
        value.bytes = getByteSize(result) / (microbatches * over);
        value.producer = index;
        value.users.assign(users.begin(), users.end());
        problem.values.push_back(value);
      }
  }

  /// A weight of one group counts there; one of several travels to every stage that uses it.
  void addWeights() {
    int64_t tensor = std::max<int64_t>(1, ranks / over);
    for (auto &[read, users] : readers) {
      // A trained parameter also has a gradient and the optimizer's states.
      int64_t copies = 1;
      if (plan.train && flow.reaches(read->getResult(0)))
        if (auto optimizer = findOptimizer(read->getContext(), *plan.train->optimizer.kind))
          copies = 2 + optimizer->getStates().size();
      llvm::sort(users);
      users.erase(llvm::unique(users), users.end());
      int64_t held = getByteSize(read->getResult(0)) * copies / tensor;
      if (users.size() == 1) {
        problem.nodes[users.front()].weights += held;
        continue;
      }
      CutValue value;
      value.name = "w" + std::to_string(problem.values.size());
      value.bytes = getByteSize(read->getResult(0)) / tensor;
      value.held = held;
      value.users.assign(users.begin(), users.end());
      problem.values.push_back(value);
    }
  }

  GradientFlow flow;
  ArrayRef<OpGroup> groups;
  const Plan &plan;
  const CostTable &costs;
  ArrayRef<unsigned> inFlight;        ///< per stage
  ArrayRef<ArrayRef<int64_t>> stages; ///< ranks of each
  StageCutProblem problem;
  int64_t devices, ranks, over, microbatches;
  DenseMap<Operation *, unsigned> groupOf;
  llvm::MapVector<Operation *, SmallVector<unsigned>> readers;
};

} // namespace

llvm::Expected<StageCutProblem> makeCutProblem(StepOp step, ArrayRef<OpGroup> groups, const Plan &plan,
                                               ArrayRef<ArrayRef<int64_t>> stages) {
  llvm::Expected<CostTable> costs = CostTable::find(*plan.target.hardware);
  if (!costs)
    return costs.takeError();
  std::vector<unsigned> inFlight; // of inference there is no backward to wait for
  if (plan.train) {
    auto counts =
        countInFlight(*plan.pipeline.schedule, *plan.pipeline.stages, plan.numDevices(), plan.rounds() * plan.calls());
    if (!counts)
      return counts.takeError();
    inFlight = std::move(*counts);
  }
  return CutProblemBuilder(step, groups, plan, *costs, inFlight, stages).run();
}

} // namespace par
