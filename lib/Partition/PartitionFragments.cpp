#include "par/Partition/Passes.h"
#include "par/Partition/Reshard.h"
#include "par/Propagate/FactorAxes.h"

#include <limits>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_PARTITIONFRAGMENTSPASS
#include "par/Partition/Passes.h.inc"

namespace {

/// Rebuilds one fragment on shards.
class Partitioner {
public:
  Partitioner(FragmentOp fragment, ReshardPaths &paths)
      : fragment(fragment), mesh(getMesh(fragment, fragment.getStageAttr())), builder(fragment.getContext()),
        paths(paths) {}

  LogicalResult run();

private:
  LogicalResult partition(Operation *op);
  SmallVector<Axes> chooseFactorAxes(Operation *op, const ShardingRule &rule);
  SmallVector<Axes> chooseOperandSums(Operation *op, const ShardingRule &rule, ArrayRef<Axes> factorAxes,
                                      Axes &carried);
  ShardingAttr shardingOf(ArrayRef<DimFactors> dims, const ShardingRule &rule, ArrayRef<Axes> factorAxes,
                          ArrayRef<StringAttr> unreduced);
  Value operandAs(OpOperand &operand, ShardingAttr wanted);
  Value maskPadding(Operation *op, Value local, RankedTensorType global, ArrayRef<DimFactors> dims,
                    const ShardingRule &rule, ArrayRef<Axes> factorAxes);
  Value finishReduction(Operation *op, Value value, const ShardingRule &rule, ArrayRef<Axes> factorAxes);

  FragmentOp fragment;
  MeshAttr mesh;
  OpBuilder builder;
  ReshardPaths &paths;
  DenseMap<Value, Value> local;
  /// Values brought into another sharding, once each.
  DenseMap<std::pair<Value, Attribute>, Value> resharded;
};

} // namespace

static bool isIndexedSum(const ShardingRule &rule, unsigned factor) {
  if (rule.factors[factor].kind != FactorKind::Indexed)
    return false;
  return llvm::none_of(rule.results, [&](auto &dims) {
    return llvm::any_of(dims, [&](const DimFactors &dim) { return llvm::is_contained(dim, factor); });
  });
}

/// What it costs that a result is declared a sum over axes by which this factor could be cut, but is not:
/// elements of the results, once an axis.
static int64_t missedSums(Operation *op, const ShardingRule &rule, unsigned factor, const Axes &candidate,
                          ArrayRef<SmallVector<Axes>> votes) {
  if (rule.factors[factor].kind != FactorKind::Sum && !isIndexedSum(rule, factor))
    return 0;
  int64_t cost = 0;
  for (Value result : op->getResults())
    for (StringAttr axis : getSharding(result).getUnreduced())
      if (!llvm::is_contained(candidate, axis) &&
          llvm::any_of(votes, [&](auto &axes) { return llvm::is_contained(axes[factor], axis); }))
        cost += cast<RankedTensorType>(result.getType()).getNumElements();
  return cost;
}

/// Of a compound dim a minor factor can be cut only where the major ones are cut completely, and none
/// unevenly: what does not lie so is not cut, in no tensor.
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

/// Where tensors have one axis on different factors only one factor can be cut by it: that on which most tensors have
/// it, then that which moves the fewest elements. So weights that lie over the batch's axes are gathered, however large,
/// and what most of a model's values lie over stays where it is.
static llvm::SmallDenseMap<StringAttr, unsigned> findOwners(const ShardingRule &rule,
                                                            ArrayRef<SmallVector<Axes>> votes,
                                                            ArrayRef<int64_t> sizes) {
  using Claim = std::pair<int64_t, int64_t>; // tensors, elements
  llvm::MapVector<StringAttr, SmallVector<Claim>> claims;
  for (auto [tensor, size] : llvm::zip(votes, sizes))
    for (auto [factor, axes] : llvm::enumerate(tensor))
      for (StringAttr axis : axes) {
        if (rule.factors[factor].kind == FactorKind::Whole || rule.factors[factor].kind == FactorKind::Expand)
          continue;
        SmallVector<Claim> &list = claims[axis];
        list.resize(rule.factors.size());
        ++list[factor].first;
        list[factor].second += size;
      }
  llvm::SmallDenseMap<StringAttr, unsigned> owners;
  for (auto &[axis, list] : claims)
    owners[axis] = std::max_element(list.begin(), list.end()) - list.begin();
  return owners;
}

