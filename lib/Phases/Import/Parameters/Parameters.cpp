// Classifies initializers as parameters or buffers and finds tied ones: from the exporter's notes if there are any,
// else from names, reading modules and batch-norm positions.
#include "Parameters.h"

#include "par/Base/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace par {

using llvm::StringRef;

/// PARAMETER, BUFFER or "" as torch.onnx notes it beside the value and in the graph signature.
static llvm::StringMap<std::string> exporterMarks(const onnx::Model &model) {
  llvm::StringMap<std::string> marks;
  for (const onnx::SignatureEntry &entry : model.signature)
    if (!entry.target.empty())
      marks[entry.target] = entry.kind;
  for (const onnx::ValueInfo &info : model.valueInfo) {
    std::string_view kind = onnx::lookup(info.metadata, "pkg.torch.export.graph_signature.InputSpec.kind");
    if (!kind.empty())
      marks[info.name] = std::string(kind);
    else if (info.doc == "PARAMETER" || info.doc == "BUFFER")
      marks[info.name] = info.doc;
  }
  return marks;
}

/// The first segment that all names share (`model.` of a wrapping module), with its dot; else "".
static std::string wrapperPrefix(const llvm::StringSet<> &names) {
  std::string prefix;
  for (StringRef name : names.keys()) {
    if (isRenamed(name))
      continue;
    size_t dot = name.find('.');
    if (dot == StringRef::npos || (!prefix.empty() && !name.starts_with(prefix)))
      return "";
    prefix = name.take_front(dot + 1).str();
  }
  // `fc.weight, fc.bias` is a model of one layer, not a wrapper around one.
  bool deep = llvm::any_of(names.keys(), [&](StringRef name) { return name.count('.') > 2; });
  return deep ? prefix : "";
}

/// Statistics of batch norms: of those in training mode if `moved`, else of all.
static llvm::StringSet<> batchNormStatistics(const onnx::Model &model, bool moved) {
  llvm::StringSet<> statistics;
  forEachNode(model, [&](const onnx::Node &node) {
    bool trains = model.opset < 14 ? node.outputs.size() > 1 : node.intAttribute("training_mode", 0) != 0;
    if (node.opType == "BatchNormalization" && (trains || !moved))
      for (size_t i = 3; i < node.inputs.size(); ++i)
        statistics.insert(node.inputs[i]);
  });
  return statistics;
}

/// Initializers that a node of `module` reads.
static std::vector<std::string> readIn(const onnx::Model &model, StringRef module,
                                       const llvm::StringSet<> &initializers) {
  std::vector<std::string> names;
  forEachNode(model, [&](const onnx::Node &node) {
    if (node.modulePath == module)
      for (const std::string &input : node.inputs)
        if (initializers.contains(input))
          names.push_back(input);
  });
  return names;
}

/// The only initializer `MODULE.CHILD.LEAF`, or "" if there is none or several.
static std::string onlyChild(const llvm::StringSet<> &initializers, StringRef module, StringRef leaf) {
  std::string found;
  for (StringRef name : initializers.keys()) {
    auto [path, last] = name.rsplit('.');
    if (last != leaf || path.rsplit('.').first != module || !path.contains('.'))
      continue;
    if (!found.empty())
      return "";
    found = name.str();
  }
  return found;
}

/// The initializer's own module reads it, or one around that (MobileBERT's head multiplies by `decoder.weight` and
/// never calls `decoder`).
static bool isReadAtHome(const onnx::Model &model, StringRef name, const llvm::StringSet<> &initializers) {
  StringRef module = name.rsplit('.').first;
  while (!llvm::is_contained(readIn(model, module, initializers), name)) {
    if (!module.contains('.'))
      return false;
    module = module.rsplit('.').first;
  }
  return true;
}

/// Ties that par.export wrote: `{"tok.weight": "head.weight"}`, another name and the initializer's. A malformed text
/// gives none.
static llvm::StringMap<std::string> saidTies(const onnx::Model &model) {
  llvm::StringMap<std::string> ties;
  llvm::Expected<llvm::json::Value> parsed = parseJson(onnx::lookup(model.metadata, "par.tied"));
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return ties;
  }
  if (const llvm::json::Object *object = parsed->getAsObject())
    for (const auto &[name, owner] : *object)
      if (std::optional<StringRef> text = owner.getAsString())
        ties[name] = text->str();
  return ties;
}

