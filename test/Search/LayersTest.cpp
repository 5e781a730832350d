// Equal layers are found, and a model keeps what it needs with fewer of them.
#include "par/Search/Layers.h"

#include "gtest/gtest.h"

using namespace par;

namespace {

onnx::Node nodeOf(std::string type, std::string module, std::vector<std::string> inputs, std::string output) {
  onnx::Node node;
  node.opType = std::move(type);
  node.modulePath = std::move(module);
  node.inputs = std::move(inputs);
  node.outputs = {std::move(output)};
  return node;
}

/// x -> h.0 ... h.N-1 (a matmul and a residual each) -> y
onnx::Model chain(int64_t layers) {
  onnx::Model model;
  std::string last = "x";
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::string name = "h." + std::to_string(layer);
    onnx::Tensor weight;
    weight.name = name + ".weight";
    weight.type = onnx::ElementType::F32;
    weight.dims = {8, 8};
    model.initializers.push_back(weight);
    model.signature.push_back({"p_" + weight.name, "PARAMETER", weight.name});
    model.nodes.push_back(nodeOf("MatMul", name, {last, weight.name}, name + ".a"));
    model.nodes.push_back(nodeOf("Add", name, {name + ".a", last}, name + ".b"));
    last = name + ".b";
  }
  model.nodes.push_back(nodeOf("ReduceMean", "", {last}, "y"));
  onnx::ValueInfo out;
  out.name = "y";
  model.outputs.push_back(out);
  return model;
}

} // namespace

TEST(Layers, KeepsTheFirstOnesAndTheirReaders) {
  onnx::Model model = chain(6);
  std::optional<LayerStack> stack = LayerStack::find(model);
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->module(), "h");
  EXPECT_EQ(stack->size(), 5); // h.0 reads x, not a layer
  EXPECT_EQ(stack->all(), 6);
  onnx::Model thin = stack->keep(model, 2);
  ASSERT_EQ(thin.nodes.size(), 7u);
  EXPECT_EQ(thin.nodes.back().inputs, std::vector<std::string>{"h.2.b"});
  ASSERT_EQ(thin.initializers.size(), 3u);
  EXPECT_EQ(thin.initializers.back().name, "h.2.weight");
  EXPECT_EQ(thin.signature.size(), 3u);
}

TEST(Layers, OtherShapesAreNotEqual) {
  onnx::Model model = chain(6);
  model.initializers[3].dims = {8, 8, 1};
  std::optional<LayerStack> stack = LayerStack::find(model);
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->size(), 2); // h.1 and h.2
}

TEST(Layers, NoneWhereAnInnerLayerIsReadOutside) {
  onnx::Model model = chain(6);
  model.nodes.push_back(nodeOf("ReduceMax", "", {"h.2.b"}, "z"));
  EXPECT_FALSE(LayerStack::find(model));
  EXPECT_FALSE(LayerStack::find(chain(2)));
}
