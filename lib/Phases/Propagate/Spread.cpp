// Spreads axes along the ops' sharding rules, forwards and backwards, until nothing changes. An op is looked at again
// only when the layout of one of its values has changed: equal layouts spread equally.
#include "par/Phases/Propagate/Spread.h"

using namespace mlir;

namespace par {

Spread::Spread(StepOp step, ArrayRef<FragmentOp> fragments, const RulesOfOps &rules, Layouts &layouts)
    : layouts(layouts) {
  for (FragmentOp fragment : fragments)
    for (Operation &op : fragment.getBlock().without_terminator())
      if (auto rule = rules.find(&op); rule != rules.end())
        addOp(op, rule->second);
  step.walk([&](LoopOp loop) { addLoop(loop); });
}

void Spread::addOp(Operation &op, const ShardingRule &rule) {
  Visit visit{&rule, layouts.meshOf(op.getResult(0))};
  auto add = [&](ValueRange values, ArrayRef<SmallVector<DimFactors>> sides) {
    for (auto [value, dims] : llvm::zip(values, sides))
      visit.sides.push_back({&layouts.find(value), getTensorType(value.getType()), dims});
  };
  add(op.getOperands(), rule.operands);
  add(op.getResults(), rule.results);
  visits.push_back(std::move(visit));
}

void Spread::addLoop(LoopOp loop) {
  for (auto [operand, argument] : llvm::zip(loop.getSlices(), loop.getBody().getArguments().drop_front()))
    parts.push_back({operand, argument});
  auto yield = cast<YieldOp>(loop.getBody().front().getTerminator());
  for (auto [inner, outer, kind] :
       llvm::zip(yield.getOperands(), loop.getResults(), yield.getKinds().getAsRange<YieldKindAttr>()))
    if (kind.getValue() == YieldKind::stack)
      parts.push_back({outer, inner});
}

/// The axes of each factor that all sides of an op agree on. One axis shards one factor of an op; the first claim
/// stays.
SmallVector<Axes> Spread::mergeFactors(const Visit &visit) {
  const ShardingRule &rule = *visit.rule;
  SmallVector<Axes> merged(rule.factors.size());
  SmallVector<bool> conflict(rule.factors.size());
  for (const Visit::Side &side : visit.sides) {
    SmallVector<Axes> mine(rule.factors.size());
    projectToFactors(rule, side.dims, side.layout->dims, visit.mesh, mine);
    for (auto [all, one, clash] : llvm::zip(merged, mine, conflict)) {
      if (startsWith(one, all))
        all = one;
      else if (!startsWith(all, one))
        clash = true;
    }
  }
  llvm::SmallDenseMap<StringAttr, unsigned> owner;
  for (auto [index, axes] : llvm::enumerate(merged)) {
    if (conflict[index] || rule.factors[index].kind == FactorKind::NeedReplication)
      axes.clear();
    for (size_t i = 0; i < axes.size(); ++i)
      if (!owner.try_emplace(axes[i], index).second) {
        axes.truncate(i);
        break;
      }
  }
  return merged;
}

/// Carries axes along one rule, both ways; true if something changed.
bool Spread::spreadThrough(Visit &visit) {
  uint64_t before = std::exchange(visit.seen, layouts.now());
  if (llvm::all_of(visit.sides, [&](const Visit::Side &side) { return side.layout->changed <= before; }))
    return false;
  SmallVector<Axes> merged = mergeFactors(visit);
  bool changed = false;
  for (const Visit::Side &side : visit.sides)
    for (auto [dim, factors] : llvm::enumerate(side.dims))
      changed |=
          layouts.extend(*side.layout, side.type, visit.mesh, dim, axesOfDim(*visit.rule, factors, merged, visit.mesh));
  return changed;
}

/// A slice has the sharding of its operand without the first dim; a stacked result has the yielded value's after one
/// more dim.
bool Spread::spreadLoops() {
  bool changed = false;
  for (auto [whole, part] : parts)
    for (int64_t dim = 0, end = getTensorType(part.getType()).getRank(); dim < end; ++dim) {
      changed |= layouts.extend(part, dim, Axes(layouts.of(whole).dims[dim + 1]));
      changed |= layouts.extend(whole, dim + 1, Axes(layouts.of(part).dims[dim]));
      // A dim that is fixed in one is fixed in the other, since both must stay equal.
      bool ofWhole = layouts.of(whole).fixed[dim + 1], ofPart = layouts.of(part).fixed[dim];
      if (ofWhole != ofPart)
        layouts.change(ofWhole ? part : whole).fixed[ofWhole ? dim : dim + 1] = true;
    }
  return changed;
}

void Spread::settleLoops() {
  auto settle = [&](Axes &one, Axes &other) {
    auto [mine, theirs] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
    bool parted = mine != one.end() || theirs != other.end();
    one.erase(mine, one.end());
    other.erase(theirs, other.end());
    return parted;
  };
  bool changed = true;
  while (changed) {
    changed = false;
    for (auto [whole, part] : parts)
      for (int64_t dim = 0, end = getTensorType(part.getType()).getRank(); dim < end; ++dim)
        changed |= settle(layouts.change(whole).dims[dim + 1], layouts.change(part).dims[dim]);
  }
}

void Spread::run() {
  bool changed = true;
  while (changed) {
    changed = spreadLoops();
    for (Visit &visit : visits)
      changed |= spreadThrough(visit);
    for (Visit &visit : llvm::reverse(visits))
      changed |= spreadThrough(visit);
  }
}

} // namespace par
