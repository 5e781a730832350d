// A plan tree against the table of keys.
#include "par/Plan/Language/ForeignNames.h"
#include "par/Plan/Language/Pattern.h"
#include "par/Plan/Language/Schema.h"
#include "par/Solver/Order/OrderTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace llvm;

namespace par {

std::optional<uint64_t> parseSize(StringRef text) {
  static constexpr std::pair<const char *, uint64_t> units[] = {
      {"KiB", 1ull << 10}, {"MiB", 1ull << 20},   {"GiB", 1ull << 30},
      {"TiB", 1ull << 40}, {"KB", 1000},          {"MB", 1000000},
      {"GB", 1000000000},  {"TB", 1000000000000}, {"B", 1},
  };
  uint64_t factor = 1;
  for (auto [unit, bytes] : units)
    if (text.consume_back(unit)) {
      factor = bytes;
      break;
    }
  double number;
  if (text.trim().empty() || text.trim().getAsDouble(number) || !(number >= 0) || number * double(factor) > 1e18)
    return std::nullopt;
  return uint64_t(std::llround(number * double(factor)));
}

std::string formatSize(uint64_t bytes) {
  static constexpr const char *units[] = {"TiB", "GiB", "MiB", "KiB"};
  for (unsigned i = 0; i < 4; ++i) {
    uint64_t unit = 1ull << (40 - 10 * i);
    if (bytes >= unit && bytes % unit == 0)
      return std::to_string(bytes / unit) + units[i];
  }
  return std::to_string(bytes);
}

/// Whether `word` is `text` with letters left out.
static bool leavesOut(StringRef text, StringRef word) {
  for (char letter : word)
    text.consume_front(StringRef(&letter, 1));
  return text.empty();
}

unsigned lettersApart(StringRef text, StringRef word) {
  unsigned apart = text.edit_distance(word);
  for (size_t i = 0; apart > 1 && i + 1 < text.size(); ++i) {
    std::string swapped = text.str();
    std::swap(swapped[i], swapped[i + 1]);
    apart = std::min(apart, 1 + StringRef(swapped).edit_distance(word));
  }
  return apart;
}

StringRef nearestWord(StringRef text, ArrayRef<StringRef> words, size_t letters) {
  StringRef nearest;
  constexpr size_t longest = 64; // a word of any key or value
  if (text.size() > longest)
    return nearest;
  unsigned best = std::max(letters, text.size() / 3) + 1;
  for (StringRef word : words) {
    unsigned distance = lettersApart(text, word);
    // A letter left out of a short word ("adm" for "adamw") is likelier than a wrong letter.
    if (text.size() > 2 && leavesOut(text, word))
      distance = (distance + 1) / 2;
    if (distance < best && distance < std::max(text.size(), word.size())) { // a letter is near no other letter
      best = distance;
      nearest = word;
    }
  }
  return nearest;
}

SmallVector<StringRef> planWords(StringRef path) {
  SmallVector<StringRef> words, taken;
  for (const PlanKey &key : planKeys())
    if (path == key.path)
      StringRef(key.values).split(words, '|');
  llvm::copy_if(words, std::back_inserter(taken),
                [](StringRef word) { return !word.starts_with("!") && !word.starts_with("<"); });
  return taken;
}

namespace {

bool isInt(const PlanNode &node) {
  int64_t number;
  return node.kind == PlanNode::Scalar && !node.quoted && !StringRef(node.text).getAsInteger(10, number);
}

bool isNumeric(const PlanNode &node) {
  double number;
  return node.kind == PlanNode::Scalar && !node.quoted && !StringRef(node.text).getAsDouble(number) &&
         std::isfinite(number);
}

bool isListOf(const PlanNode &node, bool (*item)(const PlanNode &)) {
  return node.kind == PlanNode::List && !node.items.empty() && llvm::all_of(node.items, item);
}

/// Axes and their sizes; none of them is one rank.
bool isMesh(const PlanNode &node) {
  return node.kind == PlanNode::Map &&
         llvm::all_of(node.entries, [](const PlanEntry &axis) { return isInt(axis.value); });
}

/// Numbers in lists of any depth; an input may be empty.
bool isElements(const PlanNode &node) {
  return node.kind == PlanNode::List &&
         llvm::all_of(node.items, [](const PlanNode &item) { return isNumeric(item) || isElements(item); });
}

/// zeros ones normal(s) uniform(a)
bool isInit(const PlanNode &node) {
  if (node.kind != PlanNode::Scalar)
    return false;
  StringRef text = node.text;
  for (StringRef word : {"zeros", "ones"})
    if (text == word)
      return true;
  double number;
  return (text.consume_front("normal(") || text.consume_front("uniform(")) && text.consume_back(")") &&
         !text.trim().getAsDouble(number) && number >= 0 && std::isfinite(static_cast<float>(number));
}

/// The full name of an op: mine.update. Not another system's word: torch.optim.adamw.
bool isOpName(const PlanNode &node) {
  auto [dialect, op] = StringRef(node.text).split('.');
  return node.kind == PlanNode::Scalar && !dialect.empty() && !op.empty() && !isNumeric(node) &&
         none_of(foreignWords(), [&](const ForeignWord &word) { return findForeignWord(word.key, node.text); });
}

/// Alternatives of PlanKey::values that a function holds a value against.
constexpr std::pair<StringLiteral, bool (*)(const PlanNode &)> checkedSorts[] = {
    {"<int>", isInt}, {"<number>", isNumeric}, {"<elements>", isElements}, {"<init>", isInit}, {"<op>", isOpName}};

/// The key that takes the word, or one spelt nearly so, as a value: "train.loss: cross_entropy" for "cross_entropi".
/// Words of several keys, such as "none", say nothing.
std::string valueElsewhere(StringRef word) {
  llvm::MapVector<StringRef, StringRef> takes; // the word's first key; empty if another one takes it too
  for (const PlanKey &key : planKeys())
    if (StringRef path = key.path; !path.contains('<'))
      for (StringRef value : planWords(path)) {
        auto [known, isNew] = takes.insert({value, path});
        if (!isNew && !path.starts_with(known->second))
          known->second = "";
      }
  SmallVector<StringRef> words;
  for (auto [value, path] : takes)
    if (!path.empty())
      words.push_back(value);
  constexpr size_t shortest = 6;
  StringRef nearest = llvm::is_contained(words, word) ? word : "";
  if (nearest.empty() && word.size() >= shortest)
    nearest = nearestWord(word, words, 2);
  return nearest.empty() ? "" : (takes.lookup(nearest) + ": " + nearest).str();
}

/// Notes of what a foreign word means, and of the unit of a number that looks like a share.
static void addNotes(const ForeignWord *foreign, const PlanKey &key, const PlanNode &value, PlanErrors &errors) {
  if (foreign && *foreign->note)
    errors.note(PlanMessage::ofOtherSystems, foreign->ours, foreign->note);
  double fraction = 0;
  if (StringRef unit = findUnit(key.path); !unit.empty() && !StringRef(value.text).getAsDouble(fraction))
    errors.note(PlanMessage::ofOtherSystems, key.path, unit);
}

class Checker {
public:
  Checker(const PlanNode &root, PlanErrors &errors) : errors(errors) {
    if (const PlanEntry *mesh = findMesh(root))
      addAxes(mesh->value);
    if (const PlanNode *meshes = root.at("pipeline.meshes"))
      llvm::for_each(meshes->items, [&](const PlanNode &mesh) { addAxes(mesh); });
  }

