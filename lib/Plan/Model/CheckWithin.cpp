// Axes that must not leave a node, collectives that must.
#include "par/Plan/Model/Plan.h"

namespace par {

void checkWithin(const Plan &plan, int64_t nodeRanks, PlanErrors &errors) {
  if (nodeRanks == 0 || *plan.ranks <= nodeRanks)
    return;
  for (const auto &[name, level] : plan.within) {
    int64_t apart = 1; // the last axis joins neighbours
    for (auto axis = plan.mesh.rbegin(); axis != plan.mesh.rend() && axis->first != name; ++axis)
      apart *= *axis->second;
    int64_t row = apart * plan.axisSize(name);
    // Ranks fill one node after the other, and rows begin at multiples of their length.
    if (nodeRanks % row != 0)
      errors.error(level.origin, PlanMessage::notWithin, name, plan.axisSize(name), apart, row, nodeRanks);
  }
}

void checkSharedCores(const Plan &plan, int64_t nodeRanks, PlanErrors &errors) {
  constexpr int64_t most = 2048;
  if (int64_t ranks = nodeRanks ? std::min(nodeRanks, *plan.ranks) : *plan.ranks; ranks > most)
    errors.error(plan.mesh.empty() ? plan.ranks.origin : plan.mesh.back().second.origin, PlanMessage::sharedCores,
                 ranks, *plan.target.hardware, most);
}

void checkHosts(const Plan &plan, int64_t nodeRanks, PlanErrors &errors) {
  if (nodeRanks == 0 || *plan.ranks <= nodeRanks || *plan.target.device != "cpu")
    return;
  int64_t hosts = (*plan.ranks + nodeRanks - 1) / nodeRanks;
  errors.warning(plan.target.hardware.origin, PlanMessage::cpuHosts, *plan.ranks, hosts, *plan.target.hardware,
                 nodeRanks);
}

void checkAlgorithm(const Plan &plan, int64_t nodeRanks, bool hasLinkBetween, PlanErrors &errors) {
  if (*plan.collectives.algorithm != "hierarchical")
    return;
  const Origin &origin = plan.collectives.algorithm.origin;
  std::string ranks = *plan.ranks == 1 ? "1 rank" : std::to_string(*plan.ranks) + " ranks";
  if (!hasLinkBetween)
    errors.error(origin, PlanMessage::algorithmNoLink, *plan.target.hardware);
  else if (*plan.ranks <= nodeRanks)
    errors.error(origin, PlanMessage::algorithmOneHost, ranks, *plan.target.hardware);
}

} // namespace par
