// The names that a plan can write, read off the exported models.
#include "par/Import/Names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
  EXPECT_THAT(head->aliases, ElementsAre("model.transformer.wte.weight", "lm_head.weight",
                                         "transformer.wte.weight"));
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

TEST(NamesTest, ListPrintsOneKind) {
  NameTable names = namesOf("examples/tiny-gpt.onnx");
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_TRUE(printNames(names, "inputs", os));
  EXPECT_EQ(text, "inputs\n  input_ids  i64[batch, seq]\noutputs\n  logits  f32[batch, seq, 256]\ndims\n  batch\n  seq\n");
  text.clear();
  EXPECT_TRUE(printNames(names, "params", os));
  EXPECT_THAT(text, testing::StartsWith("parameters (52 trainable of 52)\n  transformer.wpe.weight  f32[128, 128]\n"));
  EXPECT_THAT(text, testing::HasSubstr("  lm_head.weight  f32[256, 128]  also transformer.wte.weight\n"));
  EXPECT_FALSE(printNames(names, "everything", os));
}

} // namespace