  /// The mesh, or a misspelt key for it: an error about "msh" is not repeated for each axis.
  static const PlanEntry *findMesh(const PlanNode &root) {
    const PlanEntry *mesh = root.find("mesh");
    for (const PlanEntry &entry : root.entries)
      if (!mesh && entry.value.kind == PlanNode::Map && nearestWord(entry.key, {"mesh"}, 2) == "mesh" &&
          llvm::none_of(planKeysBelow(""), [&](const PlanKey *key) { return key->fits(entry.key); }))
        mesh = &entry;
    return mesh;
  }

  /// `table` is the path in the table of keys, `place` the path as the user wrote it.
  void checkMap(const PlanNode &map, StringRef table, StringRef place) {
    for (const PlanEntry &entry : map.entries) {
      const PlanKey *key = findKey(table, place, entry);
      if (!key)
        continue;
      if (key->lastSegment() == "<pattern>")
        checkPattern(entry.key, entry.origin);
      if (key->lastSegment() == "<axis>")
        checkAxisName(entry);
      checkValue(*key, entry, place.empty() ? entry.key : (place + "." + entry.key).str());
    }
  }

private:
  void addAxes(const PlanNode &mesh) {
    constexpr size_t maxAxes = 32;
    if (mesh.entries.size() > maxAxes) {
      errors.error(mesh.origin, PlanMessage::tooManyAxes, maxAxes, mesh.entries.size());
      return;
    }
    for (const PlanEntry &axis : mesh.entries)
      if (!llvm::is_contained(axes, axis.key))
        axes.push_back(axis.key);
  }

