// Finds PyTorch's names of weights that an exporter transposed, folded and renamed.
#include "Parameters.h"

#include "llvm/ADT/STLExtras.h"

namespace par {

using llvm::StringRef;

bool isRenamed(StringRef initializer) { return initializer.starts_with("onnx::") || initializer.starts_with("val_"); }

namespace {

/// It has the result and the operands that its operator needs: files can hold nodes that are not checked yet.
bool isCalled(const onnx::Node &node, size_t operands) {
  return !node.outputs.empty() && node.inputs.size() >= operands;
}

/// Readers of each value, and the names of parameters in the file.
struct Uses {
  llvm::StringMap<std::vector<const onnx::Node *>> readers;
  /// Nodes that compute, by module.
  llvm::StringMap<unsigned> nodes;
  /// Initializers, and equal ones that the older exporter passes through an Identity.
  llvm::StringSet<> parameters;
  /// Names of the signature, if there is one.
  llvm::StringSet<> signature;

  explicit Uses(const onnx::Model &model) {
    for (const onnx::SignatureEntry &entry : model.signature)
      if (entry.kind == "PARAMETER")
        signature.insert(entry.target);
    for (const onnx::Tensor &tensor : model.initializers)
      parameters.insert(tensor.name);
    for (const onnx::Node &node : model.nodes) {
      if (node.opType == "Identity" && isCalled(node, 1) && parameters.contains(node.inputs[0]))
        parameters.insert(node.outputs[0]);
      if (node.opType != "Constant" && node.opType != "Identity" && node.opType != "Cast")
        ++nodes[node.modulePath];
      for (const std::string &input : node.inputs)
        if (!input.empty())
          readers[input].push_back(&node);
    }
  }

  /// `fc.weight` if `fc.bias` is added to the matmul's result: nn.Linear's, also nn.MultiheadAttention's
  /// `in_proj_weight`.
  std::string besideBias(const onnx::Node &product) const {
    auto found = readers.find(product.outputs[0]);
    if (found == readers.end())
      return "";
    for (const onnx::Node *node : found->second) {
      if (node->opType != "Add" || !isCalled(*node, 2))
        continue;
      StringRef bias = node->inputs[node->inputs[0] == product.outputs[0]];
      if (bias.ends_with("bias") && parameters.contains(bias))
        return (bias.drop_back(4) + "weight").str();
    }
    return "";
  }

  /// The weight's name, from the bias or from a module whose only node is this matmul; else "".
  std::string weightOf(const onnx::Node &product) const {
    std::string name = besideBias(product);
    if (name.empty() && !product.modulePath.empty() && nodes.lookup(product.modulePath) == 1)
      name = product.modulePath + ".weight";
    bool other = !signature.empty() && !signature.contains(name);
    return other || parameters.contains(name) ? "" : name;
  }

  /// The name, if all matmuls with this initializer on the right give the same one; else "".
  std::string nameOf(const onnx::Tensor &tensor) const {
    auto found = readers.find(tensor.name);
    if (!isRenamed(tensor.name) || !onnx::isFloat(tensor.type) || tensor.dims.size() != 2 || found == readers.end())
      return "";
    std::string name;
    for (const onnx::Node *node : found->second) {
      if (node->opType == "Identity")
        continue; // a second call of the layer
      bool right = node->opType == "MatMul" && isCalled(*node, 2) && node->inputs[1] == tensor.name;
      std::string here = right ? weightOf(*node) : "";
      if (here.empty() || (!name.empty() && here != name))
        return "";
      name = here;
    }
    return name;
  }
};

} // namespace

llvm::StringMap<std::string> transposedWeights(const onnx::Model &model) {
  llvm::StringMap<std::string> names;
  if (llvm::none_of(model.initializers, [](const onnx::Tensor &tensor) { return isRenamed(tensor.name); }))
    return names;
  Uses uses(model);
  llvm::StringMap<unsigned> claims;
  for (const onnx::Tensor &tensor : model.initializers) {
    std::string name = uses.nameOf(tensor);
    if (name.empty())
      continue;
    ++claims[name];
    names[tensor.name] = name;
  }
  // A name that two initializers claim belongs to neither.
  for (const onnx::Tensor &tensor : model.initializers)
    if (auto found = names.find(tensor.name); found != names.end() && claims[found->second] > 1)
      names.erase(found);
  return names;
}

} // namespace par
