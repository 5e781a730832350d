// Plays a bundle with its ranks numbered by other orders of the mesh's axes. Programs are the same, and of the manifest
// the simulator reads which program a rank has and the groups of communicators: those get other numbers.
//
// The programs are those that were lowered for the first order. Choices by cost (chunks, levels, reshards) are made
// again for the order that is taken, when the plan is compiled with it.
#include "RankOrder.h"

#include "CostChoices.h"

#include "par/Base/MachineLevels.h"
#include "par/Compiler/Trial.h"

#include <set>

namespace par {

std::vector<PlanLevel> planLevels(const Hardware &hardware) {
  std::vector<PlanLevel> levels;
  for (const MachineLevel &level : levelsOf(hardware))
    levels.emplace_back(level.name, level.ranks);
  return levels;
}

PlanMeshOrder rankOrder(const Plan &plan, PlanAxes axes) {
  bool written = llvm::equal(axes, llvm::make_first_range(plan.mesh));
  return {{written ? PlanMeshOrder::Written : PlanMeshOrder::Given, Origin::automatic()},
          written ? PlanAxes() : std::move(axes)};
}

PlanMeshOrder firstRankOrder(const PlannedModel &planned) {
  const Plan &plan = planned.plan.plan;
  std::vector<PlanAxes> orders = fittingOrders(plan, planLevels(planned.hardware));
  return orders.empty() ? PlanMeshOrder() : rankOrder(plan, orders.front());
}

/// Gives ranks other numbers; `numbers` has each rank's.
static format::Manifest renumber(format::Manifest manifest, llvm::ArrayRef<int64_t> numbers) {
  std::vector<format::Rank> ranks(manifest.ranks.size());
  for (auto [rank, number] : llvm::enumerate(numbers))
    ranks[number] = manifest.ranks[rank];
  manifest.ranks = std::move(ranks);
  for (format::Communicator &communicator : manifest.communicators) {
    format::RankGroups::Lists groups = communicator.groups.lists();
    for (std::vector<uint32_t> &group : groups)
      for (uint32_t &rank : group)
        rank = static_cast<uint32_t>(numbers[rank]);
    communicator.groups = std::move(groups);
  }
  return manifest;
}

/// All that costs depend on: how each group lies on units.
static std::vector<int64_t> unitsOf(const format::Manifest &manifest, const Hardware &hardware) {
  std::vector<int64_t> units;
  for (const format::Communicator &communicator : manifest.communicators)
    for (const std::vector<uint32_t> &ranks : communicator.groups) {
      RankGroup group = hardware.groupOf(llvm::to_vector_of<int64_t>(ranks));
      llvm::append_range(units, std::initializer_list<int64_t>{group.members, group.hosts, group.fewest});
      for (const RankGroup::Units &wider : group.wider)
        llvm::append_range(units, std::initializer_list<int64_t>{wider.count, wider.fewest});
    }
  return units;
}

/// Numbers in `to` of the ranks that are numbered by `from`.
static std::vector<int64_t> numbersIn(const PlanMesh &mesh, const PlanMesh &from, const PlanMesh &to) {
  std::vector<int64_t> numbers(ranksOf(mesh));
  for (auto [old, fresh] : llvm::zip(numberRanks(mesh, from), numberRanks(mesh, to)))
    numbers[old] = fresh;
  return numbers;
}

std::optional<int64_t> playInOrder(Compiled &trial, const PlanAxes &order) {
  const Plan &plan = trial.planned.plan.plan;
  Plan other = plan;
  other.meshOrder = rankOrder(plan, order);
  format::Bundle &bundle = *trial.bundle;
  format::Manifest own = bundle.manifest;
  bundle.manifest = renumber(own, numbersIn(plan.mesh, plan.numberingMesh(), other.numberingMesh()));
  std::optional<int64_t> ns = playStep(trial.planned, bundle);
  bundle.manifest = std::move(own);
  return ns;
}

std::optional<RankOrderChoice> chooseRankOrder(Compiled &compiled) {
  const PlannedModel &planned = compiled.planned;
  const Plan &plan = planned.plan.plan;
  const Hardware &hardware = planned.hardware;
  format::Bundle &bundle = *compiled.bundle;
  const format::Manifest own = bundle.manifest;
  PlanMesh numbering = plan.numberingMesh();
  RankOrderChoice choice;
  std::set<std::vector<int64_t>> known;
  for (PlanAxes &axes : fittingOrders(plan, planLevels(hardware))) {
    Plan trial = plan;
    trial.meshOrder = rankOrder(plan, axes);
    bundle.manifest = renumber(own, numbersIn(plan.mesh, numbering, trial.numberingMesh()));
    ++choice.orders;
    if (!known.insert(unitsOf(bundle.manifest, hardware)).second)
      continue;
    std::optional<int64_t> ns = playStep(planned, bundle);
    if (!ns)
      return std::nullopt;
    choice.slowestNs = std::max(choice.slowestNs, *ns);
    if (choice.order.empty() || *ns < choice.ns) {
      choice.order = std::move(axes);
      choice.ns = *ns;
    }
    if (known.size() == 1)
      choice.firstNs = *ns;
  }
  bundle.manifest = own;
  choice.different = known.size();
  return choice.order.empty() ? std::nullopt : std::optional(std::move(choice));
}

} // namespace par
