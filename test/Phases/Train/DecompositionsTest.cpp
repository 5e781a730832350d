// Decompositions compute the same as their composites, before Train and after it.
#include "OneOp.h"

#include "par/Dialect/Interfaces/Decomposable.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

constexpr unsigned rounds = 4, seed = 30;

bool isComposite(Session &session, const std::string &op) {
  auto name = RegisteredOperationName::lookup("par." + op, &session.context);
  return name && name->hasInterface<DecomposableOpInterface>();
}

std::vector<std::pair<std::string, MakeCase>> differentiableComposites() {
  std::vector<std::pair<std::string, MakeCase>> cases;
  Session session;
  for (auto &one : differentiableCases())
    if (isComposite(session, one.first))
      cases.push_back(one);
  return cases;
}

std::vector<std::pair<std::string, MakeCase>> allComposites() {
  std::vector<std::pair<std::string, MakeCase>> cases = compositeCases();
  llvm::append_range(cases, differentiableComposites());
  return cases;
}

bool hasComposites(ModuleOp module) {
  return module.walk([](DecomposableOpInterface) { return WalkResult::interrupt(); }).wasInterrupted();
}

class DecompositionTest : public ::testing::TestWithParam<std::pair<std::string, MakeCase>> {};

TEST_P(DecompositionTest, EqualsTheComposite) {
  for (unsigned round = 0; round < rounds; ++round) {
    Chooser choose(seed, round);
    OpCase made = GetParam().second(choose);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round) + ": " + made.text);
    Session session;
    OneOp op(session, made, choose);
    ASSERT_TRUE(op);
    Outcome whole = op.evaluate("eval");
    session.run(*op.module, {+[] { return createDecomposeOpsPass(); }});
    EXPECT_FALSE(hasComposites(*op.module));
    expectClose(op.evaluate("eval").outputs.at("y"), whole.outputs.at("y"), 1e-12, "result");
  }
}

/// Gradients after the passes, on the same numbers each time.
Named gradientsBy(Session &session, const MakeCase &make, unsigned round,
                  llvm::ArrayRef<std::unique_ptr<Pass> (*)()> passes) {
  Chooser choose(seed, round);
  OpCase made = make(choose);
  OneOp op(session, made, choose);
  session.run(*op.module, passes);
  return op.evaluate("train").accumulators;
}

class DecomposedGradientTest : public DecompositionTest {};

TEST_P(DecomposedGradientTest, HasTheSameGradientsBeforeAndAfterTrain) {
  Session session;
  for (unsigned round = 0; round < rounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    auto differentiate = +[] { return createDifferentiatePass(); };
    auto decompose = +[] { return createDecomposeOpsPass(); };
    auto whole = gradientsBy(session, GetParam().second, round, {differentiate});
    auto before = gradientsBy(session, GetParam().second, round, {decompose, differentiate});
    auto after = gradientsBy(session, GetParam().second, round, {differentiate, decompose});
    ASSERT_EQ(before.size(), whole.size());
    for (auto &[parameter, gradient] : whole) {
      expectClose(before.at(parameter), gradient, 1e-9, parameter + " decomposed before Train");
      expectClose(after.at(parameter), gradient, 1e-9, parameter + " decomposed after Train");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Composites, DecompositionTest, ::testing::ValuesIn(allComposites()),
                         [](const auto &info) { return std::to_string(info.index) + "_" + info.param.first; });

INSTANTIATE_TEST_SUITE_P(Composites, DecomposedGradientTest, ::testing::ValuesIn(differentiableComposites()),
                         [](const auto &info) { return std::to_string(info.index) + "_" + info.param.first; });

// lse in f32 of scores of -1e9 does not say how many they are: the probabilities are equal shares all the same.
TEST(AttentionGradDecomposition, SharesCotangentsAmongKeysThatAMaskHidesAll) {
  Session session;
  auto module = session.parse(R"(
    par.step @eval(%ct: tensor<1x1x1x2xf32>, %q: tensor<1x1x1x2xf32>, %k: tensor<1x1x4x2xf32>, %o: tensor<1x1x1x2xf32>,
                   %lse: tensor<1x1x1xf32>, %m: tensor<1x1x1x4xf32>) -> tensor<1x1x4x2xf32>
        attributes {inputs = ["ct", "q", "k", "o", "lse", "m"], outputs = ["y"]} {
      %dq, %dk, %dv = par.attention_grad %ct, %q, %k, %k, %o, %lse mask %m scale 0.5
          : (tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x1x2xf32>,
          tensor<1x1x1xf32>, tensor<1x1x1x4xf32>)
            -> (tensor<1x1x1x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>)
      par.return %dv : tensor<1x1x4x2xf32>
    })");
  auto tensor = [&](StringRef type, std::vector<double> values) {
    return Tensor::ofFloats(session.parseType(type), values);
  };
  Named inputs{{"ct", tensor("tensor<1x1x1x2xf32>", {4, 8})},
               {"q", tensor("tensor<1x1x1x2xf32>", {0, 0})},
               {"k", tensor("tensor<1x1x4x2xf32>", {1, 2, 3, 4, 5, 6, 7, 8})},
               {"o", tensor("tensor<1x1x1x2xf32>", {4, 5})},
               {"lse", tensor("tensor<1x1x1xf32>", {-1e9})},
               {"m", tensor("tensor<1x1x1x4xf32>", {-1e9, -1e9, -1e9, -1e9})}};
  Tensor shares = tensor("tensor<1x1x4x2xf32>", {1, 2, 1, 2, 1, 2, 1, 2});
  expectClose(evaluate(*module, "eval", {}, inputs).outputs.at("y"), shares, 1e-12, "whole");
  session.run(*module, {+[] { return createDecomposeOpsPass(); }});
  EXPECT_FALSE(hasComposites(*module));
  expectClose(evaluate(*module, "eval", {}, inputs).outputs.at("y"), shares, 1e-12, "decomposed");
}

// A new composite cannot be forgotten above.
TEST(DecompositionCoverage, IsComplete) {
  Session session;
  llvm::StringSet<> tested;
  for (auto &[name, make] : allComposites())
    tested.insert("par." + name);
  for (RegisteredOperationName name : session.context.getRegisteredOperations())
    if (name.hasInterface<DecomposableOpInterface>())
      EXPECT_TRUE(tested.contains(name.getStringRef())) << name.getStringRef().str() << " is not tested";
}

} // namespace