  /// Finds the table's key for `entry`, or reports it as unknown.
  const PlanKey *findKey(StringRef table, StringRef place, const PlanEntry &entry) {
    SmallVector<const PlanKey *> known = planKeysBelow(table);
    for (const PlanKey *key : known)
      if (key->fits(entry.key))
        return key;
    reportUnknown(place, entry, known);
    return nullptr;
  }

  void reportUnknown(StringRef place, const PlanEntry &entry, ArrayRef<const PlanKey *> known) {
    std::string in = place.empty() ? "" : (" in " + place).str();
    if (const ForeignKey *foreign = findForeignKey(entry.key, place)) {
      bool isFlag = StringRef(foreign->ours).starts_with("par-run ");
      errors.error(entry.origin, isFlag ? PlanMessage::unknownKeyFlag : PlanMessage::unknownKeyForeign, entry.key, in,
                   foreign->ours);
      if (*foreign->note)
        errors.note(PlanMessage::ofOtherSystems, foreign->ours, foreign->note);
      return;
    }
    if (reportElsewhere(in, entry))
      return;
    SmallVector<StringRef> segments;
    for (const PlanKey *key : known)
      segments.push_back(key->lastSegment());
    if (StringRef nearest = nearestWord(entry.key, segments, 2); !nearest.empty()) {
      errors.error(entry.origin, PlanMessage::unknownKeyNear, entry.key, in, nearest);
      return;
    }
    if (StringRef path = nearestElsewhere(entry.key); !path.empty()) {
      errors.error(entry.origin, PlanMessage::unknownKeyNear, entry.key, in, path);
      return;
    }
    if (std::string value = valueElsewhere(entry.key); !value.empty()) {
      errors.error(entry.origin, PlanMessage::unknownKeyNear, entry.key, in, value);
      return;
    }
    std::string all =
        llvm::join(llvm::map_range(known, [](const PlanKey *key) { return key->lastSegment().str(); }), ", ");
    errors.error(entry.origin, PlanMessage::unknownKey, entry.key, in, all);
  }

  /// The path of a key of another mapping that is spelt nearly so: "train.optimizer" for "opimizer". Short words are
  /// near to many.
  static StringRef nearestElsewhere(StringRef word) {
    constexpr size_t shortest = 6;
    if (word.size() < shortest)
      return "";
    SmallVector<StringRef> segments;
    for (const PlanKey &key : planKeys())
      if (StringRef path = key.path; !path.contains('<'))
        segments.push_back(key.lastSegment());
    StringRef nearest = nearestWord(word, segments, 2);
    for (const PlanKey &key : planKeys())
      if (StringRef path = key.path; !nearest.empty() && !path.contains('<') && key.lastSegment() == nearest)
        return path;
    return "";
  }

  /// A key of another mapping, "clip" for "train.clip", or of none.
  bool reportElsewhere(StringRef in, const PlanEntry &entry) {
    SmallVector<StringRef> paths;
    for (const PlanKey &key : planKeys())
      if (StringRef path = key.path; key.lastSegment() == entry.key && !path.contains('<'))
        paths.push_back(path);
    if (paths.empty())
      return false;
    if (paths.front() == entry.key)
      errors.error(entry.origin, PlanMessage::unknownKeyTop, entry.key, in);
    else
      errors.error(entry.origin, PlanMessage::unknownKeyNear, entry.key, in, llvm::join(paths, "\" or \""));
    return true;
  }

  void checkPattern(StringRef text, const Origin &origin) {
    std::string why;
    if (!NamePattern::parse(text, why))
      errors.error(origin, PlanMessage::badPattern, text, why);
  }

