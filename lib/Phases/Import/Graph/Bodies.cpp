// Graphs inside the graph: bodies of control flow, and functions of the model.
#include "GraphImporter.h"

namespace par {

using namespace mlir;

/// Maximum nodes of unrolled bodies: a body is imported once an iteration.
static constexpr int64_t innerNodeLimit = 200000;
static constexpr unsigned depthLimit = 32;

LogicalResult GraphImporter::countInner(int64_t times, int64_t nodes, NodeImporter &caller) {
  if (times <= innerNodeLimit)
    innerNodes += times * nodes;
  if (times > innerNodeLimit || innerNodes > innerNodeLimit)
    return caller.error() << "unrolls to more than " << innerNodeLimit << " nodes, which is not supported yet";
  return success();
}

LogicalResult NodeImporter::unroll(int64_t times, int64_t nodes) { return graph.countInner(times, nodes, *this); }

LogicalResult GraphImporter::importInner(ArrayRef<onnx::Node> nodes, NodeImporter &caller) {
  if (++depth > depthLimit)
    return caller.error() << "holds functions and bodies nested deeper than " << depthLimit;
  // The round counts too: a body without nodes would be repeated without end.
  if (failed(countInner(1, nodes.size() + 1, caller)))
    return failure();
  std::optional<Provenance> outer = getProvenance(caller.loc);
  llvm::StringMap<unsigned> seen;
  for (const onnx::Node &node : nodes) {
    std::string path = (outer->path + "/" + node.opType).str();
    if (unsigned count = seen[path]++)
      path += "." + std::to_string(count);
    Provenance place{node.name.empty() ? outer->node : StringRef(node.name),
                     node.modulePath.empty() ? outer->module : StringRef(node.modulePath), path,
                     node.sourceFile.empty() ? outer->file : StringRef(node.sourceFile),
                     node.sourceFile.empty() ? outer->line : unsigned(node.sourceLine)};
    if (failed(importNode(node, place)))
      return failure();
  }
  --depth;
  return success();
}

namespace {

/// Restores the outer graph's values of all names that a body defines, once the body is read.
class BodyNames {
public:
  BodyNames(llvm::StringMap<GraphValue> &values, const onnx::Graph &body) : values(values) {
    for (const onnx::ValueInfo &input : body.inputs)
      keep(input.name);
    for (const onnx::Tensor &tensor : body.initializers)
      keep(tensor.name);
    for (const onnx::Node &node : body.nodes)
      for (const std::string &output : node.outputs)
        keep(output);
  }
  ~BodyNames() {
    for (auto &[name, value] : outer)
      if (value)
        values[name] = std::move(*value);
      else
        values.erase(name);
  }
  BodyNames(const BodyNames &) = delete;
  BodyNames &operator=(const BodyNames &) = delete;

private:
  void keep(StringRef name) {
    auto found = values.find(name);
    if (own.insert(name).second)
      outer.emplace_back(name, found == values.end() ? std::optional<GraphValue>() : found->second);
  }

