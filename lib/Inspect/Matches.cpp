// Matches of each pattern of a plan, so that a rule that matches too much or too little is seen at once.
#include "par/Inspect/Plan.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace par {

/// Every pattern that the plan holds, key by key as the file has them.
static std::vector<PatternWithOrigin> patternsOf(const Plan &plan) {
  std::vector<PatternWithOrigin> patterns;
  auto add = [&](const PatternWithOrigin &pattern) { patterns.push_back(pattern); };
  auto addNames = [&](const auto &rules) {
    for (const auto &rule : rules)
      add(rule.name);
  };
  addNames(plan.inputs);
  if (plan.train) {
    llvm::for_each(plan.train->freeze, add);
    if (plan.train->only)
      llvm::for_each(*plan.train->only, add);
    addNames(plan.train->tie);
    addNames(plan.train->init);
    addNames(plan.train->groups);
  }
  addNames(plan.shard);
  llvm::for_each(plan.pipeline.starts, add);
  if (plan.pipeline.repeat)
    add(*plan.pipeline.repeat);
  llvm::for_each(plan.recompute.patterns, add);
  llvm::for_each(plan.offload.patterns, add);
  llvm::for_each(plan.precision.keep, add);
  return patterns;
}

/// A recipe has rules for many families of models; in one model most of them match nothing.
static bool isOfRecipe(const PatternWithOrigin &said, const Plan &plan) {
  return llvm::any_of(plan.recipes,
                      [&](const UsedRecipe &recipe) { return said.origin.file == recipe.name + ".yaml"; });
}

std::vector<PatternMatch> findMatches(const ModelPlan &model) {
  const NameTable &names = model.names;
  std::vector<PatternMatch> all;
  for (const PatternWithOrigin &said : patternsOf(model.plan)) {
    PatternMatches matches = matchPattern(said.pattern, names);
    if (matches.empty() && isOfRecipe(said, model.plan))
      continue;
    PatternMatch match{said.origin.comment(), said.pattern.text().str(), {}};
    auto add = [&](const char *kind, ArrayRef<unsigned> found, llvm::function_ref<std::string(unsigned)> nameOf) {
      auto mapped = llvm::map_range(found, nameOf);
      if (!found.empty())
        match.kinds.push_back({kind, std::vector<std::string>(mapped.begin(), mapped.end())});
    };
    add("parameter", matches.parameters, [&](unsigned index) { return names.parameters[index].name; });
    add("module", matches.modules, [&](unsigned index) { return names.modules[index]; });
    add("node", matches.nodes, [&](unsigned index) { return names.nodes[index].name; });
    add("input", matches.inputs, [&](unsigned index) { return names.inputs[index].name; });
    add("output", matches.outputs, [&](unsigned index) { return names.outputs[index].name; });
    all.push_back(std::move(match));
  }
  return all;
}

} // namespace par
