// Damaged graphs: Import reports an error or imports them, and never crashes.
#include "par/Dialect/Par.h"
#include "par/Phases/Import/Import.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

#include <random>

using namespace par;

namespace {

/// One random change somewhere in the graph.
void mutate(onnx::Model &model, std::mt19937 &random) {
  auto pick = [&](auto &list) -> auto & { return list[random() % std::size(list)]; };
  onnx::Node &node = pick(model.nodes), &other = pick(model.nodes);
  const int64_t numbers[] = {0, 1, -1, 2, 3, 7, 1000, INT64_MAX, INT64_MIN, int64_t(1) << 33};
  switch (random() % 9) {
  case 0:
    std::swap(node.opType, other.opType);
    break;
  case 1:
    if (!node.inputs.empty())
      pick(node.inputs) = other.outputs[0];
    break;
  case 2:
    if (!node.inputs.empty())
      node.inputs.pop_back();
    break;
  case 3:
    node.inputs.push_back(pick(model.initializers).name);
    break;
  case 4:
    for (onnx::Attribute &attribute : node.attributes) {
      attribute.i = pick(numbers);
      for (int64_t &value : attribute.ints)
        value = pick(numbers);
    }
    break;
  case 5:
    if (!node.attributes.empty())
      node.attributes.pop_back();
    break;
  case 6:
    if (!model.inputs.empty() && !pick(model.inputs).shape.empty())
      pick(pick(model.inputs).shape).size = 1 + random() % 40;
    break;
  case 7:
    node.outputs.pop_back();
    break;
  default:
    if (!node.inputs.empty() && !other.inputs.empty())
      std::swap(pick(node.inputs), pick(other.inputs));
  }
  if (node.outputs.empty())
    node.outputs.push_back("fresh");
}

/// How many of the mutants were imported all the same.
unsigned importMutants(const std::string &path, unsigned trials, unsigned seed) {
  std::string error;
  std::optional<onnx::Model> original = onnx::readModel(PAR_SOURCE_DIR "/" + path, error);
  EXPECT_TRUE(original) << error;
  std::mt19937 random(seed);
  unsigned accepted = 0;
  for (unsigned trial = 0; trial < trials; ++trial) {
    onnx::Model mutant = *original;
    for (unsigned i = 0, changes = 1 + random() % 3; i < changes; ++i)
      mutate(mutant, random);
    mlir::MLIRContext context;
    unsigned errors = 0;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
      errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
      return mlir::success();
    });
    ImportOptions options;
    options.train = true;
    options.dims = {{"batch", 4}, {"seq", 16}};
    if (path.find("tiny") != std::string::npos) {
      options.loss.emplace();
      options.loss->kind = "cross_entropy";
    }
    mlir::OwningOpRef<mlir::ModuleOp> module = importModel(mutant, options, &context);
    EXPECT_EQ(bool(module), errors == 0) << path << ", trial " << trial;
    accepted += bool(module);
  }
  return accepted;
}

TEST(ImportFuzzTest, DamagedGraphs) {
  EXPECT_GT(importMutants("test/Models/mlp/model.onnx", 300, 1), 5u);
  EXPECT_GT(importMutants("examples/tiny-gpt.onnx", 100, 2), 5u);
  EXPECT_GT(importMutants("test/Models/gpt2/model.onnx", 100, 3), 5u);
}

} // namespace
