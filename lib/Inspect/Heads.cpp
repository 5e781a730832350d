// Heads come from a dim that a reshape splits, (heads x size) into heads and size. An axis that shards that dim goes on
// to the heads only where it divides them.
#include "par/Inspect/Heads.h"
#include "LayerNames.h"

#include "par/Base/Provenance.h"
#include "par/Dialect/Attention.h"
#include "par/Dialect/Interfaces/ShardingRule.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace par {

/// Numbers of heads that attention in the fragment works on: dims that both operands of a matmul have, beyond the
/// first.
static llvm::SmallSet<int64_t, 4> findHeadCounts(FragmentOp fragment) {
  llvm::SmallSet<int64_t, 4> counts;
  for (Operation &op : fragment.getBlock()) {
    if (auto attention = dyn_cast<AttentionOp>(op))
      counts.insert(cast<RankedTensorType>(attention.getQuery().getType()).getDimSize(1));
    else if (auto dot = dyn_cast<DotOp>(op); dot && dot.getLhsBatching().size() > 1)
      for (int64_t dim : dot.getLhsBatching().drop_front())
        counts.insert(cast<RankedTensorType>(dot.getLhs().getType()).getDimSize(dim));
  }
  return counts;
}

static int64_t nearestDivisor(int64_t number, int64_t wanted) {
  int64_t best = 1;
  for (int64_t divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0 && std::abs(divisor - wanted) < std::abs(best - wanted))
      best = divisor;
  return best;
}

/// The cases of one dim, which is split into heads and others or made of them, sharded over axes in this order.
static void addCases(int64_t heads, ArrayRef<StringAttr> axes, MeshAttr mesh, StringRef module,
                     std::vector<UnshardedHeads> &cases) {
  llvm::MapVector<StringRef, UnshardedHeads> ofAxis; // the plan's tp is tp.0, tp.1 here
  int64_t left = heads;
  bool divides = true;
  for (StringAttr axis : axes) {
    StringRef name = axis.getValue().split('.').first;
    UnshardedHeads &found = ofAxis[name];
    int64_t size = mesh.getSize(axis);
    divides &= left % size == 0;
    found.degree *= size;
    if (divides) {
      left /= size;
      found.shards *= size;
    }
  }
  for (auto &[name, found] : ofAxis) {
    if (found.shards == found.degree)
      continue;
    found.module = module;
    found.axis = name;
    found.heads = heads;
    found.nearest = nearestDivisor(heads, found.degree);
    cases.push_back(found);
  }
}

/// `h.*.attn` for transformer.h.3.attn.
static std::string shortModule(StringRef module) {
  std::string name = inAnyLayer(module);
  size_t number = StringRef(name).find(".*");
  return number == StringRef::npos ? name : name.substr(StringRef(name).rfind('.', number) + 1);
}

std::vector<UnshardedHeads> findUnshardedHeads(ModuleOp module) {
  std::vector<UnshardedHeads> cases;
  for (FragmentOp fragment : module.getOps<FragmentOp>()) {
    llvm::SmallSet<int64_t, 4> counts = findHeadCounts(fragment);
    MeshAttr mesh = getMesh(fragment, fragment.getStageAttr());
    for (auto reshape : fragment.getBlock().getOps<ReshapeOp>()) {
      ShardingRule rule = cast<ShardingRuleOpInterface>(*reshape).getShardingRule();
      std::optional<Provenance> from = getProvenance(reshape.getLoc());
      auto look = [&](Value value, ArrayRef<DimFactors> dims) {
        for (auto [dim, factors] : llvm::enumerate(dims))
          if (factors.size() > 1 && counts.contains(rule.factors[factors.front()].size))
            addCases(rule.factors[factors.front()].size, getSharding(value).getAxes(dim), mesh,
                     from ? shortModule(from->module) : "", cases);
      };
      look(reshape.getOperand(), rule.operands[0]);
      look(reshape.getResult(), rule.results[0]);
    }
  }
  auto sameAs = [](const UnshardedHeads &one) {
    return [&one](const UnshardedHeads &other) {
      return std::tie(one.module, one.axis, one.heads) == std::tie(other.module, other.axis, other.heads);
    };
  };
  std::vector<UnshardedHeads> distinct;
  for (UnshardedHeads &found : cases)
    if (llvm::none_of(distinct, sameAs(found)))
      distinct.push_back(std::move(found));
  return distinct;
}

} // namespace par
