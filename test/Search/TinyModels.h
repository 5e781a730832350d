// Models of a few dozen nodes, made in memory, so that a search and hundreds of compilations take seconds.
#pragma once

#include "par/Compiler/Model.h"
#include "par/Phases/Import/Names.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

namespace par {

/// Nodes and weights of a model, one after the other. A matrix's bytes are zeros: nothing here runs.
class TinyModel {
public:
  explicit TinyModel(std::string name) {
    graph.path = std::move(name);
    graph.irVersion = 10;
    graph.opset = 20;
    graph.opsets = {{"", 20}};
  }

  std::string input(const std::string &name, onnx::ElementType type, llvm::ArrayRef<int64_t> dims) {
    graph.inputs.push_back(valueOf(name, type, dims));
    return name;
  }
  std::string weight(const std::string &name, llvm::ArrayRef<int64_t> dims) {
    onnx::Tensor tensor;
    tensor.name = name;
    tensor.type = onnx::ElementType::F32;
    tensor.dims = dims.vec();
    tensor.length = static_cast<uint64_t>(tensor.elements()) * sizeof(float);
    tensor.bytes.assign(tensor.length, '\0');
    graph.initializers.push_back(std::move(tensor));
    return name;
  }
  std::string integers(const std::string &name, llvm::ArrayRef<int64_t> numbers) {
    onnx::Tensor tensor;
    tensor.name = name;
    tensor.type = onnx::ElementType::I64;
    tensor.dims = {static_cast<int64_t>(numbers.size())};
    tensor.length = numbers.size() * sizeof(int64_t);
    tensor.bytes.assign(reinterpret_cast<const char *>(numbers.data()), tensor.length);
    graph.initializers.push_back(std::move(tensor));
    return name;
  }
  /// The value of a new node, which is named after its op.
  std::string node(const std::string &op, const std::string &module, std::vector<std::string> inputs,
                   std::vector<onnx::Attribute> attributes = {}) {
    onnx::Node made;
    made.opType = op;
    made.name = op + std::to_string(graph.nodes.size());
    made.modulePath = module;
    made.inputs = std::move(inputs);
    made.outputs = {made.name};
    made.attributes = std::move(attributes);
    graph.nodes.push_back(std::move(made));
    return graph.nodes.back().outputs.front();
  }
  /// The mean of the batch's cross entropy, as the output "loss".
  std::shared_ptr<const Model> lossOf(const std::string &logits, llvm::ArrayRef<int64_t> labels) {
    input("labels", onnx::ElementType::I64, labels);
    onnx::Attribute reduction;
    reduction.name = "reduction";
    reduction.kind = onnx::Attribute::String;
    reduction.s = "mean";
    node("SoftmaxCrossEntropyLoss", "", {logits, "labels"}, {reduction});
    graph.nodes.back().outputs = {"loss"};
    graph.outputs.push_back(valueOf("loss", onnx::ElementType::F32, {}));
    NameTable names = collectNames(graph);
    return std::make_shared<const Model>(Model{std::move(graph), std::move(names)});
  }

  static onnx::Attribute ints(const std::string &name, llvm::ArrayRef<int64_t> values) {
    onnx::Attribute made;
    made.name = name;
    made.kind = onnx::Attribute::Ints;
    made.ints = values.vec();
    return made;
  }
  static onnx::Attribute number(const std::string &name, int64_t value) {
    onnx::Attribute made;
    made.name = name;
    made.kind = onnx::Attribute::Int;
    made.i = value;
    return made;
  }

private:
  static onnx::ValueInfo valueOf(const std::string &name, onnx::ElementType type, llvm::ArrayRef<int64_t> dims) {
    onnx::ValueInfo info;
    info.name = name;
    info.type = type;
    info.isTensor = info.hasShape = true;
    for (int64_t dim : dims)
      info.shape.push_back({dim, ""});
    return info;
  }

