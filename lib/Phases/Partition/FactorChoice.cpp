// Chooses the mesh axes that shard each factor of an op: of the votes of its operands and results the combination whose
// reshards and reductions take the least predicted time. An axis that shards several factors in these votes goes to the
// one that most have it on and, in turn, to one along which rows are addressed.
#include "FactorChoice.h"

#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Interfaces/Timed.h"

using namespace mlir;

namespace par {
namespace {

/// ns; on a tie, the choice with more shards.
struct ChoiceCost {
  int64_t time = 0, parts = 1;
  bool operator<(const ChoiceCost &other) const { return time != other.time ? time < other.time : parts > other.parts; }
};

/// The axes of each factor in one operand or result.
struct Vote {
  SmallVector<Axes> axes;
  SmallVector<bool> holds; ///< factors that it has
  int64_t bytes = 0;
};

/// The factor that each axis may cut.
using Owners = llvm::SmallDenseMap<StringAttr, unsigned>;

/// Axes that one factor owns by most claims, and another, along which rows are addressed, claims too.
using Contests = llvm::MapVector<std::pair<unsigned, unsigned>, Axes>;

/// The choice that costs least of those considered.
struct CheapestChoice {
  std::optional<FactorChoice> choice;
  ChoiceCost cost;
};

class FactorChooser {
public:
  FactorChooser(Operation *op, const ShardingRule &rule, MeshAttr mesh, ReshardPaths &paths,
                const ReshardedValues &there, ArrayRef<std::string> gathered)
      : op(op), rule(rule), mesh(mesh), paths(paths), there(there), gathered(gathered), cost(getCost(op)) {}

  FactorChoice choose();

private:
  /// More than these are not compared: the factors with most candidates lose their last.
  static constexpr size_t maxChoices = 1024;

  Vote voteOf(Value value, ArrayRef<DimFactors> dims);
  SmallVector<Vote> listVotes();
  SmallVector<SmallVector<Axes>> listCandidates(ArrayRef<Vote> votes, const Owners &owners);
  void consider(SmallVector<SmallVector<Axes>> candidates, bool only, CheapestChoice &best);
  FactorChoice complete(SmallVector<Axes> factorAxes);
  SmallVector<Axes> chooseOperandSums(ArrayRef<Axes> factorAxes, Axes &carried);
  ShardingAttr shardingOf(ArrayRef<DimFactors> dims, ArrayRef<Axes> factorAxes, ArrayRef<StringAttr> sums);
  ChoiceCost costOf(const FactorChoice &choice);
  int64_t reductionTime(const FactorChoice &choice);

