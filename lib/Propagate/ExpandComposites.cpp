#include "par/Interfaces/Decomposable.h"
#include "par/Propagate/FactorAxes.h"
#include "par/Propagate/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_EXPANDCOMPOSITESPASS
#include "par/Propagate/Passes.h.inc"

/// The first `expand` factor of the op that the shardings of its operands or results cut.
static std::optional<unsigned> findCutExpandFactor(Operation *op, const ShardingRule &rule, MeshAttr mesh) {
  auto cut = [&](Value value, ArrayRef<DimFactors> dims) -> std::optional<unsigned> {
    ShardingAttr sharding = getSharding(value);
    if (!sharding)
      return std::nullopt;
    SmallVector<Axes> axes(rule.factors.size());
    projectToFactors(rule, dims, getDimAxes(sharding), mesh, axes);
    for (auto [factor, list] : llvm::zip(llvm::seq<unsigned>(0, axes.size()), axes))
      if (!list.empty() && rule.factors[factor].kind == FactorKind::Expand)
        return factor;
    return std::nullopt;
  };
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
    if (auto factor = cut(operand, dims))
      return factor;
  for (auto [result, dims] : llvm::zip(op->getResults(), rule.results))
    if (auto factor = cut(result, dims))
      return factor;
  return std::nullopt;
}

static LogicalResult expandFragment(FragmentOp fragment) {
  MeshAttr mesh = getMesh(fragment, fragment.getStageAttr());
  for (Operation &op : llvm::make_early_inc_range(fragment.getBlock().without_terminator())) {
    auto interface = dyn_cast<ShardingRuleOpInterface>(op);
    if (!interface)
      continue;
    ShardingRule rule = interface.getShardingRule();
    std::optional<unsigned> factor = findCutExpandFactor(&op, rule, mesh);
    if (!factor)
      continue;
    auto composite = dyn_cast<DecomposableOpInterface>(op);
    if (!composite)
      return op.emitError() << "has its factor " << rule.factors[*factor].name
                            << " cut, and no decomposition to cut it in";
    OpBuilder builder(&op);
    op.replaceAllUsesWith(composite.decompose(builder));
    op.erase();
  }
  return success();
}

namespace {
struct ExpandCompositesPass : impl::ExpandCompositesPassBase<ExpandCompositesPass> {
  void runOnOperation() override {
    for (FragmentOp fragment : getOperation().getOps<FragmentOp>())
      if (failed(expandFragment(fragment)))
        return signalPassFailure();
  }
};
} // namespace

} // namespace par
