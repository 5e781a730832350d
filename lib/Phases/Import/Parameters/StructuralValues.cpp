// Finds initializers that only give shapes, by how the graph uses them: no weights, though they may be floats.
#include "Parameters.h"

#include "llvm/ADT/STLExtras.h"

namespace par {

using llvm::StringRef;

namespace {

/// Operands that an operator must know for the shape of its result.
struct StructuralOperands {
  const char *opType;
  size_t first, last;
};
constexpr StructuralOperands structuralOperands[] = {
    {"Resize", 1, 3}, {"Upsample", 1, 1}, {"Reshape", 1, 1},   {"Expand", 1, 1},
    {"Tile", 1, 1},   {"Slice", 1, 4},    {"Pad", 1, 1},       {"ConstantOfShape", 0, 0},
    {"Range", 0, 2},  {"Squeeze", 1, 1},  {"Unsqueeze", 1, 1}, {"Split", 1, 1},
    {"TopK", 1, 1},   {"If", 0, 0},       {"Loop", 0, 1},
};

bool isStructural(const onnx::Node &node, size_t operand) {
  return llvm::any_of(structuralOperands, [&](const StructuralOperands &each) {
    return node.opType == each.opType && operand >= each.first && operand <= each.last;
  });
}

} // namespace

static void forEachNode(llvm::ArrayRef<onnx::Node> nodes, llvm::function_ref<void(const onnx::Node &)> visit) {
  for (const onnx::Node &node : nodes) {
    visit(node);
    for (const onnx::Attribute &attribute : node.attributes)
      if (attribute.graph)
        forEachNode(attribute.graph->nodes, visit);
  }
}

void forEachNode(const onnx::Model &model, llvm::function_ref<void(const onnx::Node &)> visit) {
  forEachNode(model.nodes, visit);
}

void collectReads(const onnx::Node &node, llvm::StringSet<> &names) {
  names.insert_range(node.inputs);
  for (const onnx::Attribute &attribute : node.attributes)
    if (attribute.graph)
      collectReads(*attribute.graph, names);
}

void collectReads(const onnx::Graph &body, llvm::StringSet<> &names) {
  for (const onnx::Node &node : body.nodes)
    collectReads(node, names);
  for (const onnx::ValueInfo &output : body.outputs)
    names.insert(output.name);
}

llvm::StringSet<> structuralValues(const onnx::Model &model) {
  llvm::StringSet<> structural, others; // used so, used otherwise
  for (const onnx::ValueInfo &output : model.outputs)
    others.insert(output.name);
  for (const onnx::Node &node : llvm::reverse(model.nodes)) { // users first
    bool known = !node.outputs.empty() && llvm::all_of(node.outputs, [&](const std::string &output) {
      return structural.contains(output) && !others.contains(output);
    });
    for (auto [operand, input] : llvm::enumerate(node.inputs))
      (known || isStructural(node, operand) ? structural : others).insert(input);
    for (const onnx::Attribute &attribute : node.attributes)
      if (attribute.graph)
        collectReads(*attribute.graph, others);
  }
  for (StringRef name : others.keys())
    structural.erase(name);
  return structural;
}

} // namespace par
