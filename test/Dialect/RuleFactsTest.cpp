// The sharding rule of every op agrees with the interpreter: linear operands are linear, and results of shards, or of
// slices in time, make up the whole as the rule says. Each check is also given a wrong rule, and must name it.
#include "Facts/InTime.h"
#include "Facts/Linear.h"

#include "par/Dialect/Interfaces/Decomposable.h"

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

TEST(RuleFacts, EveryRuleFitsTheTypes) {
  Findings findings;
  for (const Instance &instance : instances().all)
    findings.note(instance, checkDims(instance, ruleOf(instance)));
  findings.expectNone(instances().tensorOps());
}

TEST(RuleFacts, LinearIsLinear) {
  Findings findings;
  Chooser choose(Instances::seed, 0);
  llvm::StringSet<> claimed;
  for (const Instance &instance : instances().all)
    findings.note(instance, checkLinear(instance, ruleOf(instance).linear, choose));
  findings.expectNone();
}

/// Sets of operands, "par.dot [0]", in which all instances of an op are linear and none says so.
std::vector<std::string> findUnsaid(llvm::function_ref<ShardingRule(const Instance &)> ruleOf) {
  Chooser choose(Instances::seed, 0);
  std::map<std::string, bool> linear;
  for (const Instance &instance : instances().all) {
    if (isa<CotangentOp, CollectOp>(instance.op) || !instance.results[0].isFloat())
      continue; // markers, which are gone before anything is cut
    for (const SmallVector<unsigned> &set : claimable(instance)) {
      std::string name = instance.name().str() + " " + listOf(std::vector<int64_t>(set.begin(), set.end()));
      bool holds = !llvm::is_contained(ruleOf(instance).linear, set) && instance.results[0].getSize() > 0 &&
                   llvm::all_of(llvm::seq(3), [&](int) { return checkLinear(instance, {set}, choose) == ""; });
      linear.try_emplace(name, true).first->second &= holds;
    }
  }
  std::vector<std::string> unsaid;
  for (auto &[name, holds] : linear)
    if (holds)
      unsaid.push_back(name);
  return unsaid;
}

// A sum that could have been kept is reduced too early: nothing is wrong, but ranks send more.
TEST(RuleFacts, WhatIsLinearSaysSo) {
  EXPECT_EQ(findUnsaid(ruleOf), std::vector<std::string>());
  auto silent = [](const Instance &instance) {
    ShardingRule rule = ruleOf(instance);
    if (instance.name() == "par.negate" || instance.name() == "par.dot")
      rule.linear.clear();
    return rule;
  };
  EXPECT_EQ(findUnsaid(silent), (std::vector<std::string>{"par.dot [0]", "par.dot [1]", "par.negate [0]"}));
}

/// Ops that a case shows sharded or that have no case: all but those, as muon, of which no factor may be sharded.
std::vector<std::string> shardableOps() {
  llvm::StringSet<> met, shardable;
  for (const Instance &instance : instances().all) {
    met.insert(instance.name());
    if (llvm::any_of(ruleOf(instance).factors,
                     [](const Factor &factor) { return factor.kind != FactorKind::NeedReplication; }))
      shardable.insert(instance.name());
  }
  std::vector<std::string> names = instances().tensorOps();
  llvm::erase_if(names, [&](const std::string &name) { return met.contains(name) && !shardable.contains(name); });
  return names;
}

TEST(RuleFacts, ShardsMakeTheWhole) {
  Findings findings;
  for (const Instance &instance : instances().all)
    findings.note(instance, checkFactors(instance, ruleOf(instance)));
  findings.expectNone(shardableOps());
}

TEST(RuleFacts, SlicesInTimeMakeTheWhole) {
  Findings findings;
  for (const Instance &instance : instances().all)
    findings.note(instance, checkInTime(instance, ruleOf(instance)));
  findings.expectNone(shardableOps());
}

// A factor that needs decomposition before it is sharded can be decomposed.
TEST(RuleFacts, WhatIsExpandedDecomposes) {
  Findings findings;
  for (const Instance &instance : instances().all) {
    bool expands = llvm::any_of(ruleOf(instance).factors,
                                [](const Factor &factor) { return factor.kind == FactorKind::Decompose; });
    if (expands)
      findings.note(instance, isa<DecomposableOpInterface>(instance.op)
                                  ? ""
                                  : "has a factor that is cut after decomposing, and no decomposition");
  }
  findings.expectNone();
}

