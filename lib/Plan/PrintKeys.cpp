// The table of plan keys as a page.
#include "par/Plan/Language/Schema.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <string>
#include <vector>

using namespace llvm;

namespace par {

std::string spellValues(StringRef values) {
  static constexpr std::pair<const char *, const char *> sorts[] = {
      {"<int>", "a whole number"},
      {"<number>", "a number"},
      {"<bool>", "true or false"},
      {"<size>", "a size (25MiB)"},
      {"<map>", "a mapping"},
      {"<list>", "a list"},
      {"<axis>", "an axis"},
      {"<axes>", "one axis or a list"},
      {"<meshes>", "a list of mappings of axes to sizes"},
      {"<symbol>", "a symbol"},
      {"<pattern>", "a pattern"},
      {"<patterns>", "a list of patterns"},
      {"<ints>", "a list of whole numbers"},
      {"<numbers>", "a list of numbers"},
      {"<elements>", "a list of numbers"},
      {"<arrays>", "a file of arrays (.safetensors)"},
      {"<text>", "a name"},
      {"<table>", "the path of a table (./mine.table)"},
      {"<init>", "zeros, ones, normal(s), uniform(a)"},
      {"<op>", "an op of a plugin (mine.update)"},
  };
  SmallVector<StringRef> alternatives;
  values.split(alternatives, '|');
  std::vector<std::string> words;
  for (StringRef alternative : alternatives) {
    if (alternative.starts_with("!"))
      continue;
    std::string word = alternative.str();
    for (auto [sort, name] : sorts)
      if (alternative == sort)
        word = name;
    words.push_back(word);
  }
  if (words.size() == 1)
    return words[0];
  std::string last = words.back();
  words.pop_back();
  return llvm::join(words, ", ") + " or " + last;
}

/// Writes `text` as one item of a list, no line of it longer than 120 columns.
static void appendItem(std::string &page, StringRef text) {
  constexpr size_t maxColumns = 120;
  std::string line = "-";
  for (StringRef word : split(text, ' ')) {
    if (line.size() + 1 + word.size() > maxColumns) {
      page += line + "\n";
      line = " ";
    }
    line += " " + word.str();
  }
  page += line + "\n";
}

/// "default `1`", or in words if the default depends on other keys.
static std::string spellFallback(StringRef fallback) {
  if (fallback.empty())
    return "";
  if (fallback.consume_front("(") && fallback.consume_back(")"))
    return "; default: " + fallback.str();
  return ("; default `" + fallback + "`").str();
}

static void appendKey(std::string &page, const PlanKey &key) {
  StringRef doc = key.doc;
  std::string values = spellValues(key.values);
  appendItem(page,
             ("**`" + Twine(key.path) + "`** (" + values + spellFallback(key.fallback) + "): " + doc + ".").str());
}

/// One item for each key that the reader refuses, and for each value of the others.
static void appendRefused(std::string &page) {
  for (const PlanKey &key : planKeys()) {
    if (StringRef(key.values) == "!")
      page += ("- `" + Twine(key.path) + "`\n").str();
    else
      for (StringRef value : split(key.values, '|'))
        if (value.consume_front("!"))
          page += ("- `" + Twine(key.path) + ": " + value + "`\n").str();
  }
}

std::string planKeysPage() {
  std::string page =
      "# Keys of a plan\n\nMade by `par-compile --print-keys` from lib/Plan/Language/Schema.cpp. Each key is followed"
      " by the values that it takes,\nits default and its meaning. A word in <> stands for an axis, a symbol, a "
      "pattern"
      " ([plan.md](plan.md) 1.2) or the index\nof a dim. [plan.md](plan.md) 1.3 explains the keys by topic.\n";
  for (const PlanKey &key : planKeys()) {
    StringRef path = key.path;
    if (StringRef(key.values) == "!")
      continue;
    if (!path.contains('.'))
      page += ("\n## " + path + "\n\n").str();
    appendKey(page, key);
  }
  page += "\n## Refused\n\nThe reader knows these and refuses them at their line ([roadmap.md](roadmap.md)):\n\n";
  appendRefused(page);
  return page;
}

} // namespace par
