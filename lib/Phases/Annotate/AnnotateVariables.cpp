#include "PlanSource.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ANNOTATEVARIABLESPASS
#include "par/Phases/Annotate/Passes.h.inc"

/// For every dim of the stored shape the dims [first, last) of the variable's own: Import unfolds a dim into
/// parts.
static SmallVector<std::pair<int64_t, int64_t>> unfoldedDims(VariableOp variable) {
  ArrayRef<int64_t> own = variable.getTensorType().getShape();
  if (!variable.getStored())
    return llvm::to_vector(
        llvm::map_range(llvm::seq<int64_t>(own.size()), [](int64_t dim) { return std::make_pair(dim, dim + 1); }));
  SmallVector<std::pair<int64_t, int64_t>> groups;
  int64_t next = 0;
  for (int64_t size : cast<RankedTensorType>(*variable.getStored()).getShape()) {
    int64_t first = next;
    for (int64_t product = 1; next < int64_t(own.size()) && (product < size || next == first); ++next)
      product *= own[next];
    groups.push_back({first, next});
  }
  return groups;
}

/// Shards the variable by a rule on its stored shape.
static LogicalResult shardVariable(VariableOp variable, const ResolvedShard &rule, const Plan &plan, ModuleOp module) {
  SmallVector<std::pair<int64_t, int64_t>> groups = unfoldedDims(variable);
  SmallVector<int64_t> dimOf;
  // The first own dim of an unfolded dim counts the parts; the rule shards every part.
  for (auto [first, last] : groups)
    dimOf.push_back(last - first > 1 ? first + 1 : first);
  if (rule.blocks)
    for (const auto &[dim, axes] : rule.dims) {
      if (axes->empty() || **rule.blocks == 1)
        continue;
      auto [first, last] = groups[dim];
      int64_t parts = last - first > 1 ? variable.getTensorType().getDimSize(first) : 1;
      if (parts != **rule.blocks)
        return emitError(planLocation(rule.blocks->origin, module))
               << "blocks is " << **rule.blocks << ", and the graph takes dim " << dim << " of "
               << variable.getSymName() << " apart into " << parts
               << (parts == 1 ? " part; without blocks its rows are sharded in order, and a rank gathers the others "
                                "that it needs"
                              : " parts");
    }
  variable.setShardingAttr(buildSharding(plan, rule, variable.getTensorType().getRank(), dimOf, module.getContext()));
  return success();
}

/// The rule in the manifest's words. Xavier's and Kaiming's uniform rules, with PyTorch's defaults, become bounds that
/// depend on the fan-in and fan-out; nothing if the parameter has less than two dims.
static std::optional<std::string> initRule(StringRef rule, const NameTable::Parameter &parameter) {
  if (rule != "xavier" && rule != "kaiming")
    return rule.str();
  if (parameter.shape.size() < 2)
    return std::nullopt;
  double out = parameter.shape[0], in = parameter.shape[1], window = 1;
  if (!parameter.transposed.empty())
    std::swap(out, in);
  for (int64_t size : llvm::drop_begin(parameter.shape, 2))
    window *= size;
  double bound = std::sqrt(6 / (window * (rule == "xavier" ? in + out : in)));
  return llvm::formatv("uniform({0:e17})", bound).str();
}

namespace {
struct AnnotateVariablesPass : PlanPass<impl::AnnotateVariablesPassBase<AnnotateVariablesPass>> {
  using PlanPass::PlanPass;

  /// Marks untrained parameters as frozen and sets the initial values of weights.
  void setKinds(const ModelPlan &model, PlanErrors &errors) {
    const Plan &plan = model.plan;
    if (!plan.train)
      return;
    std::vector<bool> trained = resolveTrained(plan, model.names, errors);
    for (auto [parameter, train] : llvm::zip(model.names.parameters, trained))
      if (auto variable = getOperation().lookupSymbol<VariableOp>(parameter.name))
        if (variable.getKind() == VariableKind::parameter && !train)
          variable.setKind(VariableKind::frozen);
    for (const PlanInit &init : plan.train->init)
      for (unsigned index : resolveParameters(init.name, model.names, errors)) {
        const NameTable::Parameter &parameter = model.names.parameters[index];
        auto variable = getOperation().lookupSymbol<VariableOp>(parameter.name);
        if (!variable)
          continue;
        if (std::optional<std::string> rule = initRule(*init.rule, parameter))
          variable.setInit(*rule);
        else
          errors.error(init.rule.origin, PlanMessage::wrongValue, "train.init: " + *init.rule,
                       "parameters of two dims or more", parameter.name);
      }
  }

  LogicalResult apply(const ModelPlan &model) override {
    ModuleOp module = getOperation();
    PlanErrors errors;
    setKinds(model, errors);
    std::vector<ResolvedShard> rules = resolveShards(model.plan, model.names, errors);
    if (failed(emitPlanErrors(errors, module)))
      return failure();
    for (const ResolvedShard &rule : rules) {
      if (rule.kind != ResolvedShard::Parameter)
        continue;
      auto variable = module.lookupSymbol<VariableOp>(model.names.parameters[rule.index].name);
      if (variable && failed(shardVariable(variable, rule, model.plan, module)))
        return failure();
    }
    return success();
  }
};
} // namespace

std::unique_ptr<Pass> createAnnotateVariablesPass(const ModelPlan &plan) {
  return makePlanPass<AnnotateVariablesPass>(plan);
}

} // namespace par