/// Ops that are found at fault under a rule that `change` has made wrong.
std::vector<std::string>
faulty(StringRef op, llvm::function_ref<void(ShardingRule &)> change,
       llvm::function_ref<std::optional<std::string>(const Instance &, const ShardingRule &)> check) {
  Findings findings;
  for (const Instance &instance : instances().all)
    if (instance.name() == op) {
      ShardingRule rule = ruleOf(instance);
      change(rule);
      findings.note(instance, check(instance, rule));
    }
  std::vector<std::string> names;
  for (StringRef name : findings.faulty.keys())
    names.push_back(name.str());
  return names;
}

// A sum of the parts' functions is not the function of the sum: this claim of `softsign` passed every other test.
TEST(RuleFacts, NamesWhatIsNotLinear) {
  Chooser choose(Instances::seed, 0);
  const std::pair<const char *, SmallVector<unsigned>> wrong[] = {
      {"par.sigmoid", {0}},  {"par.abs", {0}},    {"par.maximum", {0, 1}}, {"par.multiply", {0, 1}},
      {"par.divide", {1}},   {"par.select", {1}}, {"par.compare", {0}},    {"par.softmax", {0}},
      {"par.dot", {0, 1}},   {"par.add", {0}},    {"par.gelu_grad", {1}},  {"par.cross_entropy", {0}},
      {"par.max_pool", {0}}, {"par.round", {0}},  {"par.sgd", {0}},        {"par.layer_norm", {0, 1}},
  };
  for (auto &[op, set] : wrong)
    EXPECT_EQ(faulty(
                  op, [&](ShardingRule &rule) { rule.linear = {set}; },
                  [&](const Instance &instance, const ShardingRule &rule) {
                    return checkLinear(instance, rule.linear, choose);
                  }),
              std::vector<std::string>{op});
}

// Factors of another kind than the op's.
TEST(RuleFacts, NamesAFactorOfTheWrongKind) {
  auto turn = [](FactorKind from, FactorKind to) {
    return [=](ShardingRule &rule) {
      for (Factor &factor : rule.factors)
        if (factor.kind == from)
          factor.kind = to;
    };
  };
  const std::tuple<const char *, FactorKind, FactorKind> wrong[] = {
      {"par.cumulative", FactorKind::NeedReplication, FactorKind::Parallel},
      {"par.arg_reduce", FactorKind::NeedReplication, FactorKind::Parallel},
      {"par.sorted_position", FactorKind::NeedReplication, FactorKind::Parallel},
      {"par.reverse", FactorKind::NeedReplication, FactorKind::Parallel},
      {"par.softmax", FactorKind::Decompose, FactorKind::Parallel},
      {"par.reduce", FactorKind::Sum, FactorKind::Max},
      {"par.reduce", FactorKind::Max, FactorKind::Sum},
      {"par.reduce", FactorKind::Sum, FactorKind::Parallel},
      {"par.reduce", FactorKind::And, FactorKind::Or},
      {"par.dot", FactorKind::Sum, FactorKind::Parallel},
      {"par.scatter_add", FactorKind::Sum, FactorKind::Max},
      {"par.gather", FactorKind::Indexed, FactorKind::Parallel},
      {"par.take", FactorKind::Indexed, FactorKind::Max},
  };
  for (auto [op, from, to] : wrong)
    EXPECT_EQ(faulty(op, turn(from, to), checkFactors), std::vector<std::string>{op});
  EXPECT_EQ(faulty("par.cumulative", turn(FactorKind::NeedReplication, FactorKind::Parallel), checkInTime),
            std::vector<std::string>{"par.cumulative"});
  EXPECT_EQ(faulty("par.reduce", turn(FactorKind::Max, FactorKind::Sum), checkInTime),
            std::vector<std::string>{"par.reduce"});
}

// Dims that correspond to others than the rule says.
TEST(RuleFacts, NamesDimsThatDoNotCorrespond) {
  auto swapDims = [](ShardingRule &rule) {
    for (SmallVector<DimFactors> &dims : rule.operands)
      if (dims.size() > 1)
        std::swap(dims[0], dims[1]);
  };
  auto check = [](const Instance &instance, const ShardingRule &rule) { return checkDims(instance, rule); };
  EXPECT_EQ(faulty("par.tanh", swapDims, check), std::vector<std::string>{"par.tanh"});
}

} // namespace
