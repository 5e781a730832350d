// The least recomputation is below that of every dealing of layers under a limit: lib/Search/MemoryBound.h.
#include "../../lib/Search/MemoryBound.h"

#include "par/Search/Bound.h"
#include "par/Solver/Order/OrderTable.h"
#include "par/Solver/Schedules/Schedules.h"

#include "gtest/gtest.h"

#include <random>

using namespace par;

namespace {

/// Layers that save 1,000 bytes each: half of them cost 10 ns, further 300 bytes cost 900 ns. At a price of 0.1 ns a
/// byte the first half is recomputed, at 4 ns all of it.
ModelCost layersOf(int64_t count) {
  ModelCost cost;
  cost.layer.forward = 1000;
  cost.layer.backward = 2000;
  cost.layer.compute = 3000;
  cost.layer.params = 300;
  cost.layer.saved = 1000;
  cost.layer.kept = {1000, 500, 200};
  cost.layer.again = {0, 10, 910};
  cost.layer.prices = {0, 0.1, 4};
  cost.layers = count;
  return cost;
}

/// The least ns that a layer recomputes which keeps so many bytes; nothing: it cannot.
std::optional<double> againNs(double kept) {
  if (kept < 200)
    return std::nullopt;
  if (kept < 500)
    return 10 + 900 * (500 - kept) / 300;
  return kept < 1000 ? 10 * (1000 - kept) / 500 : 0;
}

/// The step where the stages have so many layers; nothing: it does not fit.
std::optional<int64_t> playDealing(const Candidate &candidate, const std::vector<int64_t> &layers, double limit) {
  OrderTableProblem problem;
  problem.schedule = candidate.schedule;
  problem.stages = problem.devices = candidate.stages;
  problem.microbatches = candidate.microbatches;
  bool apart = candidate.schedule == "zb-h1";
  for (auto [stage, count] : llvm::enumerate(layers)) {
    auto held = static_cast<double>(std::min<int64_t>(candidate.microbatches, candidate.stages - int64_t(stage)));
    auto own = static_cast<double>(count);
    std::optional<double> again = count ? againNs((limit - 300 * own) / held / own) : 0;
    if (!again)
      return std::nullopt;
    int64_t backward = 2000 * count + std::llround(*again * own);
    problem.forward.push_back(1000 * count);
    problem.weight.push_back(apart ? 1000 * count : 0);
    problem.backward.push_back(backward - problem.weight.back());
  }
  return llvm::cantFail(problem.solve()).makespan;
}

Machine oneHostMachine() {
  Hardware hardware;
  hardware.overlap = true;
  hardware.link = 1000;
  return Machine(hardware);
}

} // namespace

TEST(MemoryBound, IsBelowEveryDealingThatFits) {
  std::mt19937 random(5);
  double nearest = 1e9;
  size_t raised = 0, played = 0;
  for (int space = 0; space < 200; ++space) {
    Candidate candidate;
    candidate.stages = 1 + random() % 4;
    candidate.microbatches = 1 + random() % 10;
    candidate.schedule = candidate.stages == 1 ? "" : random() % 2 ? "1f1b" : "zb-h1";
    int64_t count = 4 + random() % 12;
    ModelCost cost = layersOf(count);
    uint64_t limit = uint64_t(count) * (400 + random() % 1500);
    Machine machine = oneHostMachine();
    int64_t free = *boundNs(candidate, cost, {}, machine, std::nullopt);
    std::optional<int64_t> bound = boundNs(candidate, cost, {}, machine, limit);
    raised += bound && *bound > free;
    for (int dealing = 0; dealing < 40; ++dealing) {
      std::vector<int64_t> layers(candidate.stages);
      for (int64_t layer = 0; layer < count; ++layer)
        ++layers[dealing ? random() % layers.size() : size_t(layer) % layers.size()];
      std::optional<int64_t> step = candidate.stages > 1 ? playDealing(candidate, layers, double(limit)) : std::nullopt;
      if (candidate.stages == 1)
        if (std::optional<double> again = againNs((double(limit) - 300.0 * double(count)) / double(count)))
          step = candidate.microbatches * count * (3000 + std::llround(*again));
      if (!step)
        continue;
      ++played;
      ASSERT_TRUE(bound) << describeCandidate(candidate);
      EXPECT_LE(*bound, *step + candidate.microbatches * count) // rounded ns
          << describeCandidate(candidate) << ", " << count << " layers, " << limit << " bytes";
      nearest = std::min(nearest, double(*step) / double(*bound));
    }
  }
  EXPECT_GE(raised, 50u);
  EXPECT_GE(played, 1000u);
  EXPECT_LT(nearest, 1.01);
}

TEST(MemoryBound, HoldsAsManyMicrobatchesAsTheSchedule) {
  for (const char *name : {"1f1b", "zb-h1", "interleaved"})
    for (unsigned stages = 2; stages <= 6; ++stages)
      for (unsigned times = 1; times <= 4; ++times) {
        Candidate candidate;
        candidate.schedule = name;
        candidate.stages = stages;
        candidate.chunks = candidate.schedule == "interleaved" ? 2 : 1;
        candidate.microbatches = times * stages;
        ModelCost cost = layersOf(4);
        Space space;
        MemoryBound bound(candidate, cost, space, 1000);
        const Schedule *schedule = findSchedule(name);
        for (unsigned device = 0; device < stages; ++device) {
          std::vector<int64_t> held(candidate.chunks);
          int64_t most = 0; // at a time, of the chunk that has fewest
          for (const ScheduleSlot &slot :
               schedule->order(device, {stages, unsigned(candidate.chunks), unsigned(candidate.microbatches)})) {
            held[slot.chunk] += slot.kind == SlotKind::Forward ? 1 : slot.kind == SlotKind::Backward ? -1 : 0;
            most = std::max(most, *std::min_element(held.begin(), held.end()));
          }
          EXPECT_LE(bound.inFlight(device), most) << name << ", stage " << device << " of " << stages;
          EXPECT_GE(bound.inFlight(device), 1);
        }
      }
}
