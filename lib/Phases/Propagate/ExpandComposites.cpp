#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Phases/Propagate/FactorAxes.h"
#include "par/Phases/Propagate/Passes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_EXPANDCOMPOSITESPASS
#include "par/Phases/Propagate/Passes.h.inc"

/// The first `expand` factor of the op that the shardings of its operands or results shard.
static std::optional<unsigned> findCutExpandFactor(Operation *op, const ShardingRule &rule, MeshAttr mesh) {
  auto cut = [&](Value value, ArrayRef<DimFactors> dims) -> std::optional<unsigned> {
    ShardingAttr sharding = getSharding(value);
    if (!sharding)
      return std::nullopt;
    SmallVector<Axes> axes(rule.factors.size());
    projectToFactors(rule, dims, getDimAxes(sharding), mesh, axes);
    for (auto [factor, list] : llvm::zip(llvm::seq<unsigned>(0, axes.size()), axes))
      if (mesh.getSize(list) > 1 && rule.factors[factor].kind == FactorKind::Decompose)
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

/// Whether an op of the fragment was taken apart.
static FailureOr<bool> expandFragment(FragmentOp fragment) {
  bool expanded = false;
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
    expanded = true;
  }
  return expanded;
}

namespace {
struct ExpandCompositesPass : impl::ExpandCompositesPassBase<ExpandCompositesPass> {
  using ExpandCompositesPassBase::ExpandCompositesPassBase;

  FailureOr<bool> expandAll() {
    bool expanded = false;
    for (FragmentOp fragment : getOperation().getOps<FragmentOp>()) {
      FailureOr<bool> here = expandFragment(fragment);
      if (failed(here))
        return failure();
      expanded |= *here;
    }
    return expanded;
  }

  /// Ends: there is one composite less in every round.
  void runOnOperation() override {
    PropagateShardingsPassOptions again{llvm::to_vector(batchAxes),
                                        llvm::to_vector(parameterAxes),
                                        llvm::to_vector(gradientAxes),
                                        llvm::to_vector(stateAxes),
                                        minSize,
                                        gatherOnce,
                                        masters,
                                        llvm::to_vector(gradientRules),
                                        llvm::to_vector(stateRules),
                                        llvm::to_vector(priorities)};
    while (true) {
      FailureOr<bool> expanded = expandAll();
      if (failed(expanded))
        return signalPassFailure();
      if (!*expanded)
        return;
      OpPassManager manager(ModuleOp::getOperationName());
      manager.addPass(createPropagateShardingsPass(again));
      if (failed(runPipeline(manager, getOperation())))
        return signalPassFailure();
    }
  }
};
} // namespace

} // namespace par
