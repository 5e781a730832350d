// The sharding rule of each op as text, which parses again, and errors of a wrong text.
#include "par/Dialect/Interfaces/ShardingRule.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace par;

namespace {

struct ShardingRules : testing::Test {
  ShardingRules() {
    DialectRegistry registry;
    registerDialect(registry);
    context.appendDialectRegistry(registry);
  }

  /// The rule of the last op of a step that takes these arguments; it is checked to read back.
  std::string ruleOf(StringRef arguments, StringRef ops) {
    std::string text = ("par.step @eval(" + arguments + ") {\n" + ops + "\npar.return\n}").str();
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return "no module: " + text;
    StepOp step = *module->getOps<StepOp>().begin();
    auto op = dyn_cast<ShardingRuleOpInterface>(step.getBlock().getTerminator()->getPrevNode());
    if (!op)
      return "no rule";
    ShardingRule rule = op.getShardingRule();
    std::string error;
    FailureOr<ShardingRule> read = ShardingRule::parse(rule.str(), error);
    EXPECT_TRUE(succeeded(read)) << rule.str() << ": " << error;
    EXPECT_TRUE(succeeded(read) && *read == rule) << rule.str();
    return rule.str();
  }
  std::string errorOf(StringRef text) {
    std::string error;
    EXPECT_TRUE(failed(ShardingRule::parse(text, error))) << text.str();
    return error;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

// Size-1 dims have no factor; `linear` says which operands may be sums that are still apart.
TEST_F(ShardingRules, Elementwise) {
  EXPECT_EQ(ruleOf("%x: tensor<4x1x6xf32>", "%0 = par.tanh %x : tensor<4x1x6xf32>"),
            "([a, (), b]) -> ([a, (), b]) {a=4, b=6} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.negate %x : tensor<4x6xf32>"),
            "([a, b]) -> ([a, b]) {a=4, b=6} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.add %x, %x : tensor<4x6xf32>"),
            "([a, b], [a, b]) -> ([a, b]) {a=4, b=6} linear=[[0, 1]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.subtract %x, %x : tensor<4x6xf32>"),
            "([a, b], [a, b]) -> ([a, b]) {a=4, b=6} linear=[[0, 1]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.multiply %x, %x : tensor<4x6xf32>"),
            "([a, b], [a, b]) -> ([a, b]) {a=4, b=6} linear=[[0], [1]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.divide %x, %x : tensor<4x6xf32>"),
            "([a, b], [a, b]) -> ([a, b]) {a=4, b=6} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.maximum %x, %x : tensor<4x6xf32>"),
            "([a, b], [a, b]) -> ([a, b]) {a=4, b=6} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.compare lt %x, %x : tensor<4x6xf32>"),
            "([a, b], [a, b]) -> ([a, b]) {a=4, b=6} linear=[]");
  EXPECT_EQ(
      ruleOf("%c: tensor<4x6xi1>, %x: tensor<4x6xf32>", "%0 = par.select %c, %x, %x : tensor<4x6xi1>, tensor<4x6xf32>"),
      "([a, b], [a, b], [a, b]) -> ([a, b]) {a=4, b=6} linear=[[1, 2]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xi64>", "%0 = par.convert %x : tensor<4x6xi64> to tensor<4x6xf32>"),
            "([a, b]) -> ([a, b]) {a=4, b=6} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.convert %x : tensor<4x6xf32> to tensor<4x6xi64>"),
            "([a, b]) -> ([a, b]) {a=4, b=6} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.gelu_grad %x, %x : tensor<4x6xf32>"),
            "([a, b], [a, b]) -> ([a, b]) {a=4, b=6} linear=[[0]]");
}

