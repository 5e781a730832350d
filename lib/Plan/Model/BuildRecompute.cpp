// The key `recompute`: a word, or a mapping with one key.
#include "PlanBuilder.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

StringRef PlanRecompute::nameOf(Kind kind) {
  static constexpr StringRef names[] = {"none", "full", "selective", "each", "values", "keep", "memory", "auto"};
  return names[kind];
}

/// The kind of these that has the name.
static std::optional<PlanRecompute::Kind> kindOf(StringRef name, std::initializer_list<PlanRecompute::Kind> kinds) {
  for (PlanRecompute::Kind kind : kinds)
    if (name == PlanRecompute::nameOf(kind))
      return kind;
  return std::nullopt;
}

/// Names have other forms than values where only modules are meant.
static void checkForm(const PatternWithOrigin &said, PlanRecompute::Kind kind, PlanErrors &errors) {
  bool each = kind == PlanRecompute::Each;
  NamePattern::Form form = said.pattern.form();
  if (form == NamePattern::Name || (!each && (form == NamePattern::Op || form == NamePattern::Out)))
    return;
  errors.error(said.origin, PlanMessage::wrongValue, ("recompute." + PlanRecompute::nameOf(kind)).str(),
               each ? "names of modules" : "names of modules and nodes, op(T), op(T in M) and out(M)",
               ("\"" + said.pattern.text() + "\"").str());
}

static void readMapping(PlanRecompute &recompute, const PlanNode &node, PlanErrors &errors) {
  auto keys = llvm::map_range(node.entries, [](const PlanEntry &entry) { return entry.key; });
  if (node.entries.size() != 1)
    return errors.error(node.origin, PlanMessage::recomputeOneKey, "each, values, keep and memory",
                        node.entries.empty() ? "none" : llvm::join(keys, " and "));
  const PlanNode &value = node.entries.front().value;
  recompute.kind.value = kindOf(node.entries.front().key, {PlanRecompute::Each, PlanRecompute::Values,
                                                           PlanRecompute::Keep, PlanRecompute::Memory})
                             .value_or(PlanRecompute::None);
  if (*recompute.kind == PlanRecompute::Memory) {
    recompute.memory = {*parseSize(value.text), value.origin};
    return;
  }
  std::string why; // the tree was checked: all parse
  for (const PlanNode &item : value.kind == PlanNode::List ? ArrayRef(value.items) : ArrayRef(value)) {
    recompute.patterns.push_back({NamePattern::parse(item.text, why).value_or(NamePattern()), item.origin});
    checkForm(recompute.patterns.back(), *recompute.kind, errors);
  }
}

PlanRecompute buildRecompute(const PlanNode &root, PlanErrors &errors) {
  PlanRecompute recompute;
  recompute.kind = {PlanRecompute::Auto, Origin()};
  const PlanEntry *entry = root.find("recompute");
  if (!entry)
    return recompute;
  recompute.kind.origin = entry->value.origin;
  if (entry->value.kind == PlanNode::Map)
    readMapping(recompute, entry->value, errors);
  else
    recompute.kind.value =
        kindOf(entry->value.text, {PlanRecompute::Full, PlanRecompute::Selective, PlanRecompute::Auto})
            .value_or(PlanRecompute::None);
  return recompute;
}

} // namespace par