  void checkValue(const PlanKey &key, const PlanEntry &entry, StringRef place) {
    StringRef values = key.values;
    if (values == "!") {
      if (!(key.fallback[0] && entry.value.isWord(key.fallback)) && !isEmptyList(key, entry.value))
        errors.error(entry.origin, PlanMessage::keyNotYet, place);
      return;
    }
    SmallVector<StringRef> alternatives;
    values.split(alternatives, '|');
    bool notYet = false;
    // Words before sorts: `auto` is a word even where text is allowed.
    for (StringRef alternative : alternatives) {
      bool later = alternative.consume_front("!");
      if (!accepts(alternative, entry.value))
        continue;
      if (!later)
        return checkInside(key, alternative, entry, place);
      notYet = true;
      if (!alternative.starts_with("<"))
        break;
    }
    if (notYet)
      errors.error(entry.value.origin, PlanMessage::valueNotYet, place, entry.value.describe(),
                   spellValues(values) + key.why);
    else
      reportWrong(key, entry.value, place);
  }

  /// A word of another system, or nearly one of Par's words, in any case.
  void reportWrong(const PlanKey &key, const PlanNode &value, StringRef place) {
    SmallVector<StringRef> words = planWords(key.path);
    const ForeignWord *foreign = value.kind == PlanNode::Scalar ? findForeignWord(key.path, value.text) : nullptr;
    std::string lower = StringRef(value.text).lower();
    StringRef near = foreign                            ? foreign->ours
                     : llvm::is_contained(words, lower) ? StringRef(lower)
                                                        : nearestWord(value.text, words);
    if (value.kind != PlanNode::Scalar || near.empty())
      errors.error(value.origin, PlanMessage::wrongValue, place, spellValues(key.values), value.describe());
    else
      errors.error(value.origin, PlanMessage::wrongWord, place, spellValues(key.values), value.describe(), near);
    addNotes(foreign, key, value, errors);
  }

  static bool isEmptyList(const PlanKey &key, const PlanNode &value) {
    return StringRef(key.fallback) == "[]" && value.kind == PlanNode::List && value.items.empty();
  }

  bool accepts(StringRef alternative, const PlanNode &value) {
    bool scalar = value.kind == PlanNode::Scalar;
    if (!alternative.starts_with("<"))
      return value.isWord(alternative);
    if (alternative == "<map>")
      return value.kind == PlanNode::Map;
    if (alternative == "<list>")
      return value.kind == PlanNode::List;
    for (auto [name, holds] : checkedSorts)
      if (alternative == name)
        return holds(value);
    if (alternative == "<bool>")
      return value.isWord("true") || value.isWord("false");
    if (alternative == "<size>")
      return scalar && parseSize(value.text).has_value();
    if (alternative == "<ints>")
      return isListOf(value, isInt);
    if (alternative == "<numbers>")
      return isListOf(value, isNumeric);
    if (alternative == "<arrays>")
      return scalar && StringRef(value.text).ends_with(".safetensors");
    if (alternative == "<table>")
      return scalar && OrderTableProblem::isPath(value.text);
    if (alternative == "<patterns>")
      return value.kind == PlanNode::List &&
             llvm::all_of(value.items, [](const PlanNode &item) { return item.kind == PlanNode::Scalar; });
    if (alternative == "<meshes>")
      return isListOf(value, isMesh);
    if (alternative == "<axes>")
      return scalar || isListOf(value, [](const PlanNode &item) { return item.kind == PlanNode::Scalar; });
    return scalar; // <text>, <axis>, <symbol>, <pattern>
  }

  /// Checks the contents of a value that has the right form.
  void checkInside(const PlanKey &key, StringRef alternative, const PlanEntry &entry, StringRef place) {
    const PlanNode &value = entry.value;
    if (alternative == "<map>")
      return checkMap(value, key.path, place);
    if (alternative == "<pattern>")
      return checkPattern(value.text, value.origin);
    if (alternative == "<patterns>")
      for (const PlanNode &item : value.items)
        checkPattern(item.text, item.origin);
    if (alternative == "<axis>")
      checkAxis(value, place);
    if (alternative == "<axes>")
      checkAxes(value, place);
    if (alternative == "<number>")
      checkFits(value, place);
    if (alternative == "<meshes>")
      for (const PlanNode &mesh : value.items)
        for (const PlanEntry &axis : mesh.entries) {
          checkAxisName(axis);
          if (int64_t size; !StringRef(axis.value.text).getAsInteger(10, size) && size < 1)
            errors.error(axis.value.origin, PlanMessage::tooSmall, (place + "." + axis.key).str(), 1, axis.value.text);
        }
    checkLeast(key, value, place);
  }