/// How the op computes: for each factor the axes that cut it, where operands and results disagree those that
/// move the fewest bytes.
SmallVector<Axes> Partitioner::chooseFactorAxes(Operation *op, const ShardingRule &rule) {
  size_t many = rule.factors.size();
  SmallVector<SmallVector<Axes>> votes; // one list a tensor
  SmallVector<SmallVector<bool>> has;
  SmallVector<int64_t> bytes;
  auto vote = [&](Value value, ArrayRef<DimFactors> dims) {
    SmallVector<Axes> axes(many);
    SmallVector<bool> holds(many, false);
    projectToFactors(rule, dims, getDimAxes(getSharding(value)), mesh, axes);
    for (const DimFactors &dim : dims)
      for (unsigned factor : dim)
        holds[factor] = true;
    votes.push_back(axes);
    has.push_back(holds);
    bytes.push_back(cast<RankedTensorType>(value.getType()).getNumElements());
  };
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
    vote(operand, dims);
  for (auto [result, dims] : llvm::zip(op->getResults(), rule.results))
    vote(result, dims);
  llvm::SmallDenseMap<StringAttr, unsigned> owners = findOwners(rule, votes, bytes);
  for (SmallVector<Axes> &tensor : votes)
    for (auto [factor, axes] : llvm::enumerate(tensor))
      for (size_t i = 0; i < axes.size(); ++i)
        if (auto owner = owners.find(axes[i]); owner != owners.end() && owner->second != factor)
          axes.truncate(i);
  SmallVector<Axes> chosen(many);
  llvm::SmallDenseSet<StringAttr> used;
  for (unsigned factor = 0; factor < many; ++factor) {
    // Composites whose shardings ask for it have been taken apart before.
    if (rule.factors[factor].kind == FactorKind::Whole || rule.factors[factor].kind == FactorKind::Expand)
      continue;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (auto [candidate, holds] : llvm::zip(votes, has)) {
      if (!holds[factor])
        continue;
      int64_t cost = 0;
      for (auto [other, otherHolds, size] : llvm::zip(votes, has, bytes))
        if (otherHolds[factor] && other[factor] != candidate[factor])
          cost += size;
      cost += missedSums(op, rule, factor, candidate[factor], votes);
      if (cost < least || (cost == least && candidate[factor].size() > chosen[factor].size())) {
        least = cost;
        chosen[factor] = candidate[factor];
      }
    }
    for (size_t i = 0; i < chosen[factor].size(); ++i)
      if (!used.insert(chosen[factor][i]).second) {
        chosen[factor].truncate(i); // one axis cuts one factor
        break;
      }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (ArrayRef<SmallVector<DimFactors>> tensors : {ArrayRef(rule.operands), ArrayRef(rule.results)})
      for (const SmallVector<DimFactors> &dims : tensors)
        changed |= alignCompounds(dims, rule, mesh, chosen);
  }
  return chosen;
}

ShardingAttr Partitioner::shardingOf(ArrayRef<DimFactors> dims, const ShardingRule &rule,
                                     ArrayRef<Axes> factorAxes, ArrayRef<StringAttr> unreduced) {
  SmallVector<DimShardingAttr> entries;
  for (const DimFactors &dim : dims)
    entries.push_back(
        DimShardingAttr::get(fragment.getContext(), axesOfDim(rule, dim, factorAxes, mesh), false));
  return ShardingAttr::get(fragment.getContext(), entries, unreduced);
}

Value Partitioner::operandAs(OpOperand &operand, ShardingAttr wanted) {
  Value old = operand.get();
  Value &value = resharded[{old, wanted}];
  if (!value)
    value = buildReshard(builder, operand.getOwner()->getLoc(), local.lookup(old),
                         cast<RankedTensorType>(old.getType()), getSharding(old), wanted, mesh, paths);
  return value;
}

/// Neutral element of what reduces a factor.
static double neutralOf(FactorKind kind) {
  double infinite = std::numeric_limits<double>::infinity();
  if (kind == FactorKind::Max)
    return -infinite;
  if (kind == FactorKind::Min)
    return infinite;
  return kind == FactorKind::And ? 1 : 0;
}

