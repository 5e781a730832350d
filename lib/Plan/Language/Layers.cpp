// Several plan files, recipes and --set laid over each other.
#include "par/Plan/Language/Schema.h"
#include "par/Plan/Language/Tree.h"
#include "par/format/PlainFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace par {

/// Keys that may be one word or a mapping, with the key that the word stands for: a mapping merged over the word keeps
/// it.
static StringRef shorthandKey(StringRef path, StringRef word) {
  if (path == "target" && word != "cpu" && word != "cuda")
    return "hardware";
  if (path.starts_with("mesh."))
    return "size";
  static constexpr std::pair<const char *, const char *> table[] = {
      {"target", "device"},           {"batch", "size"},      {"train.loss", "kind"}, {"train.optimizer", "kind"},
      {"train.optimizer.lr", "peak"}, {"train.clip", "norm"},
  };
  for (auto [key, inner] : table)
    if (path == key)
      return inner;
  return "";
}

static void mergeAt(PlanNode &base, const PlanNode &over, const std::string &path) {
  if (over.kind == PlanNode::Map && base.kind == PlanNode::Scalar && !shorthandKey(path, base.text).empty()) {
    PlanNode inner = base;
    base = PlanNode::map(inner.origin);
    base.entries.push_back({shorthandKey(path, inner.text).str(), inner.origin, inner});
  }
  if (over.kind != PlanNode::Map || base.kind != PlanNode::Map) {
    if (over.kind != PlanNode::Map) {
      base = over;
      return;
    }
    base = PlanNode::map(over.origin);
  }
  for (const PlanEntry &entry : over.entries) {
    PlanEntry *mine = base.find(entry.key);
    if (entry.value.kind == PlanNode::Null) {
      llvm::erase_if(base.entries, [&](const PlanEntry &old) { return old.key == entry.key; });
      continue;
    }
    if (!mine) {
      base.entries.push_back({entry.key, entry.origin, PlanNode()});
      mine = &base.entries.back();
    }
    mergeAt(mine->value, entry.value, path.empty() ? entry.key : path + "." + entry.key);
    mine->origin = entry.origin;
  }
}

void mergePlan(PlanNode &base, const PlanNode &over) { mergeAt(base, over, ""); }

void PlanLayers::addFile(StringRef path) {
  // A plan that uses itself, directly or through others, would be read forever.
  SmallString<128> real(path);
  sys::path::remove_dots(real, /*remove_dot_dot=*/true);
  if (llvm::is_contained(reading, real.str())) {
    errors.error(Origin{Origin::File, path.str(), 1, 1}, PlanMessage::useCycle, path);
    return;
  }
  // A file used by several files is read once, like a recipe. Otherwise n files that each use the previous one twice
  // would be read 2^n times.
  if (used && !usedFiles.insert(real).second)
    return;
  constexpr uint64_t most = 8 << 20;
  auto text = format::readPlainFile(path.str(), most);
  if (!text) {
    errors.error(Origin{Origin::Set, path.str(), 0, 0}, PlanMessage::cannotRead, path, text.message());
    return;
  }
  reading.push_back(real.str().str());
  if (auto layer = parsePlanYaml(*text, path, Origin::File, errors))
    addLayer(std::move(*layer), sys::path::parent_path(path));
  reading.pop_back();
}

void PlanLayers::addText(StringRef text, StringRef name) {
  if (auto layer = parsePlanYaml(text, name, Origin::File, errors))
    addLayer(std::move(*layer), sys::path::parent_path(name));
}

void PlanLayers::addLayer(PlanNode layer, StringRef folder) {
  if (layer.kind == PlanNode::Null)
    return;
  if (layer.kind != PlanNode::Map) {
    errors.error(layer.origin, PlanMessage::notAMapping, layer.describe());
    return;
  }
  if (const PlanEntry *use = layer.find("use")) {
    addUses(use->value, folder);
    llvm::erase_if(layer.entries, [](const PlanEntry &entry) { return entry.key == "use"; });
  }
  mergePlan(merged, layer);
  if (!used)
    mergePlan(own, layer);
}

void PlanLayers::addUses(const PlanNode &names, StringRef folder) {
  ++used;
  if (names.kind == PlanNode::List)
    for (const PlanNode &item : names.items)
      addUsed(item, folder);
  else if (names.kind != PlanNode::Null)
    errors.error(names.origin, PlanMessage::wrongValue, "use", "a list of plan files and recipes", names.describe());
  --used;
}

/// A list on the command line replaces those of the files: layers that these used are dropped, and their own keys
/// override the layers used now.
void PlanLayers::replaceUses(const PlanNode &names) {
  merged = PlanNode::map(Origin());
  usedRecipes.clear();
  usedFiles.clear();
  addUses(names, "");
  mergePlan(merged, own);
}

void PlanLayers::addUsed(const PlanNode &name, StringRef folder) {
  if (name.kind != PlanNode::Scalar) {
    errors.error(name.origin, PlanMessage::wrongValue, "use", "a list of plan files and recipes", name.describe());
    return;
  }
  StringRef text = name.text;
  if (text.contains('/') || text.ends_with(".yaml") || text.ends_with(".yml")) {
    SmallString<128> path(text);
    if (!sys::path::is_absolute(path) && !folder.empty()) {
      path = folder;
      sys::path::append(path, text);
    }
    if (sys::fs::exists(path) || name.origin.kind == Origin::Set)
      return addFile(path);
    errors.error(name.origin, PlanMessage::cannotRead, path, "No such file or directory");
    return;
  }
  std::optional<StringRef> recipe = recipeText(text);
  if (!recipe) {
    errors.error(name.origin, PlanMessage::unknownRecipe, text, recipeNames());
    return;
  }
  if (llvm::any_of(usedRecipes, [&](const UsedRecipe &recipe) { return recipe.name == text; }))
    return;
  usedRecipes.push_back({text.str(), name.origin});
  addText(*recipe, (text + ".yaml").str());
}

