// Checks the names of a graph before any node is read: each must have one meaning. Readers of ONNX take the first or
// the last of two equal names; Par refuses them.
#include "GraphImporter.h"

#include "par/Phases/Import/Operators.h"
#include "par/format/Printable.h"

#include "llvm/ADT/StringExtras.h"

namespace par {

using namespace mlir;

/// The value that an initializer gives an input has the type that the input declares.
static bool agrees(const onnx::ValueInfo &input, const onnx::Tensor &tensor) {
  if (!input.isTensor || input.type != tensor.type)
    return false;
  bool same = !input.hasShape || input.shape.size() == tensor.dims.size();
  for (size_t i = 0; same && i < input.shape.size(); ++i)
    same = input.shape[i].size < 0 || input.shape[i].size == tensor.dims[i];
  return same;
}

static std::string spell(onnx::ElementType type, ArrayRef<std::string> dims) {
  return onnx::spell(type) + "[" + llvm::join(dims, ", ") + "]";
}

static std::string spell(const onnx::ValueInfo &info) {
  std::vector<std::string> dims;
  for (const onnx::Dim &dim : info.shape)
    dims.push_back(dim.size < 0 ? dim.symbol : std::to_string(dim.size));
  return spell(info.type, dims);
}

InFlightDiagnostic GraphImporter::errorAt(const onnx::ValueInfo &output) {
  for (const onnx::Node &node : model.nodes)
    if (llvm::is_contained(node.outputs, output.name))
      return NodeImporter(*this, node, locationOf(output)).error() << "output \"" << output.name << "\" ";
  return error() << "output \"" << output.name << "\" ";
}

LogicalResult GraphImporter::checkDeclared(const onnx::ValueInfo &output, const GraphValue &value) {
  if (!output.isTensor || output.type == onnx::ElementType::Undefined || (!value.known && !value.computed))
    return success();
  RankedTensorType type = value.known ? typeOf(value.known->getType(), value.known->getShape())
                                      : cast<RankedTensorType>(value.computed.getType());
  bool isUnsigned = value.known ? onnx::isUnsigned(value.known->getType()) : value.isUnsigned;
  RankedTensorType declared = typeOf(output.type, {});
  if (!declared || declared.getElementType() != type.getElementType() || onnx::isUnsigned(output.type) != isUnsigned)
    return errorAt(output) << "is declared " << spell(output) << ", and the graph gives it " << type;
  bool same = !output.hasShape || int64_t(output.shape.size()) == type.getRank();
  for (size_t i = 0; same && output.hasShape && i < output.shape.size(); ++i)
    same = sizeOf(output.shape[i]).value_or(type.getDimSize(i)) == type.getDimSize(i);
  if (!same)
    emitWarning(fileLoc) << "output \"" << output.name << "\" is declared " << spell(output)
                         << ", and the graph gives it " << type << ", which holds";
  return success();
}

LogicalResult GraphImporter::checkInputs() {
  llvm::StringSet<> inputs;
  for (const std::vector<onnx::ValueInfo> *list : {&model.inputs, &model.initialized})
    for (const onnx::ValueInfo &input : *list)
      if (input.name.empty() || !inputs.insert(input.name).second)
        return error() << "input \"" << input.name << "\" is declared twice or has no name";
  llvm::StringMap<const onnx::Tensor *> tensors;
  for (const onnx::Tensor &tensor : model.initializers)
    tensors[tensor.name] = &tensor;
  for (const onnx::ValueInfo &input : model.initialized) {
    const onnx::Tensor &tensor = *tensors.lookup(input.name);
    std::vector<std::string> dims;
    for (int64_t dim : tensor.dims)
      dims.push_back(std::to_string(dim));
    if (!agrees(input, tensor))
      return error() << "initializer \"" << tensor.name << "\" is " << spell(tensor.type, dims)
                     << ", and the input that it gives a value is declared " << spell(input);
  }
  return success();
}

/// A body or a function gives each of its own names one value; `where` names the body or function.
static std::string findTwice(ArrayRef<std::string> formals, ArrayRef<onnx::Tensor> initializers,
                             ArrayRef<onnx::Node> nodes) {
  llvm::StringSet<> defined;
  for (const std::string &formal : formals)
    if (!formal.empty() && !defined.insert(formal).second)
      return formal;
  for (const onnx::Tensor &tensor : initializers)
    if (!llvm::is_contained(formals, tensor.name) && !defined.insert(tensor.name).second)
      return tensor.name;
  for (const onnx::Node &node : nodes)
    for (const std::string &output : node.outputs)
      if (!output.empty() && !defined.insert(output).second)
        return output;
  return "";
}

/// The first name that a body of these nodes, or a body within one, gives two values.
static std::string findTwiceInBodies(ArrayRef<onnx::Node> nodes) {
  for (const onnx::Node &node : nodes)
    for (const onnx::Attribute &attribute : node.attributes) {
      if (!attribute.graph)
        continue;
      const onnx::Graph &body = *attribute.graph;
      std::vector<std::string> inputs;
      for (const onnx::ValueInfo &input : body.inputs)
        inputs.push_back(input.name);
      std::string twice = findTwice(inputs, body.initializers, body.nodes);
      if (twice.empty())
        twice = findTwiceInBodies(body.nodes);
      if (!twice.empty())
        return twice;
    }
  return "";
}

LogicalResult GraphImporter::checkFunctions() {
  llvm::StringSet<> known;
  for (const onnx::Function &function : model.functions) {
    std::string name =
        function.domain + "::" + function.name + (function.overload.empty() ? "" : ":" + function.overload);
    if (!known.insert(name).second)
      return error() << "function \"" << name << "\" is defined twice";
    std::string twice = findTwice(function.inputs, {}, function.nodes);
    if (twice.empty())
      twice = findTwiceInBodies(function.nodes);
    if (!twice.empty())
      return error() << "function \"" << name << "\": value \"" << twice << "\" is defined twice";
  }
  return success();
}

/// The bundle holds these names, and files of weights, data and results do; a terminal prints them.
static const std::string *findControl(const onnx::Model &model) {
  auto holds = [](StringRef name) {
    return llvm::any_of(name, [](char c) { return format::isControl(static_cast<unsigned char>(c)); });
  };
  for (const std::vector<onnx::ValueInfo> *list : {&model.inputs, &model.outputs})
    for (const onnx::ValueInfo &info : *list)
      if (holds(info.name))
        return &info.name;
  for (const onnx::Tensor &tensor : model.initializers)
    if (holds(tensor.name))
      return &tensor.name;
  return nullptr;
}

LogicalResult GraphImporter::checkNames() {
  if (const std::string *name = findControl(model))
    return error() << "\"" << format::printable(*name)
                   << "\" has a control character in its name, which no file of weights or data "
                   << "should; rename it";
  llvm::StringSet<> given, defined;
  for (const onnx::ValueInfo &input : model.inputs)
    given.insert(input.name);
  for (const onnx::Tensor &tensor : model.initializers)
    given.insert(tensor.name);
  for (const onnx::Node &node : model.nodes) {
    for (const std::string &output : node.outputs)
      if (!output.empty() && given.contains(output))
        return error() << "node \"" << node.name << "\": value \"" << output << "\" is defined twice: an input or "
                       << "initializer has this name; give that another one, or export with par.export, which does so";
      else if (!output.empty() && !defined.insert(output).second)
        return error() << "node \"" << node.name << "\": value \"" << output << "\" is defined twice";
    if (std::string twice = findTwiceInBodies(node); !twice.empty())
      return error() << "node \"" << node.name << "\": value \"" << twice << "\" of its body is defined twice";
  }
  llvm::StringSet<> outputs;
  for (const onnx::ValueInfo &output : model.outputs) {
    if (!given.contains(output.name) && !defined.contains(output.name))
      return error() << "output \"" << output.name << "\" is defined nowhere";
    if (!outputs.insert(output.name).second)
      return error() << "output \"" << output.name << "\" is declared twice";
  }
  return success();
}

/// Notes the names that nodes read, in their bodies too: a body sees the values around it.
LogicalResult GraphImporter::checkModel() {
  for (const onnx::Node &node : model.nodes)
    collectReads(node, used);
  for (const onnx::Function &function : model.functions) {
    for (const onnx::Node &node : function.nodes)
      collectReads(node, used);
    for (const std::string &output : function.outputs)
      used.insert(output);
  }
  for (const onnx::ValueInfo &output : model.outputs)
    used.insert(output.name);
  for (const onnx::BufferUpdate &update : writtenBuffers()) {
    used.insert(update.output);
    used.insert(update.buffer);
  }
  return success(succeeded(checkInputs()) && succeeded(checkFunctions()) && succeeded(checkNames()));
}

/// "1 input", "2 to 4 inputs", "at least 1 output".
static std::string describe(const CountRange &range, StringRef what) {
  std::string text = std::to_string(range.least);
  if (!range.most)
    text = "at least " + text;
  else if (*range.most != range.least)
    text += " to " + std::to_string(*range.most);
  return text + " " + what.str() + (range.most.value_or(range.least) == 1 ? "" : "s");
}

LogicalResult GraphImporter::checkArity(NodeImporter &importer) {
  const onnx::Node &node = importer.node;
  std::optional<Arity> arity = node.domain.empty() ? arityOf(node.opType, opset) : std::nullopt;
  if (!arity)
    return success();
  auto fits = [](const CountRange &range, size_t count) {
    return count >= range.least && (!range.most || count <= *range.most);
  };
  if (!fits(arity->inputs, node.inputs.size()))
    return importer.error() << "op " << node.opType << " takes " << describe(arity->inputs, "input") << ", found "
                            << node.inputs.size();
  // An unused result has an empty name; older opsets of some operators have more results.
  size_t outputs = node.outputs.size();
  while (outputs > arity->outputs.least && node.outputs[outputs - 1].empty())
    --outputs;
  if (!fits(arity->outputs, outputs))
    return importer.error() << "op " << node.opType << " gives " << describe(arity->outputs, "output") << ", found "
                            << node.outputs.size();
  return success();
}

} // namespace par
