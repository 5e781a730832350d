// What each pattern of a plan matches: a rule that matches too much or too little is seen at once.
#include "Summary.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace par {

/// Every pattern that the plan holds, key by key as the file has them.
static std::vector<SaidPattern> patternsOf(const Plan &plan) {
  std::vector<SaidPattern> patterns;
  auto add = [&](const SaidPattern &pattern) { patterns.push_back(pattern); };
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
  if (plan.recompute.each)
    add(*plan.recompute.each);
  llvm::for_each(plan.offload.patterns, add);
  llvm::for_each(plan.precision.keep, add);
  return patterns;
}

/// "4 parameters: h.0.fc.weight and 3 more"; empty where there are none.
static std::string describe(ArrayRef<unsigned> found, StringRef what, llvm::function_ref<StringRef(unsigned)> nameOf) {
  if (found.empty())
    return "";
  std::string text =
      llvm::formatv("{0} {1}{2}: {3}", found.size(), what, found.size() == 1 ? "" : "s", nameOf(found.front()));
  return found.size() == 1 ? text : text + llvm::formatv(" and {0} more", found.size() - 1).str();
}

/// A recipe has rules for many families of models, most of which meet nothing of one.
static bool isOfRecipe(const SaidPattern &said, const Plan &plan) {
  return llvm::any_of(plan.recipes,
                      [&](const UsedRecipe &recipe) { return said.origin.file == recipe.name + ".yaml"; });
}

void printMatches(const ModelPlan &model, llvm::raw_ostream &os) {
  const NameTable &names = model.names;
  for (const SaidPattern &said : patternsOf(model.plan)) {
    PatternMatches matches = matchPattern(said.pattern, names);
    if (matches.empty() && isOfRecipe(said, model.plan))
      continue;
    auto nameIn = [](const auto &list) { return [&list](unsigned index) { return StringRef(list[index].name); }; };
    SmallVector<std::string> kinds{
        describe(matches.parameters, "parameter", nameIn(names.parameters)),
        describe(matches.modules, "module", [&](unsigned index) { return StringRef(names.modules[index]); }),
        describe(matches.nodes, "node", nameIn(names.nodes)), describe(matches.inputs, "input", nameIn(names.inputs)),
        describe(matches.outputs, "output", nameIn(names.outputs))};
    llvm::erase(kinds, "");
    os << "matches " << said.origin.comment() << ": " << said.pattern.text() << ": "
       << (kinds.empty() ? "nothing" : llvm::join(kinds, ", ")) << "\n";
  }
}

} // namespace par
