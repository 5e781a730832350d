// Each optimizer's op fulfils its interface, and the plan's table of optimizers agrees: a new optimizer is its op and
// its row there.
#include "Session.h"

#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Interfaces/Optimizer.h"
#include "par/Plan/Language/Schema.h"
#include "par/Plan/Model/Optimizers.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace par;
using namespace par::test;

namespace {

SmallVector<StringRef> sorted(SmallVector<StringRef> words) {
  llvm::sort(words);
  return words;
}

/// The update op of a step that trains one parameter, with all settings at their defaults.
Operation *updateOf(Session &session, OwningOpRef<ModuleOp> &module, StringRef kind) {
  module = session.parse(R"(
    par.variable @w parameter : tensor<4x4xf32>
    par.step @train() -> tensor<f32> attributes {outputs = ["loss"]} {
      %w = par.read @w : tensor<4x4xf32>
      %l = par.reduce sum %w dims [0, 1] : tensor<4x4xf32> to tensor<f32>
      %one = par.constant dense<1.0> : tensor<f32>
      %ct = par.cotangent %l, %one : tensor<f32>
      %b = par.broadcast_in_dim %ct dims [] : tensor<f32> to tensor<4x4xf32>
      %g = par.gradient %b of @w : tensor<4x4xf32>
      par.return %l : tensor<f32>
    })");
  session.run(*module, [&](OpPassManager &manager) {
    AddOptimizerPassOptions options;
    options.kind = kind;
    manager.addPass(createAddOptimizerPass(options));
    manager.addPass(createVerifyTrainPass());
  });
  Operation *update = nullptr;
  module->walk([&](OptimizerOpInterface op) { update = op; });
  return update;
}

TEST(Optimizers, PlanAndDialectKnowTheSame) {
  Session session;
  SmallVector<StringRef> kinds = optimizerKinds(&session.context), named;
  for (const OptimizerKind &kind : getOptimizerKinds())
    named.push_back(kind.name);
  EXPECT_EQ(sorted(named), kinds);
  EXPECT_EQ(sorted(planWords("train.optimizer")), kinds);
  EXPECT_EQ(sorted(planWords("train.optimizer.kind")), kinds);
  EXPECT_EQ(sorted(planWords("train.groups.<pattern>.kind")), kinds);
}

// Each attribute is one setting, and each key of a setting is one of the plan's.
TEST(Optimizers, SettingsAreTheOpsAttributes) {
  llvm::StringSet<> keys;
  for (const PlanKey &key : planKeys())
    keys.insert(key.path);
  for (const OptimizerKind &kind : getOptimizerKinds()) {
    Session session;
    OwningOpRef<ModuleOp> module;
    Operation *update = updateOf(session, module, kind.name);
    ASSERT_TRUE(update) << std::string(kind.name);
    llvm::StringSet<> attributes;
    for (StringAttr name : update->getRegisteredInfo()->getAttributeNames())
      attributes.insert(name);
    for (const char *other : {"stage", "shardings", "weight_decay"})
      EXPECT_TRUE(attributes.erase(other)) << std::string(kind.name) << " " << other;
    for (const OptimizerSetting &setting : kind.settings) {
      std::string name = std::string(kind.name) + "'s " + setting.attribute;
      for (const char *room : {"train.optimizer.", "train.groups.<pattern>."})
        EXPECT_TRUE(keys.contains(std::string(room) + setting.key)) << name << " in " << room;
      EXPECT_TRUE(attributes.erase(setting.attribute)) << name << " is no attribute of the op, or is there twice";
      Attribute value = update->getInherentAttr(setting.attribute).value_or(Attribute());
      ASSERT_TRUE(value) << name;
      EXPECT_EQ(isa<BoolAttr>(value), setting.flag != nullptr) << name;
    }
    for (StringRef left : attributes.keys())
      ADD_FAILURE() << "lib/Plan/Model/Optimizers.cpp has no setting for the attribute " << left.str() << " of par."
                    << std::string(kind.name);
  }
}

// One operand and one result for each state, with names of their own; an op without a builtin kernel is decomposed.
TEST(Optimizers, StatesAreOperandsAndResults) {
  Session session;
  for (StringRef kind : optimizerKinds(&session.context)) {
    Optimizer optimizer = *findOptimizer(&session.context, kind);
    OwningOpRef<ModuleOp> module;
    Operation *update = updateOf(session, module, kind);
    ASSERT_TRUE(update) << kind.str();
    size_t states = optimizer.getStates().size(), scalars = 1 + optimizer.countsSteps();
    EXPECT_EQ(update->getNumResults(), 1 + states) << kind.str();
    EXPECT_EQ(update->getNumOperands(), 2 + states + scalars) << kind.str();
    EXPECT_TRUE(isa<DecomposableOpInterface>(update)) << kind.str();
    llvm::StringSet<> names;
    for (StringRef name : optimizer.getStates()) {
      EXPECT_TRUE(name.starts_with(".") && names.insert(name).second) << kind.str() << " " << name.str();
      EXPECT_TRUE(module->lookupSymbol<VariableOp>(("w" + name).str())) << kind.str() << " " << name.str();
    }
    EXPECT_EQ(module->lookupSymbol("step") != nullptr, optimizer.countsSteps()) << kind.str();
  }
  EXPECT_FALSE(findOptimizer(&session.context, "add"));
  EXPECT_FALSE(findOptimizer(&session.context, "none"));
}

} // namespace