// A dim that the op slices, or that does not line up, is not sharded.
TEST_F(ShardingRules, Shape) {
  EXPECT_EQ(ruleOf("", "%0 = par.constant dense<1.0> : tensor<4x6xf32>"), "() -> ([a, b]) {a=4, b=6} linear=[]");
  EXPECT_EQ(ruleOf("", "%0 = par.constant dense<[1, 2]> : tensor<2xi64>"),
            "() -> ([a]) {a=2} need_replication={a} linear=[]");
  EXPECT_EQ(ruleOf("", "%0 = par.iota dim 1 : tensor<4x6xi64>"), "() -> ([a, b]) {a=4, b=6} indexed={b} linear=[]");
  EXPECT_EQ(
      ruleOf("%x: tensor<6x1xf32>", "%0 = par.broadcast_in_dim %x dims [1, 2] : tensor<6x1xf32> to tensor<4x6x5xf32>"),
      "([b, ()]) -> ([a, b, c]) {a=4, b=6, c=5} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.reshape %x : tensor<4x6xf32> to tensor<4x3x2xf32>"),
            "([a, (b c)]) -> ([a, b, c]) {a=4, b=3, c=2} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.reshape %x : tensor<4x6xf32> to tensor<24xf32>"),
            "([a, b]) -> ([(a b)]) {a=4, b=6} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.reshape %x : tensor<4x6xf32> to tensor<3x8xf32>"),
            "([a, d]) -> ([b, c]) {a=4, b=3, c=8, d=6} need_replication={a, b, c, d} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x0xf32>", "%0 = par.reshape %x : tensor<4x0xf32> to tensor<0x1x6xf32>"),
            "([a, b]) -> ([c, (), d]) {a=4, b=0, c=0, d=6} need_replication={a, b, c, d} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.transpose %x [1, 0] : tensor<4x6xf32> to tensor<6x4xf32>"),
            "([a, b]) -> ([b, a]) {a=4, b=6} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>",
                   "%0 = par.slice %x [0, 2] to [4, 6] by [1, 1] : tensor<4x6xf32> to tensor<4x4xf32>"),
            "([a, c]) -> ([a, b]) {a=4, b=4, c=6} need_replication={b, c} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>, %i: tensor<i64>",
                   "%0 = par.dynamic_slice %x at %i dim 0 size 2 : tensor<4x6xf32>, tensor<i64> to tensor<2x6xf32>"),
            "([b, c], []) -> ([a, c]) {a=2, b=4, c=6} need_replication={a, b} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>, %u: tensor<2x6xf32>, %i: tensor<i64>",
                   "%0 = par.update_slice %x, %u at %i dim 0 : tensor<4x6xf32>, tensor<2x6xf32>, tensor<i64>"),
            "([b, c], [d, c], []) -> ([a, c]) {a=4, b=4, c=6, d=2} need_replication={a, b, d} linear=[[0, 1]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>",
                   "%0 = par.pad %x low [0, 1] high [0, 0] value 0.0 : f32 : tensor<4x6xf32> to tensor<4x7xf32>"),
            "([a, c]) -> ([a, b]) {a=4, b=7, c=6} need_replication={b, c} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>",
                   "%0 = par.pad %x low [0, 1] high [0, 0] value 1.0 : f32 : tensor<4x6xf32> to tensor<4x7xf32>"),
            "([a, c]) -> ([a, b]) {a=4, b=7, c=6} need_replication={b, c} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>, %y: tensor<4x2xf32>",
                   "%0 = par.concat %x, %y dim 1 : (tensor<4x6xf32>, tensor<4x2xf32>) -> tensor<4x8xf32>"),
            "([a, c], [a, d]) -> ([a, b]) {a=4, b=8, c=6, d=2} need_replication={b, c, d} linear=[[0, 1]]");
}

