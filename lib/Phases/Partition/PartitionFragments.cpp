// Rebuilds fragments on shards: each op gets its factors' axes (FactorChoice.h), operands are resharded to them,
// padding is masked if it would count, and reductions over sharded factors become collectives.
#include "FactorChoice.h"
#include "par/Phases/Partition/Passes.h"

#include <limits>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_PARTITIONFRAGMENTSPASS
#include "par/Phases/Partition/Passes.h.inc"

namespace {

/// Rebuilds one fragment on shards.
class Partitioner {
public:
  Partitioner(FragmentOp fragment, ReshardPaths &paths, ArrayRef<std::string> parameterAxes)
      : fragment(fragment), mesh(getMesh(fragment, fragment.getStageAttr())), builder(fragment.getContext()),
        paths(paths), parameterAxes(parameterAxes) {}

  LogicalResult run();

private:
  LogicalResult partition(Operation *op);
  Value operandAs(OpOperand &operand, ShardingAttr wanted);
  Value maskPadding(Operation *op, Value local, RankedTensorType global, ArrayRef<DimFactors> dims,
                    const ShardingRule &rule, ArrayRef<Axes> factorAxes);
  Value finishReduction(Operation *op, Value value, const ShardingRule &rule, ArrayRef<Axes> factorAxes);

  FragmentOp fragment;
  MeshAttr mesh;
  OpBuilder builder;
  ReshardPaths &paths;
  ArrayRef<std::string> parameterAxes; ///< a table is gathered over these
  DenseMap<Value, Value> local;
  /// Values brought into another sharding, once each.
  ReshardedValues resharded;
};

} // namespace

Value Partitioner::operandAs(OpOperand &operand, ShardingAttr wanted) {
  Value old = operand.get();
  Value &value = resharded[{old, wanted}];
  if (!value)
    value = buildReshard(builder, operand.getOwner()->getLoc(), local.lookup(old),
                         cast<RankedTensorType>(old.getType()), getSharding(old), wanted, mesh, paths);
  return value;
}

/// Neutral element of a factor's reduction.
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
           return factor.kind == FactorKind::Indexed || factor.kind == FactorKind::Decompose;
         });
}

/// The value with `neutral` in the padding of `dim`. In x * x it masks x, so that a sum of squares stays recognisable;
/// a builtin adds it in double precision.
static Value mask(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t size, const Axes &axes,
                  double neutral) {
  auto square = value.getDefiningOp<MultiplyOp>();
  if (neutral != 0 || !square || square.getLhs() != square.getRhs())
    return buildMask(builder, loc, value, dim, size, axes, neutral);
  Value masked = buildMask(builder, loc, square.getLhs(), dim, size, axes, neutral);
  return MultiplyOp::create(builder, loc, value.getType(), masked, masked);
}

/// Masks padding along a factor that the op reduces, and indices in padding, which must not point beyond a shard.
Value Partitioner::maskPadding(Operation *op, Value value, RankedTensorType global, ArrayRef<DimFactors> dims,
                               const ShardingRule &rule, ArrayRef<Axes> factorAxes) {
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    if (factors.size() != 1)
      continue; // compound dims are sharded evenly
    const Factor &factor = rule.factors[factors.front()];
    const Axes &axes = factorAxes[factors.front()];
    bool matters =
        addresses(global, rule) || (factor.kind != FactorKind::Parallel && factor.kind != FactorKind::Indexed);
    if (matters && global.getDimSize(dim) % mesh.getSize(axes))
      value = mask(builder, op->getLoc(), value, dim, global.getDimSize(dim), axes, neutralOf(factor.kind));
  }
  return value;
}

/// Finishes maxima, minima and logical reductions over a sharded factor in place; sums are left to the reshard.
Value Partitioner::finishReduction(Operation *op, Value value, const ShardingRule &rule, ArrayRef<Axes> factorAxes) {
  for (auto [factor, axes] : llvm::zip(rule.factors, factorAxes)) {
    std::optional<ReduceKind> kind;
    if (factor.kind == FactorKind::Max)
      kind = ReduceKind::max;
    if (factor.kind == FactorKind::Min)
      kind = ReduceKind::min;
    if (factor.kind == FactorKind::And)
      kind = ReduceKind::bitAnd;
    if (factor.kind == FactorKind::Or)
      kind = ReduceKind::bitOr;
    if (!kind || axes.empty())
      continue;
    value = AllReduceOp::create(builder, op->getLoc(), TypeRange{value.getType()}, value,
                                ReduceKindAttr::get(builder.getContext(), *kind), axesInOrder(builder, axes, mesh))
                .getResult(0);
  }
  return value;
}

