// Traits, folders, costs and gradients of every op agree with the interpreter. Each check is also given a wrong op, and
// must name it.
#include "Facts/Analytic.h"
#include "Facts/Cost.h"
#include "Facts/Gradient.h"
#include "Facts/Range.h"
#include "Facts/Traits.h"

#include "par/Dialect/Analytic.h"

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

/// The first one of that name, of floats and with a dim to cut.
const Instance &oneOf(StringRef op) {
  for (const Instance &instance : instances().all)
    if (instance.name() == op && instance.results[0].getSize() > 3 && instance.results[0].isFloat())
      return instance;
  ADD_FAILURE() << op.str();
  return instances().all.front();
}

/// How many ops of that name a check finds at fault.
unsigned countNamed(StringRef op, llvm::function_ref<std::optional<std::string>(const Instance &)> check) {
  return llvm::count_if(instances().all, [&](const Instance &instance) {
    return instance.name() == op && !check(instance).value_or("").empty();
  });
}

bool isLayoutOp(const Instance &instance) {
  return isa<CostOpInterface>(instance.op) && !instance.op->hasTrait<OpTrait::Elementwise>() &&
         getCost(instance.op).flops == 0 && !instance.operands.empty();
}

/// Names of the ops for which something holds.
std::vector<std::string> namesOf(llvm::function_ref<bool(RegisteredOperationName)> holds) {
  std::vector<std::string> names;
  for (RegisteredOperationName name : instances().session.context.getRegisteredOperationsByDialect("par"))
    if (holds(name))
      names.push_back(name.getStringRef().str());
  return names;
}

TEST(OpFacts, ElementwiseIsByElement) {
  Findings findings;
  Chooser choose(Instances::seed, 0);
  for (const Instance &instance : instances().all)
    if (instance.op->hasTrait<OpTrait::Elementwise>())
      findings.note(instance, checkElementwise(instance, choose));
  findings.expectNone(namesOf([](RegisteredOperationName name) { return name.hasTrait<OpTrait::Elementwise>(); }));
  // At least some instances: along a dim of one element they are elementwise.
  for (const char *op : {"par.cumulative", "par.softmax", "par.reverse"})
    EXPECT_GT(countNamed(op, [&](const Instance &instance) { return checkElementwise(instance, choose); }), 0u) << op;
}

TEST(OpFacts, CommutativeOperandsMaySwap) {
  Findings findings;
  for (const Instance &instance : instances().all)
    if (instance.op->hasTrait<OpTrait::IsCommutative>())
      findings.note(instance, checkCommutative(instance));
  findings.expectNone(namesOf([](RegisteredOperationName name) { return name.hasTrait<OpTrait::IsCommutative>(); }));
  EXPECT_NE(checkCommutative(oneOf("par.subtract")), "");
  EXPECT_NE(checkCommutative(oneOf("par.power")), "");
}

TEST(OpFacts, WhatCostsNothingMovesElements) {
  Findings findings;
  for (const Instance &instance : instances().all)
    if (isLayoutOp(instance))
      findings.note(instance, checkLayoutOp(instance));
  findings.expectNone({"par.reshape", "par.transpose", "par.pad", "par.gather", "par.patches", "par.concat"});
  for (const char *op : {"par.index_add", "par.softmax", "par.dot"})
    EXPECT_GT(countNamed(op, checkLayoutOp), 0u) << op;
}

TEST(OpFacts, WhatFusesReadsOneElement) {
  Findings findings;
  for (const Instance &instance : instances().all)
    if (auto cost = dyn_cast<CostOpInterface>(instance.op); cost && cost.isFusable())
      findings.note(instance, checkFusable(instance));
  findings.expectNone({"par.add", "par.reshape", "par.broadcast_in_dim", "par.patches"});
  for (const char *op : {"par.reduce", "par.dot", "par.softmax"})
    EXPECT_GT(countNamed(op, checkFusable), 0u) << op;
}

TEST(OpFacts, FoldsToWhatItComputes) {
  Findings findings;
  for (const Instance &instance : instances().all)
    findings.note(instance, checkFold(instance));
  findings.expectNone();
  // A fold of another op's values.
  Instance wrong = oneOf("par.constant");
  wrong.results[0].mutableFloats()[0] += 1;
  EXPECT_NE(checkFold(wrong), "");
}

TEST(OpFacts, AnalyticIsAnalytic) {
  Findings findings;
  llvm::StringSet<> seen;
  for (const Instance &instance : instances().all)
    if (isAnalytic(instance.op) &&
        seen.insert(instance.name().str() + std::to_string(instance.op->getAttrs().size())).second)
      findings.note(instance, checkAnalytic(instance.op));
  findings.expectNone();
  EXPECT_GT(findings.checked.size(), 10u);
  for (const char *op : {"par.abs", "par.sign", "par.floor", "par.round", "par.maximum", "par.remainder"})
    EXPECT_NE(checkAnalytic(oneOf(op).op), "") << op;
}