  onnx::Model graph;
};

/// Matrices of these widths in a row, none equal to another if the widths differ.
inline std::shared_ptr<const Model> denseModel(int64_t batch, llvm::ArrayRef<int64_t> widths) {
  TinyModel model("dense");
  std::string value = model.input("x", onnx::ElementType::F32, {batch, widths.front()});
  for (size_t layer = 0; layer + 1 < widths.size(); ++layer) {
    std::string name = "fc" + std::string(1, static_cast<char>('a' + layer)); // without numbers: these are no layers
    std::string matrix = model.weight(name + ".weight", {widths[layer], widths[layer + 1]});
    value = model.node("MatMul", name, {value, matrix});
    value = model.node("Add", name, {value, model.weight(name + ".bias", {widths[layer + 1]})});
    if (layer + 2 < widths.size())
      value = model.node(layer % 2 ? "Relu" : "Tanh", "", {value});
  }
  return model.lossOf(value, {batch});
}

/// Residual blocks of two matrices, all equal, between two other matrices.
inline std::shared_ptr<const Model> stackModel(int64_t batch, int64_t layers, int64_t width) {
  TinyModel model("stack");
  std::string value = model.input("x", onnx::ElementType::F32, {batch, 24});
  value = model.node("MatMul", "inlet", {value, model.weight("inlet.weight", {24, width})});
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::string name = "h." + std::to_string(layer);
    std::string inner = model.node("MatMul", name, {value, model.weight(name + ".up.weight", {width, 2 * width})});
    inner = model.node("Relu", name, {inner});
    inner = model.node("MatMul", name, {inner, model.weight(name + ".down.weight", {2 * width, width})});
    value = model.node("Add", name, {value, inner});
  }
  value = model.node("MatMul", "head", {value, model.weight("head.weight", {width, 20})});
  return model.lossOf(value, {batch});
}

/// A decoder with one head: a table of embeddings, layers of attention and two matrices, a head over the vocabulary.
inline std::shared_ptr<const Model> decoderModel(int64_t batch, int64_t layers, int64_t width, int64_t vocabulary) {
  constexpr int64_t length = 8;
  TinyModel model("decoder");
  std::string ids = model.input("ids", onnx::ElementType::I64, {batch, length});
  std::string value = model.node("Gather", "wte", {model.weight("wte.weight", {vocabulary, width}), ids});
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::string name = "h." + std::to_string(layer);
    auto product = [&](const std::string &of, const std::string &weight, int64_t rows, int64_t columns) {
      return model.node("MatMul", name, {of, model.weight(name + "." + weight + ".weight", {rows, columns})});
    };
    std::string queries = product(value, "q", width, width), keys = product(value, "k", width, width);
    std::string turned = model.node("Transpose", name, {keys}, {TinyModel::ints("perm", {0, 2, 1})});
    std::string scores = model.node("MatMul", name, {queries, turned});
    std::string weights = model.node("Softmax", name, {scores}, {TinyModel::number("axis", -1)});
    std::string mixed = model.node("MatMul", name, {weights, product(value, "v", width, width)});
    value = model.node("Add", name, {value, product(mixed, "o", width, width)});
    std::string inner = model.node("Relu", name, {product(value, "up", width, 4 * width)});
    value = model.node("Add", name, {value, product(inner, "down", 4 * width, width)});
  }
  value = model.node("MatMul", "head", {value, model.weight("head.weight", {width, vocabulary})});
  value = model.node("Transpose", "", {value}, {TinyModel::ints("perm", {0, 2, 1})});
  return model.lossOf(value, {batch, length});
}

/// Experts whose outputs a gate weighs, between two matrices.
inline std::shared_ptr<const Model> expertsModel(int64_t batch, int64_t experts, int64_t width) {
  TinyModel model("experts");
  std::string value = model.input("x", onnx::ElementType::F32, {batch, 16});
  value = model.node("MatMul", "inlet", {value, model.weight("inlet.weight", {16, width})});
  std::string gate = model.node("MatMul", "gate", {value, model.weight("gate.weight", {width, experts})});
  gate = model.node("Softmax", "gate", {gate}, {TinyModel::number("axis", -1)});
  gate = model.node("Transpose", "gate", {gate}, {TinyModel::ints("perm", {1, 0})});
  gate = model.node("Unsqueeze", "gate", {gate, model.integers("last", {2})});
  std::string all = model.node("Unsqueeze", "experts", {value, model.integers("first", {0})});
  all = model.node("MatMul", "experts", {all, model.weight("experts.up", {experts, width, 2 * width})});
  all = model.node("Relu", "experts", {all});
  all = model.node("MatMul", "experts", {all, model.weight("experts.down", {experts, 2 * width, width})});
  all = model.node("Mul", "experts", {all, gate});
  value = model.node("ReduceSum", "experts", {all, "first"}, {TinyModel::number("keepdims", 0)});
  value = model.node("MatMul", "head", {value, model.weight("head.weight", {width, 12})});
  return model.lossOf(value, {batch});
}

/// A table of embeddings that is most of the model, and two matrices.
inline std::shared_ptr<const Model> tableModel(int64_t batch, int64_t rows, int64_t width) {
  TinyModel model("table");
  std::string ids = model.input("ids", onnx::ElementType::I64, {batch});
  std::string value = model.node("Gather", "table", {model.weight("table.weight", {rows, width}), ids});
  value = model.node("MatMul", "fca", {value, model.weight("fca.weight", {width, 32})});
  value = model.node("Relu", "", {value});
  value = model.node("MatMul", "fcb", {value, model.weight("fcb.weight", {32, 10})});
  return model.lossOf(value, {batch});
}

} // namespace par
