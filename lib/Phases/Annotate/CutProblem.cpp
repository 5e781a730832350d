// Builds the stage_cut problem of a forward step: consecutive ops of one module become a node, with its prices, weights
// and saved activations; each value that crosses groups becomes a link. The solver is Solver/Cut.
#include "CutCosts.h"

#include "par/Base/TypeSize.h"
#include "par/Dialect/Interfaces/Optimizer.h"
#include "par/Phases/Annotate/GradientFlow.h"
#include "par/Solver/Order/OrderTable.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace par {

namespace {

/// Fills the problem group by group.
class CutProblemBuilder {
public:
  CutProblemBuilder(StepOp step, ArrayRef<OpGroup> groups, const Plan &plan, const CostTable &costs,
                    const CutPrices &prices, ArrayRef<ArrayRef<int64_t>> stages)
      : flow(step), groups(groups), plan(plan), costs(costs), prices(prices), stages(stages) {
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

  StageCutProblem run(ArrayRef<unsigned> inFlight) {
    problem.schedule = *plan.pipeline.schedule;
    problem.stages = *plan.pipeline.stages;
    problem.devices = devices;
    problem.microbatches = microbatches * plan.calls();
    problem.blocking = !costs.hardware().overlap;
    addLinks();
    problem.inFlight.assign(inFlight.begin(), inFlight.end());
    problem.bonds = prices.bonds;
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
    node.work = prices.groups[index];
    node.work.update *= plan.calls();
    bool recomputes = plan.recompute.recomputesLayers();
    if (recomputes && node.work.backward > 0) // forward runs once more
      node.work.backward += node.work.forward;
    for (Operation *op : group) {
      groupOf[op] = index;
      for (Value result : op->getResults())
        if (!recomputes && flow.isSaved(result))
          node.saved += getByteSize(result) / (microbatches * ranks);
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
      // A trained parameter also has a gradient, the optimizer's states and an average.
      int64_t copies = 1;
      if (plan.train && flow.reaches(read->getResult(0)))
        if (auto optimizer = findOptimizer(read->getContext(), *plan.train->optimizer.kind))
          copies = 2 + optimizer->getStates().size() + plan.train->averages.has_value();
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
  const CutPrices &prices;
  ArrayRef<ArrayRef<int64_t>> stages; ///< ranks of each
  StageCutProblem problem;
  int64_t devices, ranks, over, microbatches;
  DenseMap<Operation *, unsigned> groupOf;
  llvm::MapVector<Operation *, SmallVector<unsigned>> readers;
};

} // namespace

llvm::Expected<StageCutProblem> makeCutProblem(StepOp step, ArrayRef<OpGroup> groups, const Plan &plan,
                                               const CostTable &costs, const CutPrices &prices,
                                               ArrayRef<ArrayRef<int64_t>> stages) {
  std::vector<unsigned> inFlight; // of inference there is no backward to wait for
  if (plan.train) {
    auto counts =
        countInFlight(*plan.pipeline.schedule, *plan.pipeline.stages, plan.numDevices(), plan.rounds() * plan.calls());
    if (!counts)
      return counts.takeError();
    inFlight = std::move(*counts);
  }
  return CutProblemBuilder(step, groups, plan, costs, prices, stages).run(inFlight);
}

} // namespace par
