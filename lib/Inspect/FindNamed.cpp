// A name that a user gives, among the names of a model.
#include "LayerNames.h"

#include "par/Inspect/Named.h"
#include "par/Plan/Language/Schema.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace par {

static StringRef moduleOf(StringRef parameter) {
  return parameter.contains('.') ? parameter.rsplit('.').first : StringRef();
}

static std::string typeOf(const std::string &type, const std::string &shape, const std::string &source) {
  return type + "[" + shape + "]" + (source.empty() ? "" : ", " + source);
}

/// Parameters of a module itself, not of those in it.
static std::vector<unsigned> parametersOf(StringRef module, const NameTable &names) {
  std::vector<unsigned> found;
  for (auto [index, parameter] : enumerate(names.parameters))
    if (!module.empty() && parameter.anyName([&](const std::string &name) { return moduleOf(name) == module; }))
      found.push_back(index);
  return found;
}

/// Parameters of a module and of those in it.
static std::vector<unsigned> parametersWithin(StringRef module, const NameTable &names) {
  std::vector<unsigned> found;
  std::string prefix = module.str() + ".";
  for (auto [index, parameter] : enumerate(names.parameters))
    if (parameter.anyName([&](StringRef name) { return name.starts_with(prefix); }))
      found.push_back(index);
  return found;
}

static NamedThing parameterAt(unsigned index, const NameTable &names) {
  const NameTable::Parameter &parameter = names.parameters[index];
  std::string shape = join(map_range(parameter.shape, [](int64_t size) { return std::to_string(size); }), ", ");
  return {"parameter",
          parameter.name,
          moduleOf(parameter.name).str(),
          typeOf(parameter.type, shape, parameter.source),
          {index}};
}

static NamedThing nodeAt(unsigned index, const NameTable &names) {
  const NameTable::Node &node = names.nodes[index];
  return {"node", node.name, node.module, node.opType + (node.source.empty() ? "" : ", " + node.source),
          parametersOf(node.module, names)};
}

static NamedThing moduleAt(unsigned index, const NameTable &names) {
  const std::string &module = names.modules[index];
  size_t nodes = count_if(names.nodes, [&](const NameTable::Node &node) {
    return node.module == module || StringRef(node.module).starts_with(module + ".");
  });
  return {"module", module, module, std::to_string(nodes) + (nodes == 1 ? " node" : " nodes"),
          parametersWithin(module, names)};
}

static NamedThing valueOf(const char *kind, const NameTable::Value &value) {
  return {kind, value.name, "", typeOf(value.type, join(value.shape, ", "), ""), {}};
}

/// The node that has this own name in the file, or an output of this name.
static std::optional<unsigned> findNode(StringRef name, const onnx::Model &graph) {
  for (auto [index, node] : enumerate(graph.nodes))
    if (name == node.name || is_contained(node.outputs, name))
      return index;
  return std::nullopt;
}

std::vector<NamedThing> findNamed(StringRef name, const Model &model) {
  const NameTable &names = model.names;
  std::vector<NamedThing> found;
  std::string wrong;
  std::optional<NamePattern> pattern = NamePattern::parse(name, wrong);
  PatternMatches matches = pattern ? matchPattern(*pattern, names) : PatternMatches();
  for (unsigned index : matches.parameters)
    found.push_back(parameterAt(index, names));
  for (unsigned index : matches.modules)
    found.push_back(moduleAt(index, names));
  for (unsigned index : matches.nodes)
    found.push_back(nodeAt(index, names));
  for (unsigned index : matches.inputs)
    found.push_back(valueOf("input", names.inputs[index]));
  for (unsigned index : matches.outputs)
    found.push_back(valueOf("output", names.outputs[index]));
  if (std::optional<unsigned> node = found.empty() ? findNode(name, model.graph) : std::nullopt)
    found.push_back(nodeAt(*node, names));
  // A name that is whole is meant before one that only ends so.
  std::stable_partition(found.begin(), found.end(), [&](const NamedThing &thing) { return thing.name == name; });
  return found;
}

std::vector<std::string> findNearNames(StringRef name, const NameTable &names) {
  constexpr size_t most = 4;
  size_t segments = splitName(name).size();
  std::string last = splitName(name).back().lower();
  std::vector<std::pair<unsigned, std::string>> near;
  StringSet<> known;
  auto consider = [&](StringRef full) {
    SmallVector<StringRef, 8> parts = splitName(full);
    std::string tail = join(ArrayRef(parts).take_back(std::min(segments, parts.size())), ".");
    unsigned apart = lettersApart(name, tail);
    bool contains = last.size() > 2 && full.lower().find(last) != std::string::npos;
    bool isNear = apart <= std::max<size_t>(1, name.size() / 4);
    if ((isNear || contains) && known.insert(inAnyLayer(full)).second)
      near.push_back({isNear ? apart : unsigned(name.size() + full.size()), full.str()});
  };
  for (const NameTable::Parameter &parameter : names.parameters)
    consider(parameter.name);
  for_each(names.modules, consider);
  for (const NameTable::Node &node : names.nodes)
    consider(node.name);
  for (const auto *values : {&names.inputs, &names.outputs})
    for (const NameTable::Value &value : *values)
      consider(value.name);
  stable_sort(near, [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<std::string> found;
  for (auto &[apart, full] : ArrayRef(near).take_front(most))
    found.push_back(full);
  return found;
}

} // namespace par
