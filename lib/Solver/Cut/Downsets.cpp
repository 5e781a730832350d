#include "Downsets.h"
#include "llvm/ADT/STLExtras.h"
#include <queue>

using namespace par;

Downsets::Downsets(const StageCutProblem &problem)
    : problem(problem), before(problem.nodes.size()), after(problem.nodes.size()), bondsOf(problem.nodes.size()) {
  for (const CutValue &value : problem.values)
    for (unsigned user : value.users)
      if (value.producer) {
        before[user].push_back(*value.producer);
        after[*value.producer].push_back(user);
      }
  for (const CutBond &bond : problem.bonds) {
    bondsOf[bond.first].push_back(&bond);
    bondsOf[bond.second].push_back(&bond);
  }
}

static unsigned otherOf(const CutBond &bond, unsigned node) { return bond.first == node ? bond.second : bond.first; }

Downset Downsets::extend(const Downset &set, unsigned node) const {
  Downset result = set;
  result.bits[node / 64] |= uint64_t(1) << (node % 64);
  ++result.size;
  result.work += problem.nodes[node].work;
  for (const CutBond *bond : bondsOf[node])
    if (set.has(otherOf(*bond, node)))
      result.work -= bond->less;
  result.weights += problem.nodes[node].weights;
  result.saved += problem.nodes[node].saved;
  return result;
}

bool Downsets::canAdd(const Downset &set, unsigned node) const {
  return !set.has(node) && llvm::all_of(before[node], [&](unsigned other) { return set.has(other); });
}

bool Downsets::mayMove(llvm::ArrayRef<unsigned> stageOf, unsigned node, unsigned stage) const {
  return llvm::all_of(before[node], [&](unsigned other) { return stageOf[other] <= stage; }) &&
         llvm::all_of(after[node], [&](unsigned other) { return stageOf[other] >= stage; });
}

/// Prefixes of the topological order that takes the first (0), the last (1) or the latest freed (2) node.
void Downsets::addPrefixes(unsigned choice, std::map<std::vector<uint64_t>, Downset> &found) const {
  size_t n = problem.nodes.size();
  std::vector<unsigned> waiting(n), ready;
  Downset set;
  set.bits.assign((n + 63) / 64, 0);
  for (unsigned node = 0; node < n; ++node) {
    waiting[node] = before[node].size();
    if (waiting[node] == 0)
      ready.push_back(node);
  }
  found.try_emplace(set.bits, set);
  while (!ready.empty()) {
    auto pick = choice == 0   ? llvm::min_element(ready)
                : choice == 1 ? llvm::max_element(ready)
                              : std::prev(ready.end());
    unsigned node = *pick;
    ready.erase(pick);
    set = extend(set, node);
    found.try_emplace(set.bits, set);
    for (unsigned user : after[node])
      if (--waiting[user] == 0)
        ready.push_back(user);
  }
}

void Downsets::collect() {
  Downset none;
  none.bits.assign((problem.nodes.size() + 63) / 64, 0);
  std::map<std::vector<uint64_t>, Downset> found{{none.bits, none}};
  std::queue<Downset> queue({none});
  while (!queue.empty() && found.size() <= problem.maxDownsets) {
    Downset set = std::move(queue.front());
    queue.pop();
    for (unsigned node = 0; node < problem.nodes.size(); ++node)
      if (canAdd(set, node)) {
        Downset next = extend(set, node);
        if (found.try_emplace(next.bits, next).second)
          queue.push(std::move(next));
      }
  }
  all = found.size() <= problem.maxDownsets;
  if (!all) {
    found.clear();
    for (unsigned choice : {0, 1, 2})
      addPrefixes(choice, found);
  }
  for (auto &[bits, set] : found)
    sets.push_back(set);
  llvm::sort(sets,
             [](const Downset &a, const Downset &b) { return std::tie(a.size, a.bits) < std::tie(b.size, b.bits); });
}

Crossing Downsets::crossingOf(const Downset &set) const {
  Crossing crossing;
  for (const CutValue &value : problem.values)
    if ((!value.producer || set.has(*value.producer)) &&
        llvm::any_of(value.users, [&](unsigned user) { return !set.has(user); }))
      crossing.values.push_back(&value);
  for (const CutBond &bond : problem.bonds)
    if (set.has(bond.first) != set.has(bond.second))
      crossing.bonds.push_back(&bond);
  return crossing;
}

StagePiece Downsets::piece(const Downset &from, const Downset &to, const Crossing &crossing) const {
  StagePiece result{to.work, to.weights - from.weights, to.saved - from.saved, 0, {}};
  result.work -= from.work;
  for (const CutBond *bond : crossing.bonds)
    if (to.has(bond->first) && to.has(bond->second))
      result.work += bond->less; // within `to`, and not within the stage
  result.transfers.assign(std::max<size_t>(1, problem.into.size()), 0);
  for (const CutValue *value : crossing.values) {
    auto inside = [&](unsigned user) { return to.has(user) && !from.has(user); };
    if (!llvm::any_of(value->users, inside))
      continue;
    auto earlier = [&](unsigned user) { return from.has(user); };
    if (value->producer)
      result.received += value->bytes;
    else
      result.weights += value->held;
    if (value->producer || llvm::any_of(value->users, earlier))
      for (auto [stage, time] : llvm::enumerate(result.transfers))
        time += problem.linkTime(*value, stage);
  }
  return result;
}

bool Downsets::fits(const StagePiece &piece, unsigned stage) const {
  return problem.limit.empty() ||
         piece.weights + problem.inFlightOf(stage) * (problem.shareOf(stage, piece.saved) + piece.received) <=
             problem.limit[stage];
}
