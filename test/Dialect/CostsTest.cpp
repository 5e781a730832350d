#include "par/Dialect/Interfaces/Cost.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace par;

namespace {

struct Costs : testing::Test {
  Costs() {
    DialectRegistry registry;
    registerDialect(registry);
    context.appendDialectRegistry(registry);
  }

  /// The cost of the only op of a step that takes these arguments.
  OpCost costOf(StringRef arguments, StringRef op) {
    std::string text = ("par.step @eval(" + arguments + ") {\n" + op + "\npar.return\n}").str();
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    StepOp step = *module->getOps<StepOp>().begin();
    return getCost(&step.getBlock().front());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

// 2 B M N K operations; both operands read, the result written.
TEST_F(Costs, Product) {
  OpCost cost = costOf("%a: tensor<6x4x8xf32>, %b: tensor<6x8x5xf32>",
                       "%0 = par.dot %a, %b contracting [2] x [1] batching [0] x [0] : (tensor<6x4x8xf32>, "
                       "tensor<6x8x5xf32>) -> tensor<6x4x5xf32>");
  EXPECT_EQ(cost.flops, 2 * 6 * 4 * 5 * 8);
  EXPECT_EQ(cost.bytes, 4 * (6 * 4 * 8 + 6 * 8 * 5 + 6 * 4 * 5));
  EXPECT_FALSE(cost.fusable);
}

// Two matmuls over the scores, which are not in memory.
TEST_F(Costs, Attention) {
  OpCost cost = costOf("%q: tensor<2x4x8x16xbf16>",
                       "%0, %l = par.attention %q, %q, %q scale 1.0 : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, "
                       "tensor<2x4x8x16xbf16>) -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)");
  EXPECT_EQ(cost.flops, 2 * 4 * 8 * 8 * (2 * (16 + 16) + 16));
  EXPECT_EQ(cost.bytes, 2 * 4 * 8 * (4 * 2 * 16 + 4));
}

TEST_F(Costs, ElementwiseFuses) {
  OpCost cost = costOf("%a: tensor<3x5xf32>", "%0 = par.add %a, %a : tensor<3x5xf32>");
  EXPECT_EQ(cost.flops, 15);
  EXPECT_TRUE(cost.fusable);
  EXPECT_GT(costOf("%a: tensor<3x5xf32>", "%0 = par.tanh %a : tensor<3x5xf32>").flops, 15);
}

TEST_F(Costs, ReductionReadsItsOperand) {
  OpCost cost = costOf("%a: tensor<3x5xf64>", "%0 = par.reduce sum %a dims [1] : tensor<3x5xf64> to tensor<3xf64>");
  EXPECT_EQ(cost.flops, 15);
  EXPECT_EQ(cost.bytes, 8 * 18);
  EXPECT_FALSE(cost.fusable);
}

// Few elements are held each against each, many are sorted: twice as many cost little more than twice as much.
TEST_F(Costs, SortingGrowsHardlyFasterThanItsElements) {
  auto flopsOf = [&](int64_t size) {
    std::string type = "tensor<2x" + std::to_string(size) + "xf32>", to = "tensor<2x" + std::to_string(size) + "xi64>";
    return costOf("%a: " + type, "%0 = par.sorted_position %a dim 1 : " + type + " to " + to).flops;
  };
  EXPECT_EQ(flopsOf(16), 4 * flopsOf(8));
  EXPECT_LT(flopsOf(1 << 17), 2.2 * double(flopsOf(1 << 16)));
}

// Booleans take a byte.
TEST_F(Costs, Booleans) { EXPECT_EQ(costOf("%a: tensor<7xf32>", "%0 = par.is_nan %a : tensor<7xf32>").bytes, 7 * 5); }
