// A search for the order of all forwards, backwards and weight gradients under the problem's times, transfer time and
// memory limit (the aim of Qi et al. 2024, §3.1, with another heuristic). A policy and the problem determine an order
// (GreedyOrder.h): first one policy for all devices from a grid, then a climb that changes the policies of single
// devices. The hand-made orders within the limit compete. Trials are counted, not timed, and random numbers are seeded:
// equal problems have equal orders on every machine. There is no proof of optimality; the test compares with all
// orders.
#include "GreedyOrder.h"
#include "OrderPlay.h"
#include "llvm/ADT/STLExtras.h"
#include <random>

using namespace par;

/// That are ordered in all trials together: about half a second.
constexpr int64_t maxSlots = 8'000'000;

namespace {

class OrderSearch {
public:
  explicit OrderSearch(const OrderTableProblem &problem)
      : problem(problem), shape(problem.shape()),
        trials(std::clamp<int64_t>(maxSlots / (int64_t(3) * problem.stages * problem.microbatches), 40, 20'000)) {
    if (this->problem.limit.empty())
      this->problem.limit.assign(shape.devices, problem.stages);
  }

  llvm::Expected<std::vector<DeviceSlots>> run() {
    tryHandMade();
    tryGrid();
    climb();
    if (best.empty())
      return solverError("found no order within " + llvm::Twine(*llvm::min_element(problem.limit)) +
                         " activations a device; " + llvm::Twine(shape.chunks) + " are the fewest, one a stage");
    return std::move(best);
  }

private:
  using Score = std::pair<int64_t, int64_t>;

  Score score(int64_t makespan, int64_t longest) const {
    return problem.barrier ? Score(makespan, longest) : Score(longest, makespan);
  }
  bool trial(const OrderPolicy &policy);
  void tryHandMade();
  void tryGrid();
  void climb();
  void mutate(OrderPolicy &policy);
  unsigned below(unsigned count) { return random() % count; }

  OrderTableProblem problem;
  ScheduleShape shape;
  int64_t trials;
  std::mt19937 random;
  Score bestScore = {INT64_MAX, INT64_MAX}, policyScore = bestScore;
  std::vector<DeviceSlots> best;
  OrderPolicy bestPolicy;
};

} // namespace

/// Whether a policy is at least as good as the best one so far, which it then is.
bool OrderSearch::trial(const OrderPolicy &policy) {
  --trials;
  GreedyOrder order = orderGreedily(problem, policy);
  Score found = score(order.makespan, order.longest);
  if (!order.complete || found > policyScore)
    return false;
  policyScore = found;
  bestPolicy = policy;
  if (found < bestScore) {
    bestScore = found;
    best = std::move(order.orders);
  }
  return true;
}

/// Tries the folder's other schedules that have this placement, if they fit the memory limit.
void OrderSearch::tryHandMade() {
  for (const Schedule *schedule : getSchedules()) {
    if (!schedule->order || !schedule->weightsApart || schedule->placement != problem.placement() ||
        shape.chunks < schedule->minChunks || shape.chunks > schedule->maxChunks)
      continue;
    std::vector<DeviceSlots> orders;
    for (unsigned device = 0; device < shape.devices; ++device)
      orders.push_back(schedule->order(device, shape));
    llvm::Expected<OrderTable> table = problem.measure(orders);
    if (!table) {
      llvm::consumeError(table.takeError());
      continue;
    }
    if (Score found = score(table->makespan, table->longest); found < bestScore) {
      bestScore = found;
      best = std::move(orders);
    }
  }
}

/// Policies that are the same on all devices but for the warm-up, which is shorter by a constant from device to device.
void OrderSearch::tryGrid() {
  int64_t most = *llvm::max_element(problem.limit), left = trials / 2;
  std::vector<int64_t> warmups;
  for (int64_t warmup = 1; warmup <= most; warmup += std::max<int64_t>(1, most / 16))
    warmups.push_back(warmup);
  for (bool oldestFirst : {false, true})
    for (unsigned patience : {0, 5, 10, 2, 8, 15})
      for (bool alternates : {false, true})
        for (unsigned slope : {1, 0, 2})
          for (int64_t warmup : warmups) {
            if (left-- <= 0 || (oldestFirst && shape.chunks == 1))
              return;
            OrderPolicy policy;
            for (unsigned device = 0; device < shape.devices; ++device) {
              int64_t count = warmup + int64_t(slope) * (shape.devices - 1 - device);
              policy.push_back({1000 * problem.limit[device],
                                static_cast<unsigned>(std::min(count, problem.limit[device])), patience, alternates,
                                oldestFirst});
            }
            trial(policy);
          }
}

/// Changes one thing on one device.
void OrderSearch::mutate(OrderPolicy &policy) {
  unsigned device = below(shape.devices);
  DevicePolicy &own = policy[device];
  int64_t limit = problem.limit[device], step = int64_t(below(5)) - 2;
  switch (below(shape.chunks == 1 ? 4 : 5)) {
  case 0:
    own.warmup = std::clamp<int64_t>(own.warmup + step, 1, limit);
    break;
  case 1:
    own.patience = below(13);
    break;
  case 2:
    own.alternates = !own.alternates;
    break;
  case 3:
    own.room = std::clamp<int64_t>(own.room + 1000 * step, 1000, 1000 * limit);
    break;
  default:
    own.oldestFirst = !own.oldestFirst;
  }
}

/// Steps that are not worse are taken: many policies make one order.
void OrderSearch::climb() {
  while (trials > 0 && !bestPolicy.empty()) {
    OrderPolicy policy = bestPolicy;
    for (unsigned changes = 1 + below(2); changes > 0; --changes)
      mutate(policy);
    trial(policy);
  }
}

static llvm::Expected<std::vector<DeviceSlots>> autoOrders(const OrderTableProblem &problem) {
  return OrderSearch(problem).run();
}

namespace par::schedules {
extern const Schedule Auto;
const Schedule Auto = {
    .name = "auto",
    .summary = "the best order found of forwards, backwards and weight gradients within the memory limit",
    .solve = autoOrders,
    .weightsApart = true,
    .maxChunks = ~0u,
};
} // namespace par::schedules
