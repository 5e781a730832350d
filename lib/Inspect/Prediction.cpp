#include "par/Inspect/Prediction.h"

#include "BlockNames.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace par {

/// Average time of one microbatch on one stage.
static SlotTimes averageTimes(const format::Bundle &bundle, const Simulation &simulation, int64_t microbatches,
                              unsigned stagesADevice) {
  int64_t sums[3] = {0, 0, 0};
  std::vector<int64_t> ranksOf(simulation.classBegins.size());
  for (uint32_t ofRank : simulation.classOf)
    ++ranksOf[ofRank];
  for (const PlayedInstruction &node : simulation.instructions) {
    const format::Program &program = bundle.programs[bundle.manifest.ranks[node.rank].role];
    if (auto kind = slotKindOf(program.blocks[node.block].name); kind && !node.communication)
      sums[static_cast<unsigned>(*kind)] += node.duration * ranksOf[simulation.classOf[node.rank]];
  }
  int64_t runs = std::max<int64_t>(1, int64_t(bundle.manifest.ranks.size()) * microbatches * stagesADevice);
  return {sums[0] / runs, sums[1] / runs, sums[2] / runs};
}

std::optional<ExpectedBubble> expectBubble(const Plan &plan, const format::Bundle &bundle,
                                           const Simulation &simulation) {
  unsigned stages = *plan.pipeline.stages, devices = plan.numDevices();
  int64_t microbatches = plan.rounds() * plan.calls();
  if (stages <= 1)
    return std::nullopt;
  const std::string &name = *plan.pipeline.schedule;
  const std::string shown = plan.train ? name : "forward"; // of which the closed forms are the same
  SlotTimes times = averageTimes(bundle, simulation, microbatches, stages / devices);
  if (const Schedule *schedule = findSchedule(name); schedule && schedule->bubble)
    if (auto bubble = schedule->bubble({devices, stages / devices, static_cast<unsigned>(microbatches)}, times))
      return ExpectedBubble{shown, microbatches, true, 100 * *bubble};
  auto problem = OrderTableProblem::make(name, stages, devices, microbatches);
  if (!problem) {
    consumeError(problem.takeError());
    return std::nullopt;
  }
  problem->forward.assign(stages, times.forward);
  problem->backward.assign(stages, times.backward);
  problem->weight.assign(stages, times.weight);
  auto table = problem->solve();
  if (!table) {
    consumeError(table.takeError());
    return std::nullopt;
  }
  return ExpectedBubble{shown, microbatches, false, table->bubblePermille() / 10.0};
}

Prediction describePrediction(const Plan &plan, const format::Bundle &bundle, const Simulation &simulation) {
  return {simulation.step / simulation.calls,
          simulation.computePermille(),
          simulation.bubblePermille(),
          simulation.communicationPermille(),
          simulation.corePermille(),
          simulation.sourcePermille(),
          simulation.cores,
          expectBubble(plan, bundle, simulation)};
}

} // namespace par