/// Integers by which the op addresses elements of another operand or of its result.
static bool addresses(RankedTensorType type, const ShardingRule &rule) {
  return type.getElementType().isInteger() && !type.getElementType().isInteger(1) &&
         llvm::any_of(rule.factors, [](const Factor &factor) {
           return factor.kind == FactorKind::Indexed || factor.kind == FactorKind::Expand;
         });
}

/// Padding along a factor that the op reduces must not count; what stands there must not address anything
/// beyond a shard.
Value Partitioner::maskPadding(Operation *op, Value value, RankedTensorType global, ArrayRef<DimFactors> dims,
                               const ShardingRule &rule, ArrayRef<Axes> factorAxes) {
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    if (factors.size() != 1)
      continue; // compound dims are cut evenly
    const Factor &factor = rule.factors[factors.front()];
    const Axes &axes = factorAxes[factors.front()];
    bool matters = addresses(global, rule) ||
                   (factor.kind != FactorKind::Parallel && factor.kind != FactorKind::Indexed);
    if (matters && global.getDimSize(dim) % mesh.getSize(axes))
      value =
          buildMask(builder, op->getLoc(), value, dim, global.getDimSize(dim), axes, neutralOf(factor.kind));
  }
  return value;
}

/// Maxima, minima and logical reductions over a cut factor are finished at once; sums are left to the
/// reshard.
Value Partitioner::finishReduction(Operation *op, Value value, const ShardingRule &rule,
                                   ArrayRef<Axes> factorAxes) {
  for (auto [factor, axes] : llvm::zip(rule.factors, factorAxes)) {
    std::optional<ReduceKind> kind;
    if (factor.kind == FactorKind::Max)
      kind = ReduceKind::max;
    if (factor.kind == FactorKind::Min)
      kind = ReduceKind::min;
    if (factor.kind == FactorKind::And)
      kind = ReduceKind::band;
    if (factor.kind == FactorKind::Or)
      kind = ReduceKind::bor;
    if (!kind || axes.empty())
      continue;
    value = AllReduceOp::create(builder, op->getLoc(), TypeRange{value.getType()}, value,
                                ReduceKindAttr::get(builder.getContext(), *kind),
                                axesInOrder(builder, axes, mesh))
                .getResult(0);
  }
  return value;
}

/// The axes over which each operand stays a sum here: if the result is declared one, an operand that is alone
/// in a linear set as it is, all those of a larger set over the result's axes. Those of a larger set that all
/// are sums are added before they are reduced. `carried`: over which the result is a sum then.
SmallVector<Axes> Partitioner::chooseOperandSums(Operation *op, const ShardingRule &rule,
                                                 ArrayRef<Axes> factorAxes, Axes &carried) {
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
        bool cuts =
            llvm::any_of(factorAxes, [&](const Axes &axes) { return llvm::is_contained(axes, axis); });
        // Of two factors of a product one may be a sum: the first that is.
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

LogicalResult Partitioner::partition(Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface)
    return op->emitError() << "has no sharding rule, so it cannot be cut";
  ShardingRule rule = interface.getShardingRule();
  SmallVector<Axes> factorAxes = chooseFactorAxes(op, rule);
  Axes carried;
  SmallVector<Axes> operandSums = chooseOperandSums(op, rule, factorAxes, carried);
  SmallVector<Value> operands;
  SmallVector<ShardingAttr> operandShardings, resultShardings;
  for (auto [index, operand] : llvm::enumerate(op->getOpOperands())) {
    ShardingAttr wanted = shardingOf(rule.operands[index], rule, factorAxes, operandSums[index]);
    Value value = operandAs(operand, wanted);
    operands.push_back(maskPadding(op, value, cast<RankedTensorType>(operand.get().getType()),
                                   rule.operands[index], rule, factorAxes));
    operandShardings.push_back(wanted);
  }
  for (auto [index, factor] : llvm::enumerate(rule.factors))
    if (factor.kind == FactorKind::Sum || isIndexedSum(rule, index))
      for (StringAttr axis : factorAxes[index])
        if (!llvm::is_contained(carried, axis))
          carried.push_back(axis);
  SmallVector<RankedTensorType> types;
  for (auto [result, dims] : llvm::zip(op->getResults(), rule.results)) {
    resultShardings.push_back(shardingOf(dims, rule, factorAxes, carried));
    types.push_back(resultShardings.back().getLocalType(cast<RankedTensorType>(result.getType()), mesh));
  }
  LocalizeContext context{mesh, operands, types, operandShardings, resultShardings};
  FailureOr<SmallVector<Value>> results = interface.localize(builder, context);
  if (failed(results))
    return failure();
  for (auto [old, now, made] : llvm::zip(op->getResults(), *results, resultShardings)) {
    Value value = finishReduction(op, now, rule, factorAxes);
    local[old] = buildReshard(builder, op->getLoc(), value, cast<RankedTensorType>(old.getType()), made,
                              getSharding(old), mesh, paths);
  }
  return success();
}