TEST_F(ShardingRules, Reductions) {
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.reduce sum %x dims [1] : tensor<4x6xf32> to tensor<4xf32>"),
            "([a, b]) -> ([a]) {a=4, b=6} sum={b} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.reduce max %x dims [0, 1] : tensor<4x6xf32> to tensor<f32>"),
            "([a, b]) -> ([]) {a=4, b=6} max={a, b} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.reduce product %x dims [1] : tensor<4x6xf32> to tensor<4xf32>"),
            "([a, b]) -> ([a]) {a=4, b=6} need_replication={b} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.arg_reduce max %x dim 1 : tensor<4x6xf32> to tensor<4xi64>"),
            "([a, b]) -> ([a]) {a=4, b=6} need_replication={b} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.cumulative sum %x dim 1 : tensor<4x6xf32>"),
            "([a, b]) -> ([a, b]) {a=4, b=6} need_replication={b} linear=[[0]]");
}

TEST_F(ShardingRules, Products) {
  EXPECT_EQ(ruleOf("%x: tensor<2x4x6xf32>, %w: tensor<2x6x5xf32>",
                   "%0 = par.dot %x, %w contracting [2] x [1] batching [0] x [0] : (tensor<2x4x6xf32>, "
                   "tensor<2x6x5xf32>) -> tensor<2x4x5xf32>"),
            "([a, b, c], [a, c, d]) -> ([a, b, d]) {a=2, b=4, c=6, d=5} sum={c} linear=[[0], [1]]");
}

// Batch and channels may be cut, the dims that windows slide over may not; of several groups only whole ones.
TEST_F(ShardingRules, Windows) {
  EXPECT_EQ(ruleOf("%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>",
                   "%0 = par.convolution %x, %w strides [1, 1] low [1, 1] high [1, 1] dilations [1, 1] : "
                   "(tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x8x8xf32>"),
            "([a, c, d, e], [b, c, f, g]) -> ([a, b, h, i]) {a=2, b=6, c=4, d=8, e=8, f=3, g=3, h=8, i=8} "
            "sum={c} need_replication={d, e, f, g, h, i} linear=[[0], [1]]");
  EXPECT_EQ(ruleOf("%x: tensor<2x4x8xf32>, %w: tensor<6x2x3xf32>",
                   "%0 = par.convolution %x, %w strides [1] low [1] high [1] dilations [1] groups 2 : "
                   "(tensor<2x4x8xf32>, tensor<6x2x3xf32>) -> tensor<2x6x8xf32>"),
            "([a, (b d), e], [(b c), d, f]) -> ([a, (b c), g]) {a=2, b=2, c=3, d=2, e=8, f=3, g=8} "
            "need_replication={c, d, e, f, g} linear=[[0], [1]]");
  EXPECT_EQ(ruleOf("%ct: tensor<2x6x8xf32>, %w: tensor<6x4x3xf32>",
                   "%0 = par.convolution_input_grad %ct, %w strides [1] low [1] high [1] dilations [1] : "
                   "(tensor<2x6x8xf32>, tensor<6x4x3xf32>) -> tensor<2x4x8xf32>"),
            "([a, b, f], [b, c, e]) -> ([a, c, d]) {a=2, b=6, c=4, d=8, e=3, f=8} "
            "sum={b} need_replication={d, e, f} linear=[[0], [1]]");
  EXPECT_EQ(ruleOf("%x: tensor<2x4x8xf32>, %ct: tensor<2x6x8xf32>",
                   "%0 = par.convolution_filter_grad %x, %ct strides [1] low [1] high [1] dilations [1] : "
                   "(tensor<2x4x8xf32>, tensor<2x6x8xf32>) -> tensor<6x4x3xf32>"),
            "([a, c, d], [a, b, f]) -> ([b, c, e]) {a=2, b=6, c=4, d=8, e=3, f=8} "
            "sum={a} need_replication={d, e, f} linear=[[0], [1]]");
  EXPECT_EQ(ruleOf("%x: tensor<2x4x8xf32>", "%0 = par.patches %x window [2] strides [2] low [0] high [0] dilations "
                                            "[1] value 0.0 : f32 : tensor<2x4x8xf32> to tensor<2x4x4x2xf32>"),
            "([a, b, c]) -> ([a, b, d, e]) {a=2, b=4, c=8, d=4, e=2} need_replication={c, d, e} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<2x4x8xf32>", "%0 = par.max_pool %x window [2] strides [2] low [0] high [0] dilations "
                                            "[1] : tensor<2x4x8xf32> to tensor<2x4x4xf32>"),
            "([a, b, c]) -> ([a, b, d]) {a=2, b=4, c=8, d=4} need_replication={c, d} linear=[]");
}