LogicalResult Partitioner::partition(Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface)
    return op->emitError() << "has no sharding rule, so it cannot be cut";
  ShardingRule rule = interface.getShardingRule();
  FactorChoice choice = chooseFactors(op, rule, mesh, paths, resharded, parameterAxes);
  SmallVector<Value> operands;
  for (auto [index, operand] : llvm::enumerate(op->getOpOperands()))
    operands.push_back(maskPadding(op, operandAs(operand, choice.operands[index]),
                                   cast<RankedTensorType>(operand.get().getType()), rule.operands[index], rule,
                                   choice.factorAxes));
  SmallVector<RankedTensorType> types;
  for (auto [result, made] : llvm::zip(op->getResults(), choice.results))
    types.push_back(made.getLocalType(cast<RankedTensorType>(result.getType()), mesh));
  LocalizeContext context{mesh, operands, types, choice.operands, choice.results};
  FailureOr<SmallVector<Value>> results = interface.localize(builder, context);
  if (failed(results))
    return failure();
  for (auto [old, now, made] : llvm::zip(op->getResults(), *results, choice.results)) {
    Value value = finishReduction(op, now, rule, choice.factorAxes);
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
    RankedTensorType type = getSharding(argument).getLocalType(cast<RankedTensorType>(argument.getType()), mesh);
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
  auto fragment = FragmentOp::create(builder, reshard.getLoc(), name, builder.getFunctionType({inner}, {outer}),
                                     from.getStage().getValue(), FragmentKind::reduce);
  fragment.setLocal(true);
  builder.setInsertionPointToEnd(&fragment.getBlock());
  Value value = buildReshard(builder, reshard.getLoc(), fragment.getArgument(0), from.getTensor(), from.getSharding(),
                             to.getSharding(), mesh, paths);
  ReturnOp::create(builder, reshard.getLoc(), value);
  builder.setInsertionPoint(reshard);
  auto run = RunOp::create(builder, reshard.getLoc(), TypeRange{to}, name, reshard.getOperand());
  reshard.replaceAllUsesWith(run.getResult(0));
  reshard.erase();
}

namespace {
/// Reshard paths by the ranks of a stage, if their hosts matter.
class StagePaths {
public:
  explicit StagePaths(const CostTable &costs) : costs(costs) {}
  ReshardPaths &of(Operation *from, FlatSymbolRefAttr stage) {
    ArrayRef<int64_t> ranks;
    if (costs.hardware().hasHosts())
      ranks = SymbolTable::lookupNearestSymbolFrom<StageOp>(from, stage).getRanks();
    return known.try_emplace(ranks.vec(), costs, ranks).first->second;
  }

private:
  const CostTable &costs;
  std::map<std::vector<int64_t>, ReshardPaths> known;
};

struct PartitionFragmentsPass : impl::PartitionFragmentsPassBase<PartitionFragmentsPass> {
  using Base::Base;

  void runOnOperation() override {
    auto costs = CostTable::find(hardware);
    if (!costs) {
      getOperation().emitError() << llvm::toString(costs.takeError());
      return signalPassFailure();
    }
    StagePaths paths(*costs);
    SmallVector<std::string> gathered = llvm::to_vector(parameterAxes);
    for (FragmentOp fragment : getOperation().getOps<FragmentOp>())
      if (!fragment.getLocal() &&
          failed(Partitioner(fragment, paths.of(fragment, fragment.getStageAttr()), gathered).run()))
        return signalPassFailure();
    for (StepOp step : getOperation().getOps<StepOp>()) {
      SmallVector<ReshardOp> reshards;
      step.walk([&](ReshardOp reshard) { reshards.push_back(reshard); });
      for (auto [index, reshard] : llvm::enumerate(reshards))
        outlineReshard(reshard, index, paths.of(reshard, reshard.getType().getStage()));
    }
  }
};
} // namespace

} // namespace par
