// A plan file as parsed, before its keys are checked.
#pragma once

#include "par/Plan/Language/Errors.h"
#include <optional>

namespace par {

struct PlanEntry;

/// A value of a plan file: a scalar as written, a list, or a mapping in written order.
struct PlanNode {
  enum Kind { Null, Scalar, List, Map };
  Kind kind = Null;
  std::string text;    ///< of a scalar, without quotes
  bool quoted = false; ///< "1f1b" and 1f1b differ only here
  std::vector<PlanNode> items;
  std::vector<PlanEntry> entries;
  Origin origin;

  static PlanNode scalar(llvm::StringRef text, Origin origin);
  static PlanNode map(Origin origin);

  bool isWord(llvm::StringRef word) const { return kind == Scalar && text == word; }
  const PlanEntry *find(llvm::StringRef key) const;
  PlanEntry *find(llvm::StringRef key);
  /// The value at a path of fixed keys ("pipeline.over"); null if one is missing.
  const PlanNode *at(llvm::StringRef path) const;
  /// For errors: `"text"`, `a list`, `a mapping` or `nothing`.
  std::string describe() const;
};

/// One key of a mapping with its value.
struct PlanEntry {
  std::string key;
  Origin origin; ///< of the key
  PlanNode value;
};

/// Parses one document of the YAML subset of docs/plan.md §1.1. `file` names it in errors; `kind` is File, or
/// Set for the value of a --set, whose origins then are all `file`. An empty text is an empty mapping.
/// std::nullopt after errors.
std::optional<PlanNode> parsePlanYaml(llvm::StringRef text, llvm::StringRef file, Origin::Kind kind,
                                      PlanErrors &errors);

/// Refuses, at its position, YAML that is not in the plan language: tabs, anchors and aliases, tags, block scalars, a
/// second document, unquoted patterns that start with "*". Returns whether the text had none of it.
bool scanPlanYaml(llvm::StringRef text, llvm::StringRef file, Origin::Kind kind, PlanErrors &errors);

/// Merges `over` into `base`: mappings merge key by key, scalars and lists replace, null removes the key (so that its
/// default applies again). Keys keep the place where they were first written.
void mergePlan(PlanNode &base, const PlanNode &over);

/// A shipped recipe, and the `use` that names it.
struct UsedRecipe {
  std::string name;
  Origin use;
};

/// Reads plan files left to right, each after the layers of its `use`, then every --set KEY=VALUE. Returns the merged
/// mapping without `use`; reports texts that cannot be read.
class PlanLayers {
public:
  explicit PlanLayers(PlanErrors &errors)
      : errors(errors), merged(PlanNode::map(Origin())), own(PlanNode::map(Origin())) {}

  void addFile(llvm::StringRef path);
  /// As addFile, for text that is already here (tests, recipes).
  void addText(llvm::StringRef text, llvm::StringRef name);
  void addSet(llvm::StringRef setting);

  const PlanNode &tree() const { return merged; }
  llvm::ArrayRef<UsedRecipe> recipes() const { return usedRecipes; }

private:
  void addLayer(PlanNode layer, llvm::StringRef folder);
  void addUses(const PlanNode &names, llvm::StringRef folder);
  void addUsed(const PlanNode &name, llvm::StringRef folder);
  void replaceUses(const PlanNode &names);
  void warnOfSet(const Origin &origin, llvm::ArrayRef<std::string> keys, const PlanNode &value);
  void dropTraining(const Origin &origin);

  PlanErrors &errors;
  PlanNode merged;
  PlanNode own;                     // the same without used layers
  int used = 0;                     // depth in `use` of the layer that is being added
  std::vector<std::string> reading; // the chain of `use`, to find a cycle
  std::vector<UsedRecipe> usedRecipes;
  llvm::StringSet<> usedFiles; // by `use`, each read once
};

/// The text of a shipped recipe (share/plans), or std::nullopt.
std::optional<llvm::StringRef> recipeText(llvm::StringRef name);
/// The names of all shipped recipes, separated by ", ".
std::string recipeNames();

} // namespace par
