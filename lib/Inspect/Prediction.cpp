#include "par/Inspect/Prediction.h"

#include "BlockNames.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace par {

/// How many ranks each class has.
static std::vector<int64_t> ranksOfClasses(const Simulation &simulation) {
  std::vector<int64_t> ranks(simulation.classBegins.size());
  for (uint32_t ofRank : simulation.classOf)
    ++ranks[ofRank];
  return ranks;
}

/// Average time of one microbatch on one stage.
static SlotTimes averageTimes(const format::Bundle &bundle, const Simulation &simulation, int64_t microbatches,
                              unsigned stagesADevice) {
  int64_t sums[3] = {0, 0, 0};
  std::vector<int64_t> ranksOf = ranksOfClasses(simulation);
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

/// FLOP/s of large matmuls.
static double peakOf(const CostTable &costs, format::DType type) {
  constexpr int64_t flops = 1'000'000'000'000;
  return 1e9 * double(flops) / double(costs.local(flops, 0, type).ns - costs.launch());
}

std::optional<Utilization> describeUtilization(const Compiled &compiled, int64_t stepNs) {
  const PlannedModel &planned = compiled.planned;
  const std::string &type = *planned.plan.plan.precision.compute;
  auto element = type == "bf16" ? format::DType::BF16 : type == "fp16" ? format::DType::F16 : format::DType::F32;
  double flops = compiled.facts.modelFlops, ranks = double(compiled.bundle->manifest.ranks.size());
  if (flops <= 0 || stepNs <= 0)
    return std::nullopt;
  return Utilization{flops, 1e9 * flops / double(stepNs) / ranks, peakOf(planned.hardware, element), type,
                     planned.hardware.name};
}

std::optional<double> gainOfBf16(const PlannedModel &planned) {
  const Plan &plan = planned.plan.plan;
  if (*plan.target.device != "cuda" || plan.precision.compute.given())
    return std::nullopt;
  double gain = peakOf(planned.hardware, format::DType::BF16) / peakOf(planned.hardware, format::DType::F32);
  return gain > 1 ? std::optional(gain) : std::nullopt;
}

int64_t launchPermille(const Simulation &simulation, const CostTable &costs) {
  std::vector<int64_t> ranksOf = ranksOfClasses(simulation);
  int64_t begin = costs.kernel(0).ns, ns = 0; // of one without work
  for (const PlayedInstruction &node : simulation.instructions)
    if (!node.communication)
      ns += std::min(node.duration, begin) * ranksOf[simulation.classOf[node.rank]];
  int64_t all = simulation.step * int64_t(simulation.ranks.size());
  return all > 0 ? std::min(ns * 1000 / all, simulation.computePermille()) : 0;
}

} // namespace par