// A table cut by rows is looked up with shifted and masked ids; a scatter sums.
TEST_F(ShardingRules, Index) {
  EXPECT_EQ(ruleOf("%t: tensor<9x6xf32>, %i: tensor<4xi64>",
                   "%0 = par.gather %t, %i dim 0 : tensor<9x6xf32>, tensor<4xi64> to tensor<4x6xf32>"),
            "([a, b], [c]) -> ([c, b]) {a=9, b=6, c=4} indexed={a} linear=[[0]]");
  EXPECT_EQ(ruleOf("%u: tensor<4x6xf32>, %i: tensor<4xi64>",
                   "%0 = par.index_add %u, %i dim 0 size 9 : tensor<4x6xf32>, tensor<4xi64> to tensor<9x6xf32>"),
            "([c, b], [c]) -> ([a, b]) {a=9, b=6, c=4} sum={c} indexed={a} linear=[[0]]");
  EXPECT_EQ(ruleOf("%t: tensor<9x6xf32>, %i: tensor<9x2xi64>",
                   "%0 = par.take %t, %i dim 1 : tensor<9x6xf32>, tensor<9x2xi64> to tensor<9x2xf32>"),
            "([a, b], [a, c]) -> ([a, c]) {a=9, b=6, c=2} indexed={b} linear=[[0]]");
  EXPECT_EQ(ruleOf("%u: tensor<9x2xf32>, %i: tensor<9x2xi64>",
                   "%0 = par.scatter_add %u, %i dim 1 size 6 : tensor<9x2xf32>, tensor<9x2xi64> to tensor<9x6xf32>"),
            "([a, c], [a, c]) -> ([a, b]) {a=9, b=6, c=2} sum={c} indexed={b} linear=[[0]]");
}

// The dim that is normalised over may be cut once the composite is decomposed.
TEST_F(ShardingRules, Composites) {
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.softmax %x dim 1 : tensor<4x6xf32>"),
            "([a, b]) -> ([a, b]) {a=4, b=6} decompose={b} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>", "%0 = par.softmax_grad %x, %x dim 1 : tensor<4x6xf32>"),
            "([a, b], [a, b]) -> ([a, b]) {a=4, b=6} decompose={b} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>, %w: tensor<6xf32>",
                   "%0, %m, %r = par.layer_norm %x, %w, %w epsilon 1.0e-5 : (tensor<4x6xf32>, tensor<6xf32>, "
                   "tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>)"),
            "([a, b], [b], [b]) -> ([a, b], [a], [a]) {a=4, b=6} decompose={b} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>, %w: tensor<6xf32>, %m: tensor<4xf32>",
                   "%0 = par.layer_norm_grad %x, %x, %w, %m, %m : (tensor<4x6xf32>, tensor<4x6xf32>, "
                   "tensor<6xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x6xf32>"),
            "([a, b], [a, b], [b], [a], [a]) -> ([a, b]) {a=4, b=6} decompose={b} linear=[[0], [2]]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>, %y: tensor<4xi64>",
                   "%0, %l = par.cross_entropy %x, %y ignore -100 : (tensor<4x6xf32>, tensor<4xi64>) -> "
                   "(tensor<4xf32>, tensor<4xf32>)"),
            "([a, b], [a]) -> ([a], [a]) {a=4, b=6} decompose={b} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<4x6xf32>, %y: tensor<4xi64>, %l: tensor<4xf32>",
                   "%0 = par.cross_entropy_grad %l, %x, %y, %l ignore -100 : (tensor<4xf32>, "
                   "tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<4x6xf32>"),
            "([a], [a, b], [a], [a]) -> ([a, b]) {a=4, b=6} decompose={b} linear=[[0]]");
}