  llvm::StringMap<GraphValue> &values;
  llvm::StringSet<> own;
  std::vector<std::pair<StringRef, std::optional<GraphValue>>> outer;
};

} // namespace

FailureOr<std::vector<GraphValue>> GraphImporter::importBody(const onnx::Graph &body, ArrayRef<GraphValue> inputs,
                                                             NodeImporter &caller) {
  if (body.inputs.size() != inputs.size())
    return caller.error() << "its body has " << body.inputs.size() << " inputs, expected " << inputs.size();
  BodyNames names(values, body);
  for (auto [info, value] : llvm::zip(body.inputs, inputs))
    values[info.name] = value;
  for (const onnx::Tensor &tensor : body.initializers) {
    std::string reason;
    std::optional<StaticTensor> known;
    if (std::optional<std::string> bytes = readTensor(model, tensor, reason))
      known = StaticTensor::ofBytes(tensor.type, tensor.dims, *bytes);
    if (!known)
      return caller.error() << "initializer \"" << tensor.name << "\" of its body has no value that can be held"
                            << (reason.empty() ? "" : ": " + reason);
    values[tensor.name] = GraphValue{std::make_shared<StaticTensor>(std::move(*known)), {}, {}, false};
  }
  if (failed(importInner(body.nodes, caller)))
    return failure();
  std::vector<GraphValue> outputs;
  for (const onnx::ValueInfo &output : body.outputs) {
    auto found = values.find(output.name);
    if (found == values.end())
      return caller.error() << "output \"" << output.name << "\" of its body is defined nowhere";
    outputs.push_back(found->second);
  }
  return outputs;
}

/// The function's nodes with the caller's attributes in place of references to them; an attribute without a value is
/// left out.
static std::vector<onnx::Node> bindAttributes(ArrayRef<onnx::Node> nodes, const onnx::Function &function,
                                              const onnx::Node &call) {
  std::vector<onnx::Node> bound(nodes.begin(), nodes.end());
  for (onnx::Node &node : bound) {
    std::vector<onnx::Attribute> attributes;
    for (onnx::Attribute &attribute : node.attributes) {
      if (attribute.graph) {
        auto graph = std::make_shared<onnx::Graph>(*attribute.graph);
        graph->nodes = bindAttributes(attribute.graph->nodes, function, call);
        attribute.graph = graph;
      }
      const onnx::Attribute *given = &attribute;
      if (attribute.isReference) {
        given = call.attribute(attribute.s);
        for (const onnx::Attribute &otherwise : function.defaults)
          if (!given && otherwise.name == attribute.s)
            given = &otherwise;
      }
      if (given)
        attributes.push_back(*given);
      if (given && given != &attribute)
        attributes.back().name = attribute.name;
    }
    node.attributes = std::move(attributes);
  }
  return bound;
}

LogicalResult GraphImporter::importCall(const onnx::Function &function, NodeImporter &caller) {
  if (caller.numInputs() > function.inputs.size() || caller.node.outputs.size() > function.outputs.size())
    return caller.error() << "does not fit function " << function.name << " of " << function.inputs.size()
                          << " inputs and " << function.outputs.size() << " outputs";
  llvm::StringMap<GraphValue> inner;
  for (auto [i, formal] : llvm::enumerate(function.inputs))
    inner[formal] = caller.has(i) ? *caller.value(i) : GraphValue();
  std::swap(values, inner);
  int64_t outerOpset = std::exchange(opset, function.opset);
  folder.setOpset(opset);
  std::vector<onnx::Node> nodes = bindAttributes(function.nodes, function, caller.node);
  LogicalResult result = importInner(nodes, caller);
  std::swap(values, inner);
  opset = outerOpset;
  folder.setOpset(opset);
  if (failed(result))
    return failure();
  for (auto [k, formal] : llvm::enumerate(function.outputs)) {
    auto found = inner.find(formal);
    if (found == inner.end())
      return caller.error() << "function " << function.name << " does not define its output \"" << formal << "\"";
    if (failed(caller.bindValue(found->second, k)))
      return failure();
  }
  return success();
}

static const onnx::Graph *bodyOf(const onnx::Node &node, StringRef name) {
  const onnx::Attribute *attribute = node.attribute(std::string_view(name));
  return attribute ? attribute->graph.get() : nullptr;
}

std::optional<size_t> NodeImporter::bodyInputs(StringRef attribute) const {
  const onnx::Graph *body = bodyOf(node, attribute);
  return body ? std::optional(body->inputs.size()) : std::nullopt;
}

FailureOr<std::vector<GraphValue>> NodeImporter::runBody(StringRef attribute, ArrayRef<GraphValue> inputs) {
  const onnx::Graph *body = bodyOf(node, attribute);
  if (!body)
    return error() << "has no graph \"" << attribute << "\"";
  return graph.importBody(*body, inputs, *this);
}

} // namespace par
