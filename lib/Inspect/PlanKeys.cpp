#include "par/Inspect/PlanKeys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

/// Takes the key off the begin of a line, which may be quoted, and the ":" after it.
static std::string takeKey(StringRef &line) {
  std::string key;
  if (line.consume_front("\"")) {
    for (; !line.empty() && line.front() != '"'; line = line.drop_front()) {
      line.consume_front("\\");
      key += line.front();
    }
    line = line.drop_front();
  } else {
    key = line.take_until([](char c) { return c == ':'; }).str();
    line = line.drop_front(key.size());
  }
  line.consume_front(":");
  return key;
}

/// Rules of recipes stand for the key `use`.
static bool isRuleOfRecipe(StringRef key, StringRef origin, const Plan &plan) {
  return key.starts_with("shard.") &&
         any_of(plan.recipes, [&](const UsedRecipe &recipe) { return origin.starts_with(recipe.name + ".yaml:"); });
}

/// The key `use`, which --print-plan replaces by what it stands for.
static KeyFact keyOfRecipes(const Plan &plan) {
  auto names = map_range(plan.recipes, [](const UsedRecipe &recipe) { return recipe.name; });
  return {"use", "[" + join(names, ", ") + "]", plan.recipes.front().use.comment()};
}

std::vector<KeyFact> listKeys(const ModelPlan &model) {
  constexpr size_t indent = 2; // of a level
  std::vector<KeyFact> keys;
  std::vector<std::string> path;
  const Plan &plan = model.plan;
  if (!plan.recipes.empty())
    keys.push_back(keyOfRecipes(plan));
  std::string text = plan.toText(/*origins=*/true);
  for (StringRef line : split(StringRef(text).rtrim(), '\n')) {
    size_t depth = line.find_first_not_of(' ') / indent;
    line = line.ltrim();
    path.resize(std::min(path.size(), depth));
    path.push_back(takeKey(line));
    auto [value, origin] = line.rsplit("  # ");
    if (value.trim().empty())
      continue;
    std::string key = join(path, ".");
    if (!isRuleOfRecipe(key, origin, plan))
      keys.push_back({std::move(key), value.trim().str(), origin.str()});
  }
  return keys;
}

} // namespace par