// Key-value heads are a factor of the queries' heads; keys are whole; queries, and heads that share keys, are taken
// apart first.
TEST_F(ShardingRules, Attention) {
  std::string types = "(tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x10xf32>";
  std::string operands = "%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<2x2x6x10xf32>";
  std::string results = ") -> (tensor<2x4x8x10xf32>, tensor<2x4x8xf32>)";
  EXPECT_EQ(ruleOf(operands, "%0, %l = par.attention %q, %k, %v scale 0.25 : " + types + results),
            "([a, (b c), d, f], [a, b, e, f], [a, b, e, g]) -> ([a, (b c), d, g], [a, (b c), d]) "
            "{a=2, b=2, c=2, d=8, e=6, f=16, g=10} need_replication={e, f, g} decompose={c, d} linear=[]");
  EXPECT_EQ(ruleOf(operands + ", %m: tensor<2x1x8x6xf32>",
                   "%0, %l = par.attention %q, %k, %v mask %m scale 0.25 {causal = true} : " + types +
                       ", tensor<2x1x8x6xf32>" + results),
            "([a, (b c), d, f], [a, b, e, f], [a, b, e, g], [a, (), d, e]) -> ([a, (b c), d, g], [a, (b c), d]) "
            "{a=2, b=2, c=2, d=8, e=6, f=16, g=10} need_replication={e, f, g} decompose={c, d} linear=[]");
  EXPECT_EQ(
      ruleOf(operands + ", %c: tensor<2x4x8x10xf32>, %l: tensor<2x4x8xf32>",
             "%0, %1, %2 = par.attention_grad %c, %q, %k, %v, %c, %l scale 0.25 : (tensor<2x4x8x10xf32>, "
             "tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x10xf32>, tensor<2x4x8x10xf32>, "
             "tensor<2x4x8xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x10xf32>)"),
      "([a, (b c), d, g], [a, (b c), d, f], [a, b, e, f], [a, b, e, g], [a, (b c), d, g], [a, (b c), d]) -> "
      "([a, (b c), d, f], [a, b, e, f], [a, b, e, g]) {a=2, b=2, c=2, d=8, e=6, f=16, g=10} need_replication={e, f, g} "
      "decompose={c, d} linear=[[0]]");
}

TEST_F(ShardingRules, Updates) {
  EXPECT_EQ(ruleOf("%w: tensor<6xf32>, %s: tensor<f32>",
                   "%0 = par.sgd %w, %w, %s decay 0.1 : tensor<6xf32>, tensor<6xf32>, tensor<f32>"),
            "([a], [a], []) -> ([a]) {a=6} linear=[]");
  EXPECT_EQ(ruleOf("%w: tensor<6xf32>, %s: tensor<f32>",
                   "%0, %v = par.momentum %w, %w, %w, %s, %s momentum 0.9 decay 0.0 : tensor<6xf32>, "
                   "tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>"),
            "([a], [a], [a], [], []) -> ([a], [a]) {a=6} linear=[]");
  EXPECT_EQ(ruleOf("%w: tensor<6xf32>, %s: tensor<f32>",
                   "%0, %m, %v = par.adamw %w, %w, %w, %w, %s, %s betas 0.9, 0.999 epsilon 1.0e-8 decay 0.01 "
                   ": tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>"),
            "([a], [a], [a], [a], [], []) -> ([a], [a], [a]) {a=6} linear=[]");
  EXPECT_EQ(ruleOf("%w: tensor<6x4xf32>, %s: tensor<f32>",
                   "%0, %b = par.muon %w, %w, %w, %s momentum 0.9 decay 0.0 : tensor<6x4xf32>, tensor<6x4xf32>, "
                   "tensor<6x4xf32>, tensor<f32>"),
            "([a, b], [a, b], [a, b], []) -> ([a, b], [a, b]) {a=6, b=4} need_replication={a, b} linear=[]");
}

