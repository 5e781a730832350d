// Plan files shipped with Par.
#include "par/Plan/Language/Tree.h"

using namespace llvm;

namespace par {

static constexpr std::pair<const char *, const char *> recipes[] = {
#include "par/Plan/Language/Recipes.inc"
};

std::optional<StringRef> recipeText(StringRef name) {
  for (auto [recipe, text] : recipes)
    if (name == recipe)
      return StringRef(text);
  return std::nullopt;
}

std::string recipeNames() {
  std::string names;
  for (auto [recipe, text] : recipes)
    names += (names.empty() ? "" : ", ") + std::string(recipe);
  return names;
}

} // namespace par
