// Branch and bound over the classes of one connected part of the problem after the other. A branch is bounded by all
// savings that its undecided classes are members of, without the costs.
#include "par/Solver/Shard/ShardChoice.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace llvm;

namespace par {

int64_t savedBy(const ShardProblem &problem, const std::vector<bool> &sharded) {
  int64_t saved = 0;
  for (const ShardProblem::Effect &effect : problem.effects)
    if (any_of(effect.members, [&](size_t member) { return sharded[member]; }))
      saved += effect.ns;
  return saved;
}

namespace {

/// The search in one part.
class PartSearch {
public:
  PartSearch(const ShardProblem &problem, std::vector<size_t> members, ShardChoice &out);
  void run();

private:
  static constexpr size_t maxSteps = 200'000;

  void descend(size_t depth, int64_t saved, int64_t open);
  void tryBoth(size_t depth, int64_t saved, int64_t open);

  const ShardProblem &problem;
  ShardChoice &out;
  std::vector<size_t> order;
  std::map<size_t, std::vector<size_t>> effectsOf, enemiesOf; ///< by class
  std::vector<unsigned> met;                                  ///< by effect: members that are sharded
  std::vector<unsigned> undecided;                            ///< by effect: members that are not decided
  std::vector<bool> current, bestHere;
  int64_t most = 0, limit = 0;
  size_t steps = 0;
};

} // namespace

PartSearch::PartSearch(const ShardProblem &problem, std::vector<size_t> members, ShardChoice &out)
    : problem(problem), out(out), order(std::move(members)), met(problem.effects.size()),
      undecided(problem.effects.size()), current(problem.classes), bestHere(problem.classes) {
  std::map<size_t, int64_t> weight;
  for (auto [index, effect] : enumerate(problem.effects))
    for (size_t member : effect.members)
      if (is_contained(order, member)) {
        effectsOf[member].push_back(index);
        weight[member] += std::abs(effect.ns);
        ++undecided[index];
      }
  for (auto [one, other] : problem.conflicts) {
    enemiesOf[one].push_back(other);
    enemiesOf[other].push_back(one);
  }
  // The heavy ones first: their branches differ most.
  stable_sort(order, [&](size_t a, size_t b) { return weight[a] > weight[b]; });
}

void PartSearch::run() {
  int64_t open = 0;
  for (auto [effect, count] : zip(problem.effects, undecided))
    if (count)
      open += std::max<int64_t>(0, effect.ns);
  limit = open;
  descend(0, 0, open);
  if (steps < maxSteps)
    limit = most;
  for (size_t member : order)
    out.sharded[member] = bestHere[member];
  out.saved += most;
  out.atMost += limit;
}

/// `open`: savings that no sharded class has yet, and an undecided one may bring.
void PartSearch::descend(size_t depth, int64_t saved, int64_t open) {
  if (++steps >= maxSteps || saved + open <= most)
    return;
  if (saved > most) {
    most = saved;
    bestHere = current;
  }
  if (depth < order.size())
    tryBoth(depth, saved, open);
}

void PartSearch::tryBoth(size_t depth, int64_t saved, int64_t open) {
  size_t member = order[depth];
  auto isPositive = [&](size_t effect) { return problem.effects[effect].ns > 0; };
  for (size_t effect : effectsOf[member])
    --undecided[effect];
  if (none_of(enemiesOf[member], [&](size_t enemy) { return current[enemy]; })) {
    int64_t more = 0, closed = 0;
    for (size_t effect : effectsOf[member])
      if (met[effect]++ == 0) {
        more += problem.effects[effect].ns;
        closed += isPositive(effect) ? problem.effects[effect].ns : 0;
      }
    current[member] = true;
    descend(depth + 1, saved + more, open - closed);
    current[member] = false;
    for (size_t effect : effectsOf[member])
      --met[effect];
  }
  int64_t lost = 0;
  for (size_t effect : effectsOf[member])
    if (isPositive(effect) && !met[effect] && !undecided[effect])
      lost += problem.effects[effect].ns;
  descend(depth + 1, saved, open - lost);
  for (size_t effect : effectsOf[member])
    ++undecided[effect];
}

ShardChoice chooseShards(const ShardProblem &problem) {
  EquivalenceClasses<size_t> parts;
  for (size_t index = 0; index < problem.classes; ++index)
    parts.insert(index);
  for (const ShardProblem::Effect &effect : problem.effects)
    for (size_t member : effect.members)
      parts.unionSets(effect.members.front(), member);
  for (auto [one, other] : problem.conflicts)
    parts.unionSets(one, other);
  std::map<size_t, std::vector<size_t>> members; // by the first one, so that the order is that of the classes
  std::map<size_t, size_t> first;
  for (size_t index = 0; index < problem.classes; ++index)
    members[first.try_emplace(parts.getLeaderValue(index), index).first->second].push_back(index);
  ShardChoice out;
  out.sharded.assign(problem.classes, false);
  for (auto &[leader, part] : members)
    PartSearch(problem, part, out).run();
  return out;
}

} // namespace par