  Operation *op;
  const ShardingRule &rule;
  MeshAttr mesh;
  ReshardPaths &paths;
  const ReshardedValues &there;
  ArrayRef<std::string> gathered;
  OpCost cost;
};

} // namespace

static bool isIndexedSum(const ShardingRule &rule, unsigned factor) {
  if (rule.factors[factor].kind != FactorKind::Indexed)
    return false;
  return llvm::none_of(rule.results, [&](auto &dims) {
    return llvm::any_of(dims, [&](const DimFactors &dim) { return llvm::is_contained(dim, factor); });
  });
}

static RankedTensorType globalType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Composites whose shardings ask for it have been taken apart before.
static bool canBeCut(const ShardingRule &rule, unsigned factor) {
  return rule.factors[factor].kind != FactorKind::NeedReplication && rule.factors[factor].kind != FactorKind::Decompose;
}

/// In a compound dim, a minor factor can be sharded only if the major ones are sharded completely, and none unevenly.
/// Drops other axes from the factor, in all tensors.
static bool alignCompounds(ArrayRef<DimFactors> dims, const ShardingRule &rule, MeshAttr mesh,
                           MutableArrayRef<Axes> factorAxes) {
  bool changed = false;
  for (const DimFactors &dim : dims) {
    if (dim.size() < 2)
      continue;
    bool open = true;
    for (unsigned factor : dim) {
      Axes &axes = factorAxes[factor];
      int64_t left = rule.factors[factor].size;
      size_t keep = 0;
      for (; open && keep < axes.size() && left % mesh.getSize(axes[keep]) == 0; ++keep)
        left /= mesh.getSize(axes[keep]);
      changed |= keep < axes.size();
      axes.truncate(keep);
      open &= left == 1;
    }
  }
  return changed;
}

/// Reads the axes of each factor off a tensor's sharding.
Vote FactorChooser::voteOf(Value value, ArrayRef<DimFactors> dims) {
  Vote vote;
  vote.axes.resize(rule.factors.size());
  vote.holds.resize(rule.factors.size());
  projectToFactors(rule, dims, getDimAxes(getSharding(value)), mesh, vote.axes);
  for (const DimFactors &dim : dims)
    for (unsigned factor : dim)
      vote.holds[factor] = true;
  vote.bytes = getByteSize(getSharding(value).getLocalType(globalType(value), mesh)); // bytes that a rank would move
  return vote;
}

SmallVector<Vote> FactorChooser::listVotes() {
  SmallVector<Vote> votes;
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
    votes.push_back(voteOf(operand, dims));
  for (auto [result, dims] : llvm::zip(op->getResults(), rule.results))
    votes.push_back(voteOf(result, dims));
  return votes;
}

/// Claims are counted in tensors, then in bytes.
static Owners findOwners(const ShardingRule &rule, ArrayRef<Vote> votes, ArrayRef<std::string> gathered,
                         Contests &contests) {
  using Claim = std::pair<int64_t, int64_t>;
  llvm::MapVector<StringAttr, SmallVector<Claim>> claims;
  for (const Vote &vote : votes)
    for (auto [factor, axes] : llvm::enumerate(vote.axes))
      for (StringAttr axis : axes) {
        if (!canBeCut(rule, factor))
          continue;
        SmallVector<Claim> &list = claims[axis];
        list.resize(rule.factors.size());
        ++list[factor].first;
        list[factor].second += vote.bytes;
      }
  Owners owners;
  for (auto &[axis, list] : claims) {
    unsigned owner = owners[axis] = std::max_element(list.begin(), list.end()) - list.begin();
    if (llvm::is_contained(gathered, axis.getValue()))
      continue;
    for (auto [factor, claim] : llvm::enumerate(list))
      if (factor != owner && claim.first && rule.factors[factor].kind == FactorKind::Indexed)
        contests[{owner, factor}].push_back(axis);
  }
  return owners;
}

/// The candidate axes of each factor, each once; only "none" for a factor that cannot be sharded.
SmallVector<SmallVector<Axes>> FactorChooser::listCandidates(ArrayRef<Vote> votes, const Owners &owners) {
  SmallVector<SmallVector<Axes>> candidates(rule.factors.size());
  for (const Vote &vote : votes)
    for (unsigned factor = 0; factor < rule.factors.size(); ++factor) {
      if (!vote.holds[factor] || !canBeCut(rule, factor))
        continue;
      Axes axes = vote.axes[factor];
      axes.erase(llvm::find_if(axes, [&](StringAttr axis) { return owners.lookup(axis) != factor; }), axes.end());
      if (!llvm::is_contained(candidates[factor], axes))
        candidates[factor].push_back(axes);
    }
  for (SmallVector<Axes> &list : candidates)
    if (list.empty())
      list.emplace_back();
  return candidates;
}

ShardingAttr FactorChooser::shardingOf(ArrayRef<DimFactors> dims, ArrayRef<Axes> factorAxes,
                                       ArrayRef<StringAttr> sums) {
  SmallVector<DimShardingAttr> entries;
  for (const DimFactors &dim : dims)
    entries.push_back(DimShardingAttr::get(op->getContext(), axesOfDim(rule, dim, factorAxes, mesh), false));
  return ShardingAttr::get(op->getContext(), entries, sums);
}

/// The axes over which each operand stays unreduced. In a linear set of one operand: those over which the result is
/// declared unreduced. In a larger set, all operands take the result's axes, and operands that are all unreduced are
/// added before they are reduced. `carried`: the axes over which the result is unreduced then.
SmallVector<Axes> FactorChooser::chooseOperandSums(ArrayRef<Axes> factorAxes, Axes &carried) {
  SmallVector<Axes> sums(op->getNumOperands());
  if (op->getNumResults() != 1)
    return sums;
  ArrayRef<StringAttr> declared = getSharding(op->getResult(0)).getUnreduced();
  auto sumsOf = [&](unsigned operand) { return getSharding(op->getOperand(operand)).getUnreduced(); };
  for (auto &set : rule.linear)
    for (unsigned operand : set)
      for (StringAttr axis : sumsOf(operand)) {
        bool all = set.size() > 1 &&
                   llvm::all_of(set, [&](unsigned other) { return llvm::is_contained(sumsOf(other), axis); });
        bool cuts = llvm::any_of(factorAxes, [&](const Axes &axes) { return llvm::is_contained(axes, axis); });
        // Only one factor of a multiplication may be unreduced: the first that is.
        bool taken = llvm::is_contained(carried, axis) && !llvm::is_contained(sums[operand], axis);
        if (cuts || taken || !(all || llvm::is_contained(declared, axis)))
          continue;
        for (unsigned member : set)
          if (!llvm::is_contained(sums[member], axis))
            sums[member].push_back(axis);
        if (!llvm::is_contained(carried, axis))
          carried.push_back(axis);
      }
  return sums;
}

/// Completes a choice: each axis shards only the first factor that has it, and operands and results follow from the
/// factors.
FactorChoice FactorChooser::complete(SmallVector<Axes> factorAxes) {
  llvm::SmallDenseSet<StringAttr> used;
  for (Axes &axes : factorAxes)
    for (size_t i = 0; i < axes.size(); ++i)
      if (!used.insert(axes[i]).second)
        axes.truncate(i);
  for (bool changed = true; changed;) {
    changed = false;
    for (ArrayRef<SmallVector<DimFactors>> tensors : {ArrayRef(rule.operands), ArrayRef(rule.results)})
      for (const SmallVector<DimFactors> &dims : tensors)
        changed |= alignCompounds(dims, rule, mesh, factorAxes);
  }
  FactorChoice choice;
  Axes carried;
  SmallVector<Axes> sums = chooseOperandSums(factorAxes, carried);
  for (auto [dims, mine] : llvm::zip(rule.operands, sums))
    choice.operands.push_back(shardingOf(dims, factorAxes, mine));
  for (auto [index, factor] : llvm::enumerate(rule.factors))
    if (factor.kind == FactorKind::Sum || isIndexedSum(rule, index))
      for (StringAttr axis : factorAxes[index])
        if (!llvm::is_contained(carried, axis))
          carried.push_back(axis);
  for (const SmallVector<DimFactors> &dims : rule.results)
    choice.results.push_back(shardingOf(dims, factorAxes, carried));
  choice.factorAxes = std::move(factorAxes);
  return choice;
}

/// ns of the maxima, minima and logical reductions over sharded factors, which are finished in place.
int64_t FactorChooser::reductionTime(const FactorChoice &choice) {
  int64_t time = 0;
  for (auto [factor, axes] : llvm::zip(rule.factors, choice.factorAxes)) {
    bool finished = factor.kind == FactorKind::Max || factor.kind == FactorKind::Min ||
                    factor.kind == FactorKind::And || factor.kind == FactorKind::Or;
    if (!finished || axes.empty())
      continue;
    for (auto [result, made] : llvm::zip(op->getResults(), choice.results)) {
      int64_t bytes = getByteSize(made.getLocalType(globalType(result), mesh));
      time += paths.reduceTime(bytes, mesh, axes);
    }
  }
  return time;
}

ChoiceCost FactorChooser::costOf(const FactorChoice &choice) {
  ChoiceCost sum;
  for (auto [operand, wanted] : llvm::zip(op->getOperands(), choice.operands))
    if (getSharding(operand) != wanted && !there.contains({operand, wanted}))
      sum.time += paths.find(globalType(operand), getSharding(operand), wanted, mesh).cost.time;
  for (auto [result, made] : llvm::zip(op->getResults(), choice.results))
    if (made != getSharding(result))
      sum.time += paths.find(globalType(result), made, getSharding(result), mesh).cost.time;
  for (const Axes &axes : choice.factorAxes)
    sum.parts *= mesh.getSize(axes);
  int64_t compute = cost.fusable ? paths.costs().operations(cost.flops) : timeOf(op, paths.costs()).ns;
  sum.time += compute / sum.parts + reductionTime(choice);
  return sum;
}

/// Compares all combinations of candidates; `only`: nothing else is considered.
void FactorChooser::consider(SmallVector<SmallVector<Axes>> candidates, bool only, CheapestChoice &best) {
  auto count = [&] {
    size_t product = 1;
    for (const SmallVector<Axes> &list : candidates)
      product *= list.size();
    return product;
  };
  while (count() > maxChoices)
    llvm::max_element(candidates, [](auto &one, auto &other) { return one.size() < other.size(); })->pop_back();
  for (size_t number = 0, end = count(); number < end; ++number) {
    SmallVector<Axes> factorAxes;
    size_t rest = number;
    for (const SmallVector<Axes> &list : candidates) {
      factorAxes.push_back(list[rest % list.size()]);
      rest /= list.size();
    }
    FactorChoice choice = complete(std::move(factorAxes));
    ChoiceCost mine = only && end == 1 ? ChoiceCost() : costOf(choice);
    if (best.choice && !(mine < best.cost))
      continue;
    best = {std::move(choice), mine};
  }
}

/// Contested axes go to their owner or to the other claimant, in every combination.
FactorChoice FactorChooser::choose() {
  SmallVector<Vote> votes = listVotes();
  Contests contests;
  Owners owners = findOwners(rule, votes, gathered, contests);
  CheapestChoice best;
  for (size_t number = 0, end = size_t(1) << contests.size(); number < end; ++number) {
    Owners given = owners;
    for (auto [place, contest] : llvm::enumerate(contests))
      for (StringAttr axis : contest.second)
        if (number >> place & 1)
          given[axis] = contest.first.second;
    consider(listCandidates(votes, given), end == 1, best);
  }
  return std::move(*best.choice);
}

FactorChoice chooseFactors(Operation *op, const ShardingRule &rule, MeshAttr mesh, ReshardPaths &paths,
                           const ReshardedValues &there, ArrayRef<std::string> gathered) {
  return FactorChooser(op, rule, mesh, paths, there, gathered).choose();
}

} // namespace par
