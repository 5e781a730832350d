// Dijkstra's algorithm over the shardings of a value. Axes that both shardings name together are one unit, so that a
// mesh axis of eight ranks, which is three of size two, is one. There are seldom more than three units, and few states
// are cheaper than the target.
#include "par/Solver/Reshard/ReshardPath.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <set>

using namespace par;
using llvm::Error;

namespace {

using Units = std::vector<AxisList>;

class ReshardSearch {
public:
  explicit ReshardSearch(const ReshardProblem &problem);
  llvm::Expected<ReshardPath> run();

private:
  struct Step {
    ReshardCost cost;
    std::optional<std::pair<ReshardState, ReshardMove>> from; ///< none: the source
  };

  void relax(const ReshardState &before, ReshardKind kind, AxisList axes, const ReshardState &after);
  void visit(const ReshardState &state);
  void reduceSome(const ReshardState &state);
  void sliceSome(const ReshardState &state);
  void takeOff(const ReshardState &state, unsigned dim, ReshardState after, Units gone);
  void place(const ReshardState &before, ReshardKind kind, const AxisList &axes, const Units &units, size_t next,
             ReshardState after);
  void chooseShards(const ReshardState &before, ReshardKind kind, const AxisList &axes, unsigned dim,
                    ReshardState after);
  bool goesHome(unsigned dim, size_t kept, const AxisList &list) const;

  const ReshardProblem &problem;
  Units units;
  std::vector<bool> open; ///< per dim: whether it may be sharded on the way
  bool complete;
  std::map<ReshardState, Step> best;
  std::set<std::pair<ReshardCost, ReshardState>> queue;
};

} // namespace

/// The axis after `axis` in a list of lists; -1: none.
static int following(const std::vector<AxisList> &lists, unsigned axis) {
  for (const AxisList &list : lists)
    for (size_t i = 0; i + 1 < list.size(); ++i)
      if (list[i] == axis)
        return list[i + 1];
  return -1;
}

static bool appears(const std::vector<AxisList> &lists, unsigned axis) {
  return llvm::any_of(lists, [&](const AxisList &list) { return llvm::is_contained(list, axis); });
}

/// Axes that are consecutive on both sides, or on one side if the other shards by neither or is unreduced over both.
static Units findUnits(const ReshardProblem &problem) {
  std::vector<AxisList> from, to;
  for (const ReshardDim &dim : problem.dims) {
    from.push_back(dim.from);
    to.push_back(dim.to);
  }
  // `next` follows `last` on this side, or this side shards by neither and is unreduced over both or over none.
  auto together = [&](const std::vector<AxisList> &lists, const AxisList &sums, unsigned last, unsigned next,
                      bool &ordered) {
    if (appears(lists, last) || appears(lists, next)) {
      ordered = true;
      return following(lists, last) == int(next);
    }
    return llvm::is_contained(sums, last) == llvm::is_contained(sums, next);
  };
  Units units;
  for (unsigned axis = 0; axis < problem.axes.size(); ++axis)
    if (appears(from, axis) || appears(to, axis) || llvm::is_contained(problem.sums, axis))
      units.push_back({axis});
  for (size_t i = 0; i < units.size(); ++i)
    for (size_t j = 0; j < units.size(); ++j) {
      bool ordered = false;
      if (i == j || !together(from, problem.sums, units[i].back(), units[j].front(), ordered) ||
          !together(to, {}, units[i].back(), units[j].front(), ordered) || (!ordered && i > j))
        continue;
      units[i].insert(units[i].end(), units[j].begin(), units[j].end());
      units.erase(units.begin() + j);
      i = size_t(-1); // from the first again
      break;
    }
  return units;
}

ReshardSearch::ReshardSearch(const ReshardProblem &problem)
    : problem(problem), units(findUnits(problem)), open(problem.dims.size()),
      complete(units.size() <= problem.maxUnits) {
  // A dim that neither side shards can hold axes on the way; the largest such dim helps most.
  int largest = -1;
  for (auto [number, dim] : llvm::enumerate(problem.dims)) {
    open[number] = !dim.from.empty() || !dim.to.empty();
    if (!open[number] && (largest < 0 || dim.size > problem.dims[largest].size))
      largest = number;
  }
  if (largest >= 0)
    open[largest] = true;
}

/// Whether the appended axes are a subsequence of the target's.
bool ReshardSearch::goesHome(unsigned dim, size_t kept, const AxisList &list) const {
  const AxisList &to = problem.dims[dim].to;
  auto at = to.begin();
  for (size_t i = kept; i < list.size(); ++i) {
    at = std::find(at, to.end(), list[i]);
    if (at == to.end())
      return false;
  }
  return true;
}

void ReshardSearch::relax(const ReshardState &before, ReshardKind kind, AxisList axes, const ReshardState &after) {
  ReshardCost cost = best.at(before).cost + problem.costOf(kind, before, after);
  auto [at, fresh] = best.try_emplace(after, Step{cost, std::nullopt});
  if (!fresh && !(cost < at->second.cost))
    return;
  if (!fresh)
    queue.erase({at->second.cost, after});
  llvm::sort(axes);
  at->second = {cost, std::pair(before, ReshardMove{kind, std::move(axes), after})};
  queue.insert({cost, after});
}