TEST(OpFacts, CostFollowsSizes) {
  Findings findings, growth;
  auto flopsOf = [](Operation *op) { return getCost(op).flops; };
  for (const Instance &instance : instances().all)
    if (isa<CostOpInterface>(instance.op)) {
      findings.note(instance, checkCost(instance, getCost(instance.op)));
      growth.note(instance, checkGrowth(instance, ruleOf(instance), flopsOf));
    }
  findings.expectNone(namesOf([](RegisteredOperationName name) { return name.hasInterface<CostOpInterface>(); }));
  growth.expectNone();
  const Instance &dot = oneOf("par.dot"), &add = oneOf("par.add");
  EXPECT_NE(checkGrowth(add, ruleOf(add), [](Operation *) { return 7; }), "");
  EXPECT_NE(checkGrowth(dot, ruleOf(dot),
                        [](Operation *op) {
                          int64_t size = cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements();
                          return size * size * 1000;
                        }),
            "");
  EXPECT_NE(checkCost(add, {0, getCost(add.op).bytes, true}), "");
  EXPECT_NE(checkCost(add, {5, 8, true}), "");
}

TEST(OpFacts, RangesHold) {
  Findings findings;
  Chooser choose(Instances::seed, 0);
  for (const Instance &instance : instances().all)
    findings.note(instance, checkRange(instance, choose));
  findings.expectNone(
      namesOf([](RegisteredOperationName name) { return name.hasInterface<InferIntRangeInterface>(); }));
  // Ends that lie one too far inside.
  for (bool high : {false, true}) {
    unsigned named = 0;
    for (const Instance &instance : instances().all)
      named += !checkRange(instance, choose,
                           [&](ConstantIntRanges &range) {
                             if (range.smin() != range.smax())
                               range = high ? ConstantIntRanges::fromSigned(range.smin(), range.smax() - 1)
                                            : ConstantIntRanges::fromSigned(range.smin() + 1, range.smax());
                           })
                    .value_or("")
                    .empty();
    EXPECT_GT(named, 10u);
  }
}

/// Calls with the float results whose cotangents flow: each by itself, then all together.
void forEachFlow(const Instance &instance, llvm::function_ref<void(ArrayRef<bool>)> act) {
  unsigned results = instance.results.size();
  for (unsigned which = 0; which < results + (results > 1); ++which) {
    SmallVector<bool> flowing;
    for (auto [number, result] : llvm::enumerate(instance.results))
      flowing.push_back(result.isFloat() && (which == number || which == results));
    if (llvm::is_contained(flowing, true))
      act(flowing);
  }
}

// Also for operands without a gradient, and for each result by itself.
TEST(OpFacts, GradientsAreDerivatives) {
  Findings findings;
  Chooser choose(Instances::seed, 0);
  for (const Instance &instance : instances().all)
    if (isa<DifferentiableOpInterface>(instance.op))
      forEachFlow(instance,
                  [&](ArrayRef<bool> flowing) { findings.note(instance, checkGradient(instance, flowing, choose)); });
  findings.expectNone(
      namesOf([](RegisteredOperationName name) { return name.hasInterface<DifferentiableOpInterface>(); }));
  // A derivative of other values than the op's, and none where there is one.
  Instance wrong = oneOf("par.sigmoid");
  for (double &value : wrong.results[0].mutableFloats())
    value *= 0.9;
  EXPECT_NE(checkGradient(wrong, {true}, choose), "");
  const Instance &divide = oneOf("par.divide");
  SmallVector<Tensor> weights = drawWeights(divide, {true}, choose);
  SmallVector<Tensor> built = *BuiltGradient(divide, weights).run();
  EXPECT_EQ(checkCotangents(divide, weights, built), "");
  built[1] = {};
  EXPECT_TRUE(StringRef(checkCotangents(divide, weights, built)).contains("operand 1, of which it builds none"));
}

TEST(OpFacts, GradientsReadWhatTheyNeed) {
  Chooser choose(Instances::seed, 0);
  llvm::StringSet<> read, matters;
  for (const Instance &instance : instances().all)
    if (isa<DifferentiableOpInterface>(instance.op))
      forEachFlow(instance, [&](ArrayRef<bool> flowing) { findNeeds(instance, flowing, choose, read, matters); });
  // The interpreter finds the largest elements itself; kernels find them by the op's result.
  matters.insert("par.max_pool result 0");
  for (StringRef name : read.keys())
    EXPECT_TRUE(matters.contains(name)) << name.str() << " is kept for the gradient, which does not depend on it";
  llvm::outs() << read.size() << " operands and results are read\n";
  EXPECT_TRUE(read.contains("par.sigmoid result 0"));
  EXPECT_FALSE(read.contains("par.sigmoid operand 0"));
}

} // namespace
