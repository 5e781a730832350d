// Import refuses options that only a caller in C++ or a plan gives.
#include "par/Phases/Import/Fold.h"
#include "par/Phases/Import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace par;

namespace {

onnx::ValueInfo infoOf(const std::string &name, std::vector<int64_t> shape) {
  onnx::ValueInfo info;
  info.name = name;
  info.type = onnx::ElementType::F32;
  info.isTensor = info.hasShape = true;
  for (int64_t size : shape)
    info.shape.push_back({size, ""});
  return info;
}

onnx::Tensor zeros(const std::string &name, int64_t size) {
  onnx::Tensor tensor;
  tensor.name = name;
  tensor.type = onnx::ElementType::F32;
  tensor.dims = {size};
  tensor.bytes = std::string(size * 4, '\0');
  tensor.length = tensor.bytes.size();
  return tensor;
}

/// y = op(x, c, c, c, c) over x of 4 samples and 2 channels.
onnx::Model modelOf(const std::string &op, std::vector<std::string> inputs) {
  onnx::Model model;
  model.path = "small.onnx";
  model.irVersion = 10;
  model.opset = 20;
  model.opsets = {{"", 20}};
  model.inputs = {infoOf("x", {4, 2, 3})};
  model.outputs = {infoOf("y", {4, 2, 3})};
  model.initializers = {zeros("c", 2)};
  onnx::Node node;
  node.name = "n";
  node.opType = op;
  node.inputs = std::move(inputs);
  node.outputs = {"y"};
  onnx::Attribute training;
  training.name = "training_mode";
  training.kind = onnx::Attribute::Int;
  training.i = 1;
  node.attributes = {training};
  model.nodes = {node};
  return model;
}

std::string errorOf(const onnx::Model &model, const ImportOptions &options) {
  mlir::MLIRContext context;
  std::string text;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    text += diagnostic.str() + "\n";
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      text += note.str() + "\n";
    return mlir::success();
  });
  EXPECT_FALSE(importModel(model, options, &context));
  return text;
}

TEST(ImportErrors, GroupsOfABatchNorm) {
  ImportOptions options;
  options.batchNormGroups = 3;
  std::string text = errorOf(modelOf("BatchNormalization", {"x", "c", "c", "c", "c"}), options);
  EXPECT_NE(text.find("a batch of 4 does not divide into 3 groups that share statistics"), std::string::npos) << text;
}

TEST(ImportErrors, AValueOfAnotherShape) {
  ImportOptions options;
  options.known.emplace("x", StaticTensor(onnx::ElementType::F32, {4, 2}, {4, 2}));
  std::string text = errorOf(modelOf("Identity", {"x"}), options);
  EXPECT_NE(text.find("the value given for input \"x\" is not 'tensor<4x2x3xf32>'"), std::string::npos) << text;
}

TEST(ImportErrors, EveryLostParameter) {
  onnx::Model model = modelOf("Identity", {"x"});
  model.initializers = {zeros("val_7", 2)}; // the exporter's value computed from them
  for (const char *name : {"a.weight", "b.weight", "c.weight", "d.weight", "e.weight"})
    model.signature.push_back({std::string("p_") + name, "PARAMETER", name});
  ImportOptions options;
  options.train = true;
  std::string few = errorOf(model, options);
  EXPECT_NE(few.find("dropped: a.weight, b.weight, c.weight and 2 more (-v names all)\n"), std::string::npos) << few;
  options.nameAllLost = true;
  std::string all = errorOf(model, options);
  EXPECT_NE(all.find("dropped: a.weight, b.weight, c.weight, d.weight, e.weight\n"), std::string::npos) << all;
}

} // namespace