/// Splits `shard."mlp.c_fc.weight"={1: tp}` into its keys and the value; false if it has not that form.
static bool splitSetting(StringRef setting, SmallVectorImpl<std::string> &keys, StringRef &value) {
  std::string key;
  char quote = 0;
  for (size_t i = 0; i < setting.size(); ++i) {
    char c = setting[i];
    if (quote) {
      if (c == quote)
        quote = 0;
      else
        key += c;
      continue;
    }
    if (c == '"' || c == '\'') {
      quote = c;
      continue;
    }
    if (c != '.' && c != '=') {
      key += c;
      continue;
    }
    if (key.empty())
      return false;
    keys.push_back(key);
    key.clear();
    if (c == '=') {
      value = setting.substr(i + 1);
      return true;
    }
  }
  return false;
}

/// The name with the quotes that it lacks: `shard."pos.weight".0` for `shard.pos.weight.0`. Empty if it lacks none.
static std::string withQuotes(ArrayRef<std::string> keys) {
  for (const PlanKey &known : planKeys()) {
    StringRef table = known.path;
    if (!table.consume_back(".<pattern>"))
      continue;
    size_t depth = table.count('.') + 1;
    if (keys.size() < depth + 2 || llvm::join(keys.take_front(depth), ".") != table)
      continue;
    bool inner = llvm::any_of(planKeysBelow(known.path), [&](const PlanKey *key) { return key->fits(keys.back()); });
    ArrayRef<std::string> name = keys.drop_front(depth).drop_back(inner);
    if (name.size() > 1)
      return (table + ".\"" + llvm::join(name, ".") + "\"" + (inner ? "." + keys.back() : "")).str();
  }
  return "";
}

/// "dp 2 (base.yaml:2)": an entry of a mapping and its origin.
static std::string spell(const PlanEntry &entry) {
  std::string value = entry.value.kind == PlanNode::Scalar ? " " + entry.value.text : "";
  return entry.key + value + " (" + entry.origin.comment() + ")";
}

/// Warns of other keys of a mapping that the command line replaces by its shorthand, adds to (of the mesh), or means to
/// empty but cannot.
void PlanLayers::warnOfSet(const Origin &origin, ArrayRef<std::string> keys, const PlanNode &value) {
  std::string path = llvm::join(keys, ".");
  const PlanNode *old = merged.at(path);
  StringRef inner = shorthandKey(path, value.text);
  bool replaces = value.kind == PlanNode::Scalar && !value.isWord("none") && !inner.empty();
  bool merges = value.kind == PlanNode::Map && (path == "mesh" || value.entries.empty());
  if (!old || old->kind != PlanNode::Map || !(replaces || merges))
    return;
  std::vector<std::string> others;
  StringRef last;
  for (const PlanEntry &entry : old->entries)
    if (replaces ? entry.key != inner : !value.find(entry.key)) {
      others.push_back(spell(entry));
      last = entry.key;
    }
  if (others.empty())
    return;
  if (replaces)
    errors.warning(origin, PlanMessage::setDrops, path, llvm::join(others, ", "), inner, value.text);
  else
    errors.warning(origin, PlanMessage::setKeeps, llvm::join(others, ", "), path, last);
}

/// A plan without `train` is for inference: drops settings that only matter in training and names them in a warning.
void PlanLayers::dropTraining(const Origin &origin) {
  std::vector<std::string> dropped;
  auto drop = [&](StringRef path, function_ref<bool(StringRef)> isDropped) {
    for (PlanNode *tree : {&merged, &own})
      if (PlanEntry *entry = tree->find(path))
        llvm::erase_if(entry->value.entries, [&](const PlanEntry &inner) {
          if (tree == &merged && isDropped(inner.key))
            dropped.push_back((path + "." + spell(inner)).str());
          return isDropped(inner.key);
        });
  };
  drop("pipeline", [](StringRef key) { return key == "schedule"; });
  drop("shard", [](StringRef key) { return key.starts_with("grad(") || key.starts_with("state("); });
  if (!dropped.empty())
    errors.warning(origin, PlanMessage::setDropsTraining, llvm::join(dropped, ", "));
}

void PlanLayers::addSet(StringRef setting) {
  std::string place = ("--set " + setting).str();
  Origin origin{Origin::Set, place, 0, 0};
  SmallVector<std::string> keys;
  StringRef value;
  if (!splitSetting(setting, keys, value)) {
    errors.error(origin, PlanMessage::setForm, setting);
    return;
  }
  std::optional<PlanNode> parsed = parsePlanYaml(value, place, Origin::Set, errors);
  if (!parsed)
    return;
  if (value.trim().empty())
    parsed->kind = PlanNode::Null;
  if (keys.size() == 1 && keys.front() == "use")
    return replaceUses(*parsed);
  if (std::string quoted = withQuotes(keys); !quoted.empty()) {
    errors.error(origin, PlanMessage::setNeedsQuotes, quoted);
    return;
  }
  warnOfSet(origin, keys, *parsed);
  if (keys.size() == 1 && keys.front() == "train" && parsed->kind == PlanNode::Null)
    dropTraining(origin);
  PlanNode layer = std::move(*parsed);
  for (const std::string &key : llvm::reverse(keys)) {
    PlanNode outer = PlanNode::map(origin);
    outer.entries.push_back({key, origin, std::move(layer)});
    layer = std::move(outer);
  }
  addLayer(std::move(layer), "");
}

} // namespace par