// Rows are whole everywhere, and each shard of the weight updates its own.
TEST_F(ShardingRules, UpdatesOfRows) {
  EXPECT_EQ(
      ruleOf(
          "%w: tensor<9x4xf32>, %g: tensor<6x4xf32>, %s: tensor<f32>, %r: tensor<6xi64>",
          "%0 = par.sgd %w, %g, %s decay 0.1 : tensor<9x4xf32>, tensor<6x4xf32>, tensor<f32> rows %r : tensor<6xi64>"),
      "([a, b], [c, b], [], [c]) -> ([a, b]) {a=9, b=4, c=6} indexed={a} need_replication={c} linear=[]");
  EXPECT_EQ(
      ruleOf("%w: tensor<1x4xf32>, %g: tensor<6x4xf32>, %s: tensor<f32>, %r: tensor<6xi64>",
             "%0, %m, %v = par.adamw %w, %g, %w, %w, %s, %s betas 0.9, 0.999 epsilon 1.0e-8 decay 0.01 "
             ": tensor<1x4xf32>, tensor<6x4xf32>, tensor<1x4xf32>, tensor<f32>, tensor<f32> rows %r : tensor<6xi64>"),
      "([c, a], [b, a], [c, a], [c, a], [], [], [b]) -> ([c, a], [c, a], [c, a]) {a=4, b=6, c=1} indexed={c} "
      "need_replication={b} linear=[]");
}

TEST_F(ShardingRules, Markers) {
  EXPECT_EQ(ruleOf("%x: tensor<6xf32>", "%0 = par.constrain %x <[{\"dp\", ?}]> : tensor<6xf32>"),
            "([a]) -> ([a]) {a=6} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<6xf32>", "%0 = par.cotangent %x, %x : tensor<6xf32>"),
            "([a], [a]) -> ([a]) {a=6} linear=[]");
  EXPECT_EQ(ruleOf("%x: tensor<6xf32>", "%0 = par.gradient %x of @w : tensor<6xf32>"),
            "([a]) -> ([a]) {a=6} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<6x4xf32>, %r: tensor<6xi64>",
                   "%0 = par.gradient %x rows %r of @w : tensor<6x4xf32>, tensor<6xi64>"),
            "([a, b], [a]) -> ([a, b]) {a=6, b=4} linear=[[0]]");
  EXPECT_EQ(ruleOf("%x: tensor<6x4xf32>", "%0 = par.collect %x dims 1 : tensor<6x4xf32>"),
            "([a, b]) -> ([a, b]) {a=6, b=4} need_replication={a} linear=[]");
}

TEST_F(ShardingRules, Errors) {
  EXPECT_EQ(errorOf("([a) -> ([a])"), "expected , at \") -> ([a])\"");
  EXPECT_EQ(errorOf("(["), "expected a factor at \"\"");
  EXPECT_EQ(errorOf("([a]) ([a])"), "expected -> at \"([a])\"");
  EXPECT_EQ(errorOf("([a]) -> ([a]) {b=4}"), "no dim has the factor \"b\" at \"=4}\"");
  EXPECT_EQ(errorOf("([a]) -> ([a]) {a=x}"), "expected a size at \"}\"");
  EXPECT_EQ(errorOf("([a, b]) -> ([a, b]) {b=4} linear=[]"),
            "expected one size for each factor, not so for a at \" linear=[]\"");
  EXPECT_EQ(errorOf("([a]) -> ([a]) {a=4} mean={a} linear=[]"),
            "expected a factor kind, found \"mean\" at \"={a} linear=[]\"");
  EXPECT_EQ(errorOf("([a]) -> ([a]) {a=4} linear=[[1]]"), "expected an operand's number below 1 at \"]]\"");
  EXPECT_EQ(errorOf("([a]) -> ([a]) {a=4} linear=[[0]] x"), "expected the end at \"x\"");
}
