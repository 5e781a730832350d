// The cuts of annotations: the modules and nodes that start their stages.
#include "PlanParts.h"

#include "par/format/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace par {

std::string inQuotes(StringRef pattern) {
  std::string text = "\"";
  for (char c : pattern)
    text += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return text + "\"";
}

bool means(StringRef pattern, const NameTable &names, llvm::function_ref<bool(const PatternMatches &)> isMeant,
           std::string &why) {
  why = "it holds characters that a plan cannot";
  if (!json::isUTF8(pattern) || format::printable(pattern.str()) != pattern)
    return false;
  why = "it means other names of the model, too";
  std::optional<NamePattern> parsed = NamePattern::parse(pattern, why);
  return parsed && isMeant(matchPattern(*parsed, names));
}

/// The first node of a stage that inputs flow into: others are where their users are.
static std::optional<size_t> firstNodeOf(const onnx::Model &graph, const ReadDevices &read, size_t stage) {
  llvm::StringSet<> active; // tensors
  for (const onnx::ValueInfo &input : graph.inputs)
    active.insert(input.name);
  for (auto [index, node] : enumerate(graph.nodes)) {
    bool isActive = any_of(node.inputs, [&](const std::string &input) { return active.contains(input); });
    if (isActive && read.stageOf[index] == stage)
      return index;
    for (const std::string &output : node.outputs)
      if (isActive && !output.empty())
        active.insert(output);
  }
  return std::nullopt;
}

/// Whether all nodes of a module that say a stage are on this stage or later.
static bool startsAt(const onnx::Model &graph, const ReadDevices &read, StringRef module, size_t stage) {
  return all_of(enumerate(graph.nodes), [&](const auto &each) {
    StringRef path = each.value().modulePath;
    bool inside = path == module || (path.starts_with(module) && path[module.size()] == '.');
    return !inside || read.stageOf[each.index()].value_or(stage) >= stage;
  });
}

/// The pattern of the module or node that starts a stage: the outermost module with its first node that starts there,
/// else the node; of these the first one that a pattern can mean.
static std::optional<std::string> cutOf(size_t stage, const Model &model, const ReadDevices &read,
                                        const Refusals &refusals) {
  const onnx::Model &graph = model.graph;
  std::optional<size_t> first = firstNodeOf(graph, read, stage);
  if (!first) {
    refusals.error("stage " + Twine(read.stages[stage]) + " of \"" + read.configuration->name +
                   "\" has no node that an input of the model flows into; a plan's cut names such a node");
    return std::nullopt;
  }
  std::string why;
  StringRef path = graph.nodes[*first].modulePath;
  for (size_t dot = path.find('.'); !path.empty(); dot = path.find('.', dot + 1)) {
    StringRef module = path.take_front(dot);
    std::string pattern = ("^" + module).str();
    auto isMeant = [&](const PatternMatches &found) {
      return found.modules.size() == 1 && model.names.modules[found.modules.front()] == module;
    };
    if (startsAt(graph, read, module, stage) && means(pattern, model.names, isMeant, why))
      return pattern;
    if (dot == StringRef::npos)
      break;
  }
  std::string pattern = "^" + model.names.nodes[*first].name;
  auto isMeant = [&](const PatternMatches &found) {
    return found.modules.empty() && found.nodes.size() == 1 && found.nodes.front() == *first;
  };
  if (means(pattern, model.names, isMeant, why))
    return pattern;
  refusals.errorAt(*first,
                   "a cut of a plan cannot be at \"" + Twine(pattern) + "\": " + why + "; rename it in the model");
  return std::nullopt;
}

std::optional<std::vector<std::string>> findCuts(const Model &model, const ReadDevices &read,
                                                 const Refusals &refusals) {
  std::vector<std::string> cuts;
  bool right = true;
  for (size_t stage = 1; stage < read.groupOf.size(); ++stage)
    if (std::optional<std::string> cut = cutOf(stage, model, read, refusals))
      cuts.push_back(inQuotes(*cut));
    else
      right = false;
  return right ? std::optional(std::move(cuts)) : std::nullopt;
}

} // namespace par
