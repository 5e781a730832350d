// Collects the parameters, modules, nodes and inputs of a model under the names that a plan can use.
#include "par/Phases/Import/Names.h"
#include "Parameters.h"
#include "TrainingMarks.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace par {

using llvm::StringRef;

static std::string spellDim(const onnx::Dim &dim) {
  return dim.size >= 0 ? std::to_string(dim.size) : dim.symbol.empty() ? "?" : dim.symbol;
}

static NameTable::Value convert(const onnx::ValueInfo &info) {
  NameTable::Value value{info.name, {}, onnx::spell(info.type)};
  for (const onnx::Dim &dim : info.shape)
    value.shape.push_back(spellDim(dim));
  return value;
}

/// The module and the source line that first read an initializer.
struct FirstUse {
  std::string module, source;
};
static llvm::StringMap<FirstUse> findFirstUses(const onnx::Model &model) {
  llvm::StringMap<FirstUse> uses;
  forEachNode(model, [&](const onnx::Node &node) {
    for (const std::string &input : node.inputs)
      if (!input.empty() && !uses.contains(input))
        uses[input] = {node.modulePath,
                       node.sourceFile.empty() ? "" : node.sourceFile + ":" + std::to_string(node.sourceLine)};
  });
  return uses;
}

/// The name that the module gives a renamed weight that it reads (`lstm.weight`); only plans use it.
static std::string nameInModule(const onnx::Tensor &tensor, const FirstUse &use) {
  if (use.module.empty() || !onnx::isFloat(tensor.type))
    return "";
  return use.module + (tensor.dims.size() > 1 ? ".weight" : ".bias");
}

/// Adds the file's training marks of the module. Broken marks are an error only if the model is trained, so they are
/// skipped here.
static void noteTraining(const onnx::Model &model, NameTable &names) {
  llvm::Expected<TrainingMarks> marks = readTrainingMarks(model);
  if (!marks)
    return llvm::consumeError(marks.takeError());
  llvm::StringMap<std::string> notes;
  for (const onnx::Node &node : model.nodes) {
    auto found = marks->embeddings.find(node.name);
    if (found == marks->embeddings.end() || node.inputs.empty())
      continue;
    std::string &note = notes[node.inputs[0]];
    if (!note.empty())
      continue; // the table's first use speaks for it
    if (found->second.paddingRow)
      note = "no gradient from lookups of row " + std::to_string(*found->second.paddingRow) + " (padding_idx)";
    if (found->second.byFrequency)
      note += std::string(note.empty() ? "" : ", ") + "gradient by frequency (scale_grad_by_freq)";
  }
  for (NameTable::Parameter &parameter : names.parameters) {
    parameter.frozen = parameter.trainable && marks->frozen.contains(parameter.name);
    parameter.gradientNote = notes.lookup(parameter.name);
  }
}

static void collectParameters(const onnx::Model &model, NameTable &names) {
  ParameterTable table = classifyParameters(model);
  llvm::StringMap<FirstUse> uses = findFirstUses(model);
  llvm::StringMap<std::string> transposed = transposedWeights(model);
  llvm::StringSet<> taken;
  for (const onnx::Tensor &tensor : model.initializers)
    taken.insert(tensor.name);
  for (const auto &entry : transposed)
    taken.insert(entry.second);
  for (const onnx::Tensor &tensor : model.initializers) {
    FirstUse use = uses.lookup(tensor.name);
    NameTable::Parameter parameter{tensor.name,
                                   table.aliases.lookup(tensor.name),
                                   tensor.dims,
                                   onnx::spell(tensor.type),
                                   table.trainable.contains(tensor.name),
                                   use.source};
    parameter.renamed = isRenamed(tensor.name);
    if (std::string name = transposed.lookup(tensor.name); !name.empty()) {
      parameter.transposed.push_back(name);
      if (!table.wrapper.empty() && StringRef(name).starts_with(table.wrapper))
        parameter.transposed.push_back(name.substr(table.wrapper.size()));
    } else if (parameter.renamed) {
      std::string inModule = nameInModule(tensor, use);
      if (!inModule.empty() && taken.insert(inModule).second)
        parameter.aliases.push_back(inModule);
    }
    names.parameters.push_back(std::move(parameter));
  }
  noteTraining(model, names);
}

NameTable collectNames(const onnx::Model &model) {
  NameTable names;
  names.model = StringRef(model.path).rsplit('/').second.str();
  if (names.model.empty())
    names.model = model.path;
  collectParameters(model, names);
  llvm::SetVector<StringRef> modules;
  std::vector<std::string> paths = nodePaths(model);
  for (auto [node, path] : llvm::zip(model.nodes, paths)) {
    StringRef module = node.modulePath;
    for (size_t dot = module.find('.'); dot != StringRef::npos; dot = module.find('.', dot + 1))
      modules.insert(module.take_front(dot));
    if (!module.empty())
      modules.insert(module);
    std::string source = node.sourceFile.empty() ? "" : node.sourceFile + ":" + std::to_string(node.sourceLine);
    names.nodes.push_back({path, node.modulePath, node.opType, source});
  }
  for (StringRef module : modules)
    names.modules.push_back(module.str());
  llvm::SetVector<StringRef> symbols;
  for (const onnx::ValueInfo &input : model.inputs) {
    names.inputs.push_back(convert(input));
    for (const onnx::Dim &dim : input.shape)
      if (!dim.symbol.empty())
        symbols.insert(dim.symbol);
  }
  for (StringRef symbol : symbols)
    names.symbols.push_back(symbol.str());
  for (const onnx::ValueInfo &output : model.outputs) {
    names.outputs.push_back(convert(output));
    for (auto [node, path] : llvm::zip(model.nodes, paths))
      if (llvm::is_contained(node.outputs, output.name))
        names.outputs.back().node = path;
  }
  return names;
}

} // namespace par
