// Axes that must not leave a unit of the machine, collectives that must; and the orders of axes that keep them there.
#include "par/Plan/Model/Plan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

/// The ranks of a unit of the level that an axis must not leave; 0: all ranks. `node` is the innermost level, whatever
/// the file calls it.
static std::optional<int64_t> unitOf(StringRef level, ArrayRef<PlanLevel> levels) {
  auto found = llvm::find_if(levels, [&](const PlanLevel &known) { return known.first == level; });
  if (found == levels.end() && level == "node")
    found = levels.begin();
  return found == levels.end() ? std::nullopt : std::optional(found->second);
}

/// Neighbours on an axis are `apart` ranks from each other, and all of its ranks lie within `row` ranks.
struct AxisRow {
  int64_t apart = 1, row = 1;
};

static AxisRow rowOf(StringRef name, const PlanMesh &numbering) {
  int64_t apart = 1; // the last axis joins neighbours
  for (const auto &[axis, size] : llvm::reverse(numbering)) {
    if (axis == name)
      return {apart, apart * *size};
    apart *= *size;
  }
  return {};
}

/// Units are filled one after the other, and rows begin at multiples of their length.
static bool fits(const AxisRow &row, int64_t unit, int64_t ranks) {
  return unit == 0 || ranks <= unit || unit % row.row == 0;
}

/// Whether all axes stay where the plan says; a level that the machine lacks is reported elsewhere.
static bool allFit(const Plan &plan, const PlanMesh &numbering, ArrayRef<PlanLevel> levels) {
  return llvm::all_of(plan.within, [&](const auto &within) {
    return fits(rowOf(within.first, numbering), unitOf(*within.second, levels).value_or(0), ranksOf(numbering));
  });
}

/// The mesh's axes in `numbering`, with the places of those of several ranks taken by `order`.
static PlanMesh withOrder(const PlanMesh &numbering, ArrayRef<size_t> order) {
  PlanMesh ordered = numbering;
  size_t next = 0;
  for (auto &axis : ordered)
    if (*axis.second > 1)
      axis = numbering[order[next++]];
  return ordered;
}

static std::vector<PlanAxes> fittingOrdersOf(const Plan &plan, const PlanMesh &numbering, ArrayRef<PlanLevel> levels) {
  std::vector<size_t> order;
  for (auto [place, axis] : llvm::enumerate(numbering))
    if (*axis.second > 1)
      order.push_back(place);
  std::vector<PlanAxes> fitting;
  if (order.size() > maxOrderedAxes)
    return fitting;
  do {
    PlanMesh ordered = withOrder(numbering, order);
    if (auto names = llvm::make_first_range(ordered); allFit(plan, ordered, levels))
      fitting.emplace_back(names.begin(), names.end());
  } while (std::next_permutation(order.begin(), order.end()));
  return fitting;
}

std::vector<PlanAxes> fittingOrders(const Plan &plan, ArrayRef<PlanLevel> levels) {
  return fittingOrdersOf(plan, plan.numberingMesh(), levels);
}

/// The way out for an axis that leaves its unit of `unit` ranks: another order, else the largest size with which some
/// order fits.
static std::string wayOut(const Plan &plan, StringRef name, int64_t unit, ArrayRef<PlanLevel> levels) {
  if (std::vector<PlanAxes> orders = fittingOrders(plan, levels); !orders.empty())
    return "mesh_order: [" + llvm::join(orders.front(), ", ") + "] keeps it inside";
  PlanMesh numbering = plan.numberingMesh();
  auto axis = llvm::find_if(numbering, [&](const auto &known) { return known.first == name; });
  for (int64_t size = std::min(unit, *axis->second - 1); size > 1; --size) {
    axis->second.value = size;
    if (unit % size == 0 && !fittingOrdersOf(plan, numbering, levels).empty())
      return "no order of the axes keeps it inside; " + std::to_string(size) + " of it would fit";
  }
  return "put the axis after the others, or make it smaller";
}

void checkWithin(const Plan &plan, ArrayRef<PlanLevel> levels, PlanErrors &errors) {
  size_t ordered = llvm::count_if(plan.mesh, [](const auto &axis) { return *axis.second > 1; });
  bool chooses = *plan.meshOrder.kind == PlanMeshOrder::Auto;
  if (chooses && ordered > maxOrderedAxes)
    errors.error(plan.meshOrder.kind.origin, PlanMessage::orderTooMany, maxOrderedAxes, ordered);
  bool someFit = chooses && !fittingOrders(plan, levels).empty();
  for (const auto &[name, level] : plan.within) {
    std::optional<int64_t> unit = unitOf(*level, levels);
    AxisRow row = rowOf(name, plan.numberingMesh());
    if (!unit)
      errors.error(level.origin, PlanMessage::withinUnknown, name, *level, *plan.target.hardware,
                   llvm::join(llvm::map_range(levels, [](const PlanLevel &known) { return known.first; }), ", "));
    else if (!someFit && !fits(row, *unit, *plan.ranks))
      errors.error(level.origin, PlanMessage::notWithin, name, plan.axisSize(name), row.apart, row.row, *level, *unit,
                   wayOut(plan, name, *unit, levels));
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