LogicalResult Partitioner::run() {
  Block &old = fragment.getBlock();
  Block *fresh = new Block;
  fragment.getBody().push_back(fresh);
  SmallVector<Type> results;
  for (BlockArgument argument : old.getArguments()) {
    RankedTensorType type =
        getSharding(argument).getLocalType(cast<RankedTensorType>(argument.getType()), mesh);
    local[argument] = fresh->addArgument(type, argument.getLoc());
  }
  builder.setInsertionPointToEnd(fresh);
  for (Operation &op : old.without_terminator())
    if (failed(partition(&op)))
      return failure();
  SmallVector<Value> values;
  for (Value result : old.getTerminator()->getOperands())
    values.push_back(local.lookup(result));
  ReturnOp::create(builder, old.getTerminator()->getLoc(), values);
  old.dropAllReferences();
  old.erase();
  for (Operation &op : *fresh) {
    if (isTensorOp(&op))
      op.setInherentAttr(builder.getStringAttr("shardings"), builder.getArrayAttr({}));
  }
  fragment.setFunctionType(builder.getFunctionType(fresh->getArgumentTypes(), ValueRange(values).getTypes()));
  fragment.setLocal(true);
  fragment.removeShardingsAttr();
  fragment.removeResultShardingsAttr();
  return success();
}

/// A step-level reshard becomes a run of a fragment that holds its collectives.
static void outlineReshard(ReshardOp reshard, unsigned index, ReshardPaths &paths) {
  DistType from = reshard.getOperand().getType(), to = reshard.getType();
  MeshAttr mesh = getMesh(reshard, from.getStage());
  auto step = reshard->getParentOfType<StepOp>();
  OpBuilder builder(step);
  Type inner = from.getSharding().getLocalType(from.getTensor(), mesh);
  Type outer = to.getSharding().getLocalType(to.getTensor(), mesh);
  std::string name = (step.getSymName() + "." + from.getStage().getValue() + ".reduce" + Twine(index)).str();
  auto fragment =
      FragmentOp::create(builder, reshard.getLoc(), name, builder.getFunctionType({inner}, {outer}),
                         from.getStage().getValue(), FragmentKind::reduce);
  fragment.setLocal(true);
  builder.setInsertionPointToEnd(&fragment.getBlock());
  Value value = buildReshard(builder, reshard.getLoc(), fragment.getArgument(0), from.getTensor(),
                             from.getSharding(), to.getSharding(), mesh, paths);
  ReturnOp::create(builder, reshard.getLoc(), value);
  builder.setInsertionPoint(reshard);
  auto run = RunOp::create(builder, reshard.getLoc(), TypeRange{to}, name, reshard.getOperand());
  reshard.replaceAllUsesWith(run.getResult(0));
  reshard.erase();
}

namespace {
struct PartitionFragmentsPass : impl::PartitionFragmentsPassBase<PartitionFragmentsPass> {
  using Base::Base;

  void runOnOperation() override {
    auto machine = Hardware::find(hardware);
    if (!machine) {
      getOperation().emitError() << llvm::toString(machine.takeError());
      return signalPassFailure();
    }
    ReshardPaths paths(*machine);
    for (FragmentOp fragment : getOperation().getOps<FragmentOp>())
      if (!fragment.getLocal() && failed(Partitioner(fragment, paths).run()))
        return signalPassFailure();
    for (StepOp step : getOperation().getOps<StepOp>()) {
      SmallVector<ReshardOp> reshards;
      step.walk([&](ReshardOp reshard) { reshards.push_back(reshard); });
      for (auto [index, reshard] : llvm::enumerate(reshards))
        outlineReshard(reshard, index, paths);
    }
  }
};
} // namespace

} // namespace par