/// A tied parameter is one initializer under its last name; its other names are in the signature without an
/// initializer. If par.export does not name the owner, it is the initializer of the same last segment that a node of
/// the name's module reads. The initializer's own module must read it too (a batch norm folded into a convolution
/// leaves a weight that only the batch norm's module reads).
static void findTies(const onnx::Model &model, const llvm::StringSet<> &initializers, ParameterTable &table) {
  llvm::StringMap<std::string> said = saidTies(model);
  for (const onnx::SignatureEntry &entry : model.signature) {
    if (entry.kind != "PARAMETER" || initializers.contains(entry.target))
      continue;
    auto [module, leaf] = StringRef(entry.target).rsplit('.');
    std::string owner = said.lookup(entry.target);
    if (!initializers.contains(owner))
      owner.clear();
    for (const std::string &name : owner.empty() ? readIn(model, module, initializers) : std::vector<std::string>())
      if (StringRef(name).rsplit('.').second == leaf && isReadAtHome(model, name, initializers))
        owner = name;
    if (owner.empty()) {
      table.lost.push_back(entry.target);
      // Perhaps it is only used below (BERT's `cls.predictions.bias` is its decoder's): then files hold both names.
      std::string below = onlyChild(initializers, module, leaf);
      if (!below.empty())
        table.aliases[below].push_back(entry.target);
      continue;
    }
    table.tied.push_back({entry.target, owner});
    table.aliases[owner].push_back(entry.target);
  }
}

/// Without a signature, parameters that were equal are one, which an Identity passes on under the other's name.
static void findPassedOn(const onnx::Model &model, const llvm::StringSet<> &initializers, ParameterTable &table) {
  if (!model.signature.empty())
    return;
  for (const onnx::Node &node : model.nodes) {
    bool called = node.opType == "Identity" && node.inputs.size() == 1 && node.outputs.size() == 1;
    if (!called || !initializers.contains(node.inputs[0]) || isRenamed(node.inputs[0]))
      continue;
    StringRef name = node.outputs[0];
    if (!name.contains('.') || name.starts_with("/") || isRenamed(name))
      continue;
    table.tied.push_back({name.str(), node.inputs[0]});
    table.aliases[node.inputs[0]].push_back(name.str());
  }
}

/// Drops the wrapper's prefix from the names of parameters and statistics.
static void nameWithoutWrapper(ParameterTable &table) {
  llvm::StringSet<> names = table.trainable;
  for (const auto &[alias, owner] : table.tied)
    names.insert(alias);
  std::string prefix = table.wrapper = wrapperPrefix(names);
  if (prefix.empty())
    return;
  llvm::StringSet<> kept = table.trainable;
  kept.insert_range(table.moved.keys());
  for (StringRef name : kept.keys()) {
    if (!name.starts_with(prefix))
      continue;
    std::vector<std::string> &names = table.aliases[name], longNames = names;
    names.push_back(name.substr(prefix.size()).str());
    for (StringRef longName : longNames)
      if (longName.starts_with(prefix))
        names.push_back(longName.substr(prefix.size()).str());
  }
}

ParameterTable classifyParameters(const onnx::Model &model) {
  ParameterTable table;
  llvm::StringMap<std::string> marks = exporterMarks(model);
  llvm::StringSet<> initializers;
  table.statistics = batchNormStatistics(model, false);
  bool marked = false;
  for (const onnx::Tensor &tensor : model.initializers) {
    initializers.insert(tensor.name);
    marked |= marks.lookup(tensor.name) == "PARAMETER";
  }
  llvm::StringSet<> structural = marked ? llvm::StringSet<>() : structuralValues(model);
  auto isNamed = [](StringRef name) { return name.ends_with(".weight") || name.ends_with(".bias"); };
  for (const onnx::Tensor &tensor : model.initializers) {
    bool guess = (tensor.elements() > 1 || (tensor.elements() == 1 && isNamed(tensor.name))) &&
                 !table.statistics.contains(tensor.name) && !structural.contains(tensor.name);
    if (onnx::isFloat(tensor.type) && (marked ? marks.lookup(tensor.name) == "PARAMETER" : guess))
      table.trainable.insert(tensor.name);
  }
  table.moved = batchNormStatistics(model, true);
  for (const onnx::BufferUpdate &update : model.updates) {
    table.moved.insert(update.buffer);
    table.trainable.erase(update.buffer);
  }
  findTies(model, initializers, table);
  findPassedOn(model, initializers, table);
  nameWithoutWrapper(table);
  return table;
}

std::vector<std::string> nodePaths(const onnx::Model &model) {
  std::vector<std::string> paths;
  llvm::StringMap<unsigned> seen;
  for (const onnx::Node &node : model.nodes) {
    std::string path = node.modulePath.empty() ? node.opType : node.modulePath + "/" + node.opType;
    unsigned count = seen[path]++;
    paths.push_back(count ? path + "." + std::to_string(count) : path);
  }
  return paths;
}

} // namespace par