  void checkLeast(const PlanKey &key, const PlanNode &value, StringRef place) {
    static constexpr std::pair<const char *, int64_t> least[] = {
        {"ranks", 1},
        {"mesh.<axis>", 1},
        {"mesh.<axis>.size", 1},
        {"dims.<symbol>", 1},
        {"batch", 1},
        {"batch.size", 1},
        {"batch.microbatches", 1},
        {"batch.microbatch_size", 1},
        {"pipeline.stages", 1},
        {"par", 1},
        {"seed", 0},
        {"batch_norm", 1},
        {"train.optimizer.lr.warmup", 0},
        {"train.optimizer.lr.steps", 1},
        {"train.optimizer.lr.step_size", 1},
        {"shard.<pattern>.blocks", 1},
        {"zero.min_size", 0},
        {"train.clip", 0},
        {"train.clip.norm", 0},
        {"train.clip.value", 0},
        {"train.optimizer.weight_decay", 0},
        {"train.optimizer.lr", 0},
        {"train.optimizer.lr.peak", 0},
        {"train.optimizer.lr.floor", 0},
        {"train.groups.<pattern>.lr", 0},
        {"train.groups.<pattern>.lr_scale", 0},
        {"train.groups.<pattern>.weight_decay", 0},
        {"precision.loss_scale.growth", 0},
    };
    for (auto [path, minimum] : least) {
      double number;
      if (StringRef(key.path) == path && isNumeric(value) && !StringRef(value.text).getAsDouble(number) &&
          !(number >= double(minimum)))
        errors.error(value.origin, PlanMessage::tooSmall, place, minimum, value.text);
    }
  }

  /// The step computes in f32, in which larger numbers are infinite.
  void checkFits(const PlanNode &value, StringRef place) {
    double number;
    if (!StringRef(value.text).getAsDouble(number) && !std::isfinite(static_cast<float>(number)))
      errors.error(value.origin, PlanMessage::tooLarge, place, "3.4e38, the largest f32", value.text);
  }

  /// Names of axes occur in pass options and tables of the bundle, whose separators they must not contain.
  void checkAxisName(const PlanEntry &axis) {
    constexpr size_t longest = 64;
    auto isPlain = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || (c & 0x80); };
    StringRef name = axis.key;
    if (name.empty() || name.size() > longest || name == "none" || !llvm::all_of(name, isPlain))
      errors.error(axis.origin, PlanMessage::axisName, name.take_front(longest));
  }

  void checkAxis(const PlanNode &axis, StringRef place) {
    if (axis.isWord("none") || llvm::is_contained(axes, axis.text))
      return;
    std::string names = axes.empty() ? "none" : llvm::join(axes, ", ");
    errors.error(axis.origin, PlanMessage::unknownAxis, place, axis.text, names);
  }

  void checkAxes(const PlanNode &value, StringRef place) {
    if (value.kind == PlanNode::Scalar)
      return checkAxis(value, place);
    for (size_t i = 0; i < value.items.size(); ++i) {
      checkAxis(value.items[i], place);
      for (size_t j = 0; j < i; ++j)
        if (value.items[i].text == value.items[j].text)
          errors.error(value.items[i].origin, PlanMessage::axisTwice, place, value.items[i].text);
    }
  }

  PlanErrors &errors;
  std::vector<std::string> axes; // of the mesh
};

} // namespace

bool checkPlanTree(const PlanNode &tree, PlanErrors &errors) {
  size_t before = errors.size();
  // A newer language may mean something else by every other key: say only that.
  if (const PlanEntry *par = tree.find("par")) {
    int64_t language;
    if (par->value.kind == PlanNode::Scalar && !StringRef(par->value.text).getAsInteger(10, language) && language > 1) {
      errors.error(par->value.origin, PlanMessage::newerLanguage, language);
      return false;
    }
  }
  Checker(tree, errors).checkMap(tree, "", "");
  return errors.size() == before;
}

} // namespace par
