// Gradients of every op that has one, against central differences in float64.
#include "OneOp.h"

#include "par/Dialect/Interfaces/Differentiable.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

constexpr unsigned gradientSeed = 20;

/// PAR_GRADIENTS shapes of each kind of case (check-all-gradients.test), or a few.
unsigned countRounds() { return drawsOf("PAR_GRADIENTS", 4); }

/// (loss(p + h) - loss(p - h)) / 2h for each element of a parameter.
Tensor differences(OneOp &op, const std::string &name) {
  constexpr double h = 1e-5;
  Tensor at = op.parameters.at(name), slope(at.getType());
  for (int64_t i = 0; i < at.getSize(); ++i) {
    auto lossAt = [&](double value) {
      Tensor moved = at;
      moved.mutableFloats()[i] = value;
      op.parameters[name] = moved;
      return op.loss();
    };
    slope.mutableFloats()[i] = (lossAt(at.floats()[i] + h) - lossAt(at.floats()[i] - h)) / (2 * h);
  }
  op.parameters[name] = at;
  return slope;
}

class GradientTest : public ::testing::TestWithParam<std::pair<std::string, MakeCase>> {};

TEST_P(GradientTest, IsTheDifferenceQuotient) {
  for (unsigned round = 0; round < countRounds(); ++round) {
    Chooser choose(gradientSeed + round / 4, round % 4);
    OpCase made = GetParam().second(choose);
    SCOPED_TRACE("seed " + std::to_string(gradientSeed) + ", round " + std::to_string(round) + ": " + made.text);
    Session session;
    OneOp op(session, made, choose);
    ASSERT_TRUE(op);
    session.run(*op.module, {+[] { return createDifferentiatePass(); }});
    Outcome outcome = op.evaluate("train");
    EXPECT_EQ(outcome.accumulators.size(), op.parameters.size());
    for (auto &[name, gradient] : outcome.accumulators)
      expectClose(gradient, differences(op, name), 1e-6, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientTest, ::testing::ValuesIn(differentiableCases()),
                         [](const auto &info) { return std::to_string(info.index) + "_" + info.param.first; });

// A new op with a gradient cannot be forgotten above.
TEST(GradientCoverage, IsComplete) {
  Session session;
  llvm::StringSet<> tested;
  for (auto &[name, make] : differentiableCases())
    tested.insert("par." + name);
  for (RegisteredOperationName name : session.context.getRegisteredOperations())
    if (name.hasInterface<DifferentiableOpInterface>())
      EXPECT_TRUE(tested.contains(name.getStringRef())) << name.getStringRef().str() << " is not tested";
}

/// Gradient of @w where `body` makes the loss %l of %w.
std::vector<double> gradientOf(llvm::StringRef type, llvm::StringRef body, std::vector<double> at) {
  Session session;
  auto module = session.parse(llvm::formatv("par.variable @w parameter : {0}\npar.step @eval() -> tensor<f64> {{\n"
                                            "%w = par.read @w : {0}\n{1}\npar.return %l : tensor<f64>\n}",
                                            type, body)
                                  .str());
  session.run(*module, {+[] { return createDifferentiatePass(); }});
  auto tensor = Tensor::ofFloats(session.parseType(type), std::move(at));
  Outcome outcome = evaluate(*module, "train", {{"w", tensor}}, {});
  return outcome.accumulators.at("w").floats().vec();
}

// At points without a derivative the choice is PyTorch's.
TEST(GradientAtKinks, SharesTheLargestElement) {
  EXPECT_EQ(gradientOf("tensor<4xf64>", "%l = par.reduce max %w dims [0] : tensor<4xf64> to tensor<f64>", {3, 1, 3, 2}),
            (std::vector<double>{0.5, 0, 0.5, 0}));
}
TEST(GradientAtKinks, OfReluAtZeroIsZero) {
  EXPECT_EQ(gradientOf("tensor<f64>",
                       "%z = par.constant dense<0.0> : tensor<f64>\n%l = par.maximum %w, %z : tensor<f64>", {0}),
            std::vector<double>{0});
}
TEST(GradientAtKinks, OfAPowerOfZeroIsFinite) {
  EXPECT_EQ(
      gradientOf("tensor<f64>", "%z = par.constant dense<0.0> : tensor<f64>\n%l = par.power %w, %z : tensor<f64>", {0}),
      std::vector<double>{0});
  EXPECT_EQ(
      gradientOf("tensor<f64>", "%z = par.constant dense<0.0> : tensor<f64>\n%l = par.power %z, %w : tensor<f64>", {2}),
      std::vector<double>{0});
}
// The product of the others, also where one is 0.
TEST(GradientAtKinks, OfAProductWithZero) {
  EXPECT_EQ(
      gradientOf("tensor<3xf64>", "%l = par.reduce product %w dims [0] : tensor<3xf64> to tensor<f64>", {2, 0, 5}),
      (std::vector<double>{0, 10, 0}));
}

} // namespace