/// All ways to append the units from `next` on to dims. Each way occurs once: a unit goes only before or after all
/// units appended earlier, or between two of them. A dim that loses axes in this move gains none.
void ReshardSearch::place(const ReshardState &before, ReshardKind kind, const AxisList &axes, const Units &some,
                          size_t next, ReshardState after) {
  if (next == some.size())
    return chooseShards(before, kind, axes, 0, std::move(after));
  for (unsigned dim = 0; dim < problem.dims.size(); ++dim) {
    size_t kept = before.axes[dim].size();
    if (!open[dim] || after.axes[dim].size() < kept)
      continue;
    // A unit is inserted between units, not into one.
    for (size_t at = kept; at <= after.axes[dim].size(); ++at) {
      bool within = at > kept && at < after.axes[dim].size() &&
                    llvm::any_of(
                        some,
                        [&](const AxisList &unit) {
                          auto found = llvm::find(unit, after.axes[dim][at]);
                          return found != unit.end() && found != unit.begin();
                        });
      if (within)
        continue;
      ReshardState more = after;
      more.axes[dim].insert(more.axes[dim].begin() + at, some[next].begin(), some[next].end());
      if (complete || goesHome(dim, kept, more.axes[dim]))
        place(before, kind, axes, some, next + 1, std::move(more));
    }
  }
}

/// All shards that dims from `dim` on may have after axes were appended.
void ReshardSearch::chooseShards(const ReshardState &before, ReshardKind kind, const AxisList &axes, unsigned dim,
                                 ReshardState after) {
  for (; dim < problem.dims.size(); ++dim) {
    AxisList more = appendedAxes(before.axes[dim], after.axes[dim]);
    if (more.empty())
      continue;
    if (!before.axes[dim].empty()) {
      if (before.shard[dim] % problem.sizeOf(more))
        return;
      after.shard[dim] = before.shard[dim] / problem.sizeOf(more);
      continue;
    }
    for (int64_t shard : problem.firstShards(dim, after.axes[dim])) {
      after.shard[dim] = shard;
      chooseShards(before, kind, axes, dim + 1, after);
    }
    return;
  }
  relax(before, kind, axes, after);
}

/// Calls `act` with every set of the units that is not empty, and their axes.
static void forSubsets(const Units &units, llvm::function_ref<void(const Units &, const AxisList &)> act) {
  for (unsigned set = 1; set < 1u << units.size(); ++set) {
    Units some;
    AxisList axes;
    for (auto [index, unit] : llvm::enumerate(units))
      if (set >> index & 1) {
        some.push_back(unit);
        axes.insert(axes.end(), unit.begin(), unit.end());
      }
    act(some, axes);
  }
}

void ReshardSearch::reduceSome(const ReshardState &state) {
  Units summed;
  for (const AxisList &unit : units)
    if (llvm::is_contained(state.sums, unit.front()))
      summed.push_back(unit);
  forSubsets(summed, [&](const Units &some, const AxisList &axes) {
    ReshardState after = state;
    llvm::erase_if(after.sums, [&](unsigned axis) { return llvm::is_contained(axes, axis); });
    relax(state, ReshardKind::AllReduce, axes, after);
    place(state, ReshardKind::ReduceScatter, axes, some, 0, after);
  });
}

void ReshardSearch::sliceSome(const ReshardState &state) {
  Units idle;
  for (const AxisList &unit : units)
    if (!appears(state.axes, unit.front()) && !llvm::is_contained(state.sums, unit.front()))
      idle.push_back(unit);
  forSubsets(idle,
             [&](const Units &some, const AxisList &axes) { place(state, ReshardKind::Slice, axes, some, 0, state); });
}

/// All ways to take units off the ends of the dims from `dim` on: gathered, or appended elsewhere.
void ReshardSearch::takeOff(const ReshardState &state, unsigned dim, ReshardState after, Units gone) {
  if (dim == problem.dims.size()) {
    if (gone.empty())
      return;
    AxisList axes;
    for (const AxisList &unit : gone)
      axes.insert(axes.end(), unit.begin(), unit.end());
    relax(state, ReshardKind::AllGather, axes, after);
    return place(state, ReshardKind::AllToAll, axes, gone, 0, std::move(after));
  }
  takeOff(state, dim + 1, after, gone);
  while (!after.axes[dim].empty()) {
    auto unit = llvm::find_if(units, [&](const AxisList &unit) { return unit.back() == after.axes[dim].back(); });
    after.axes[dim].resize(after.axes[dim].size() - unit->size());
    after.shard[dim] = after.axes[dim].empty() ? problem.dims[dim].size : after.shard[dim] * problem.sizeOf(*unit);
    gone.push_back(*unit);
    takeOff(state, dim + 1, after, gone);
  }
}

void ReshardSearch::visit(const ReshardState &state) {
  reduceSome(state);
  sliceSome(state);
  takeOff(state, 0, state, {});
}

llvm::Expected<ReshardPath> ReshardSearch::run() {
  ReshardState target = problem.target();
  best[problem.source()] = {};
  queue.insert({ReshardCost(), problem.source()});
  // This ends: a gathered and reduced value can always be sliced to the target.
  while (queue.begin()->second != target) {
    ReshardState state = queue.begin()->second;
    queue.erase(queue.begin());
    visit(state);
  }
  ReshardPath path;
  path.cost = best.at(target).cost;
  for (const Step *step = &best.at(target); step->from; step = &best.at(step->from->first))
    path.moves.push_back(step->from->second);
  std::reverse(path.moves.begin(), path.moves.end());
  return path;
}

llvm::Expected<ReshardPath> ReshardProblem::solve() const { return ReshardSearch(*this).run(); }
