// The names that a plan can write, read off the exported models.
#include "par/Phases/Import/Names.h"
#include "par/Report/Names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <array>

using namespace par;
using testing::ElementsAre;

namespace {

NameTable namesOf(const std::string &path) {
  std::string error;
  std::optional<onnx::Model> model = onnx::readModel(PAR_SOURCE_DIR "/" + path, error);
  EXPECT_TRUE(model) << error;
  return collectNames(*model);
}

const NameTable::Parameter *find(const NameTable &names, llvm::StringRef name) {
  for (const NameTable::Parameter &parameter : names.parameters)
    if (parameter.name == name)
      return &parameter;
  return nullptr;
}

TEST(NamesTest, TiedParameterAnswersToAllItsNames) {
  NameTable names = namesOf("test/Models/gpt2/model.onnx");
  EXPECT_EQ(names.model, "model.onnx");
  EXPECT_EQ(names.parameters.size(), 52u);
  const NameTable::Parameter *head = find(names, "model.lm_head.weight");
  ASSERT_TRUE(head);
  EXPECT_THAT(head->aliases, ElementsAre("model.transformer.wte.weight", "lm_head.weight", "transformer.wte.weight"));
  EXPECT_THAT(head->shape, ElementsAre(512, 64));
  EXPECT_TRUE(head->trainable);
  EXPECT_EQ(head->type, "f32");
  const NameTable::Parameter *fc = find(names, "model.transformer.h.3.mlp.c_fc.weight");
  ASSERT_TRUE(fc);
  EXPECT_THAT(fc->aliases, ElementsAre("transformer.h.3.mlp.c_fc.weight"));
  EXPECT_EQ(fc->source, "pytorch_utils.py:119");
}

TEST(NamesTest, ModulesStandBeforeTheirParts) {
  NameTable names = namesOf("test/Models/gpt2/model.onnx");
  auto at = [&](const char *name) { return llvm::find(names.modules, name) - names.modules.begin(); };
  EXPECT_LT(at("model.transformer.h.0"), at("model.transformer.h.0.mlp"));
  EXPECT_LT(at("model.transformer.h.0.mlp"), at("model.transformer.h.1"));
  EXPECT_LT(at("model.lm_head"), int64_t(names.modules.size()));
}

TEST(NamesTest, NodesAreNumberedInFileOrder) {
  NameTable names = namesOf("test/Models/gpt2/model.onnx");
  std::vector<std::string> multiplications;
  for (const NameTable::Node &node : names.nodes)
    if (node.module == "model.transformer.h.0.mlp.act" && node.opType == "Mul")
      multiplications.push_back(node.name);
  EXPECT_THAT(multiplications,
              ElementsAre("model.transformer.h.0.mlp.act/Mul", "model.transformer.h.0.mlp.act/Mul.1",
                          "model.transformer.h.0.mlp.act/Mul.2", "model.transformer.h.0.mlp.act/Mul.3"));
}

TEST(NamesTest, SymbolicDimsAndNoWrapper) {
  NameTable names = namesOf("examples/tiny-gpt.onnx");
  EXPECT_THAT(names.symbols, ElementsAre("batch", "seq"));
  ASSERT_EQ(names.inputs.size(), 1u);
  EXPECT_THAT(names.inputs[0].shape, ElementsAre("batch", "seq"));
  EXPECT_THAT(names.outputs[0].shape, ElementsAre("batch", "seq", "256"));
  const NameTable::Parameter *head = find(names, "lm_head.weight");
  ASSERT_TRUE(head);
  EXPECT_THAT(head->aliases, ElementsAre("transformer.wte.weight"));
}

TEST(NamesTest, LegacyExportHasNoModulesAndAllParameters) {
  NameTable names = namesOf("test/Models/mlp/model.legacy.onnx");
  ASSERT_EQ(names.parameters.size(), 6u);
  for (const NameTable::Parameter &parameter : names.parameters)
    EXPECT_TRUE(parameter.trainable) << parameter.name;
  EXPECT_THAT(names.modules, ElementsAre("fc1", "fc2", "fc3"));
}

TEST(NamesTest, AParameterThatOnlyAChildReads) {
  onnx::Model model;
  for (const char *name : {"net.head.out.bias", "net.head.out.weight", "net.head.norm.inner.bias"}) {
    onnx::Tensor tensor;
    tensor.name = name;
    tensor.type = onnx::ElementType::F32;
    tensor.dims = {4};
    model.initializers.push_back(tensor);
    model.signature.push_back({std::string("p_") + name, "PARAMETER", name});
  }
  model.signature.push_back({"p_net_head_bias", "PARAMETER", "net.head.bias"});
  const NameTable names = collectNames(model);
  EXPECT_THAT(find(names, "net.head.out.bias")->aliases, testing::Contains("net.head.bias"));
  EXPECT_THAT(find(names, "net.head.norm.inner.bias")->aliases, testing::Not(testing::Contains("net.head.bias")));
}

/// A model whose older exporter transposed, with nodes of `OP MODULE INPUT INPUT OUTPUT`.
onnx::Model transposing(std::vector<std::array<std::string, 5>> nodes) {
  onnx::Model model;
  auto add = [&](const char *name, std::vector<int64_t> dims) {
    onnx::Tensor tensor;
    tensor.name = name;
    tensor.type = onnx::ElementType::F32;
    tensor.dims = std::move(dims);
    model.initializers.push_back(tensor);
  };
  add("onnx::MatMul_30", {8, 16});
  add("onnx::MatMul_31", {16, 8});
  add("net.stack.att.in_proj_bias", {16});
  for (auto &[op, module, left, right, result] : nodes) {
    onnx::Node node;
    node.opType = op;
    node.modulePath = module;
    node.inputs = {left, right};
    node.outputs = {result};
    model.nodes.push_back(node);
  }
  return model;
}

TEST(NamesTest, AWeightThatTheExporterTransposed) {
  auto transposed = [](std::vector<std::array<std::string, 5>> nodes) {
    NameTable names = collectNames(transposing(std::move(nodes)));
    EXPECT_TRUE(names.parameters[0].renamed);
    return names.parameters[0].transposed;
  };
  // The bias says the name, also through an Identity and for two calls of one layer.
  EXPECT_THAT(transposed({{"MatMul", "net.stack.att", "x", "onnx::MatMul_30", "y"},
                          {"Add", "net.stack.att", "net.stack.att.in_proj_bias", "y", "z"},
                          {"Identity", "", "onnx::MatMul_30", "", "onnx::MatMul_32"}}),
              ElementsAre("net.stack.att.in_proj_weight", "stack.att.in_proj_weight"));
  // So does a module that is only the matmul.
  EXPECT_THAT(transposed({{"MatMul", "head", "x", "onnx::MatMul_30", "y"}, {"Relu", "act", "y", "", "z"}}),
              ElementsAre("head.weight"));
  // Nothing does where the module does more, or the matrix stands elsewhere, or another one would have the name too.
  EXPECT_THAT(transposed({{"MatMul", "head", "x", "onnx::MatMul_30", "y"}, {"Relu", "head", "y", "", "z"}}),
              ElementsAre());
  EXPECT_THAT(transposed({{"MatMul", "head", "onnx::MatMul_30", "x", "y"}}), ElementsAre());
  EXPECT_THAT(transposed({{"MatMul", "head", "x", "onnx::MatMul_30", "y"}, {"Mul", "", "z", "onnx::MatMul_30", "v"}}),
              ElementsAre());
  EXPECT_THAT(transposed({{"MatMul", "a", "x", "onnx::MatMul_30", "y"},
                          {"Add", "a", "net.stack.att.in_proj_bias", "y", "z"},
                          {"MatMul", "b", "z", "onnx::MatMul_31", "v"},
                          {"Add", "b", "net.stack.att.in_proj_bias", "v", "w"}}),
              ElementsAre());
}

TEST(NamesTest, ListSaysWhatIsTransposed) {
  NameTable names = collectNames(transposing(
      {{"MatMul", "head", "x", "onnx::MatMul_30", "y"}, {"Mul", "head.gate", "y", "onnx::MatMul_31", "z"}}));
  std::string text = *listNames(names, "params");
  EXPECT_THAT(text, testing::HasSubstr("  onnx::MatMul_30  f32[8, 16]  transposed: head.weight\n"));
  EXPECT_THAT(text,
              testing::HasSubstr("  onnx::MatMul_31  f32[16, 8]  also head.gate.weight  (computed by the exporter: "
                                 "files hold it under this name)\n"));
}

TEST(NamesTest, ListPrintsOneKind) {
  NameTable names = namesOf("examples/tiny-gpt.onnx");
  EXPECT_EQ(listNames(names, "inputs"),
            "inputs\n  input_ids  i64[batch, seq]\noutputs\n  logits  f32[batch, seq, 256]\ndims\n  batch\n  seq\n");
  std::string text = *listNames(names, "params");
  EXPECT_THAT(text, testing::StartsWith("parameters (52 trainable of 52)\n  transformer.wpe.weight  f32[128, 128]\n"));
  EXPECT_THAT(text, testing::HasSubstr("  lm_head.weight  f32[256, 128]  also transformer.wte.weight\n"));
  EXPECT_EQ(listNames(names, "everything"), std::nullopt);
}

} // namespace
