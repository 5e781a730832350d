// Plan text to a tree with origins, through LLVM's YAML parser.
#include "par/Plan/Language/Tree.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

using namespace llvm;

namespace par {

PlanNode PlanNode::scalar(StringRef text, Origin origin) {
  PlanNode node;
  node.kind = Scalar;
  node.text = text.str();
  node.origin = std::move(origin);
  return node;
}

PlanNode PlanNode::map(Origin origin) {
  PlanNode node;
  node.kind = Map;
  node.origin = std::move(origin);
  return node;
}

const PlanEntry *PlanNode::find(StringRef key) const {
  for (const PlanEntry &entry : entries)
    if (entry.key == key)
      return &entry;
  return nullptr;
}

PlanEntry *PlanNode::find(StringRef key) {
  return const_cast<PlanEntry *>(static_cast<const PlanNode *>(this)->find(key));
}

const PlanNode *PlanNode::at(StringRef path) const {
  const PlanNode *node = this;
  while (node && !path.empty()) {
    auto [key, rest] = path.split('.');
    const PlanEntry *entry = node->find(key);
    node = entry ? &entry->value : nullptr;
    path = rest;
  }
  return node;
}

std::string PlanNode::describe() const {
  switch (kind) {
  case Null:
    return "nothing";
  case Scalar:
    return "\"" + text + "\"";
  case List:
    return "a list";
  case Map:
    return "a mapping";
  }
  return "";
}

namespace {

class TreeBuilder {
public:
  TreeBuilder(StringRef text, StringRef file, Origin::Kind kind, PlanErrors &errors)
      : text(text), file(file), kind(kind), errors(errors), stream(text, sources) {
    for (size_t at = 0; at != StringRef::npos; at = text.find('\n', at)) {
      at += lineStarts.empty() ? 0 : 1;
      lineStarts.push_back(at);
    }
    sources.setDiagHandler(
        [](const SMDiagnostic &diagnostic, void *self) { static_cast<TreeBuilder *>(self)->syntaxError(diagnostic); },
        this);
  }

  std::optional<PlanNode> run() {
    PlanNode root = PlanNode::map(Origin{kind, file.str(), 1, 1});
    if (text.trim().empty())
      return root;
    yaml::document_iterator document = stream.begin();
    if (!failed && document != stream.end()) {
      yaml::Node *node = document->getRoot();
      if (node && !failed)
        root = build(*node);
      // Reading on to the end finds syntax errors after the root.
      if (!failed)
        document->skip();
    }
    if (failed || stream.failed())
      return std::nullopt;
    return root;
  }

private:
  PlanNode build(yaml::Node &node) {
    PlanNode result;
    result.origin = origin(node);
    if (!count(result.origin))
      return result;
    if (auto *scalar = dyn_cast<yaml::ScalarNode>(&node)) {
      buildScalar(*scalar, result);
    } else if (auto *sequence = dyn_cast<yaml::SequenceNode>(&node)) {
      result.kind = PlanNode::List;
      for (yaml::Node &item : *sequence) {
        if (failed)
          break;
        result.items.push_back(build(item));
      }
    } else if (auto *mapping = dyn_cast<yaml::MappingNode>(&node)) {
      buildMap(*mapping, result);
    }
    return result;
  }

  void buildScalar(yaml::ScalarNode &scalar, PlanNode &result) {
    SmallString<32> storage;
    result.text = scalar.getValue(storage).str();
    StringRef raw = scalar.getRawValue();
    result.quoted = raw.starts_with("\"") || raw.starts_with("'");
    bool null = !result.quoted && (result.text == "null" || result.text == "~" || result.text.empty());
    result.kind = null ? PlanNode::Null : PlanNode::Scalar;
  }

  /// Counts keys and values; false, after an error, if there are too many.
  bool count(const Origin &where) {
    constexpr size_t most = 1 << 16;
    if (++nodes <= most || failed)
      return !failed;
    errors.error(where, PlanMessage::planTooLarge, most);
    failed = true;
    return false;
  }

  void buildMap(yaml::MappingNode &mapping, PlanNode &result) {
    result.kind = PlanNode::Map;
    StringMap<Origin> first;
    for (yaml::KeyValueNode &pair : mapping) {
      if (failed)
        break;
      auto *key = dyn_cast_or_null<yaml::ScalarNode>(pair.getKey());
      if (!key || failed) {
        if (!failed)
          errors.error(pair.getKey() ? origin(*pair.getKey()) : result.origin, PlanMessage::complexKey);
        failed = true;
        break;
      }
      PlanEntry entry;
      SmallString<32> storage;
      entry.key = key->getValue(storage).str();
      entry.origin = origin(*key);
      yaml::Node *value = pair.getValue();
      if (value)
        entry.value = build(*value);
      // {dp:4} is one word in YAML, and a key without a value removes the key: neither is intended.
      auto [before, behind] = StringRef(entry.key).split(':');
      bool plain = !key->getRawValue().starts_with("\"") && !key->getRawValue().starts_with("'");
      if (plain && !behind.empty() && (!value || isa<yaml::NullNode>(value)))
        errors.error(entry.origin, PlanMessage::keyWithoutValue, entry.key, before, behind);
      if (auto [known, isNew] = first.try_emplace(entry.key, entry.origin); !isNew) {
        errors.error(entry.origin, PlanMessage::duplicateKey, entry.key);
        errors.note(PlanMessage::firstHere, known->second.place());
        continue;
      }
      result.entries.push_back(std::move(entry));
    }
  }

  Origin origin(yaml::Node &node) {
    const char *start = node.getSourceRange().Start.getPointer();
    // The parser keeps its own buffer over the same characters.
    if (!start || start < text.begin() || start > text.end())
      return Origin{kind, file.str(), 1, 1};
    // LLVM's parser places a flow list or mapping after its bracket.
    bool behind = start > text.begin() && (start[-1] == '[' || start[-1] == '{');
    if (behind && isa<yaml::SequenceNode, yaml::MappingNode>(node))
      --start;
    size_t at = start - text.begin();
    unsigned line = llvm::upper_bound(lineStarts, at) - lineStarts.begin();
    return Origin{kind, file.str(), line, unsigned(at - lineStarts[line - 1] + 1)};
  }

  void syntaxError(const SMDiagnostic &diagnostic) {
    if (failed)
      return; // errors after the first one are consequences
    failed = true;
    std::string message = diagnostic.getMessage().str();
    if (!message.empty())
      message[0] = toLower(message[0]);
    unsigned line = std::max(1, diagnostic.getLineNo());
    unsigned column = std::max(0, diagnostic.getColumnNo()) + 1;
    errors.error(Origin{kind, file.str(), line, column}, PlanMessage::yamlSyntax, message);
  }

  StringRef text, file;
  Origin::Kind kind;
  PlanErrors &errors;
  SourceMgr sources;
  yaml::Stream stream;
  std::vector<size_t> lineStarts;
  size_t nodes = 0;
  bool failed = false;
};

} // namespace

std::optional<PlanNode> parsePlanYaml(StringRef text, StringRef file, Origin::Kind kind, PlanErrors &errors) {
  errors.addSource(file, text);
  if (!scanPlanYaml(text, file, kind, errors))
    return std::nullopt;
  return TreeBuilder(text, file, kind, errors).run();
}

} // namespace par
