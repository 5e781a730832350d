// What a plan says about training, as options of Train.
#include "Session.h"

using namespace par;
using namespace par::test;

namespace {

struct Read {
  TrainOptions options;
  std::string errors;
};

/// Options for parameters h.0.w, h.0.b and head.w.
Read read(const std::string &text) {
  NameTable names;
  for (const char *name : {"h.0.w", "h.0.b", "head.w"})
    names.parameters.push_back({name, {}, {4}, "f32", true, ""});
  PlanErrors errors;
  PlanLayers layers(errors);
  layers.addText(text, "plan.yaml");
  Read result;
  if (auto plan = buildPlan(layers.tree(), layers.recipes(), errors))
    result.options = trainOptions(*plan, names, errors);
  llvm::raw_string_ostream out(result.errors);
  errors.print(out);
  return result;
}

TEST(TrainPlan, SaysOptimizerAndClipping) {
  TrainOptions options = read("par: 1\ntrain: {optimizer: {kind: adamw, lr: 0.01, betas: [0.8, 0.95], eps: "
                              "1e-6, weight_decay: 0.1}, clip: 2.0}\n")
                             .options;
  EXPECT_EQ(options.kind, "adamw");
  EXPECT_EQ(options.lr, 0.01);
  std::vector<std::pair<std::string, double>> settings{{"beta1", 0.8}, {"beta2", 0.95}, {"epsilon", 1e-6}};
  EXPECT_EQ(options.settings, settings);
  EXPECT_EQ(options.weightDecay, 0.1);
  EXPECT_EQ(options.clip, 2.0);
  EXPECT_FALSE(options.clipsValues);
  EXPECT_TRUE(options.parameters.empty());
}

TEST(TrainPlan, SaysTheLargestElement) {
  TrainOptions options = read("par: 1\ntrain: {clip: {value: 0.25}}\n").options;
  EXPECT_EQ(options.clip, 0.25);
  EXPECT_TRUE(options.clipsValues);
}

// The later group holds, key by key; what is frozen needs no settings; an own rate is a share of the peak.
TEST(TrainPlan, GroupsSetParameters) {
  Read result = read("par: 1\ntrain:\n  optimizer: {kind: sgd, lr: 0.5}\n  freeze: [head.w]\n  groups:\n"
                     "    \"**\": {weight_decay: 0.1, lr_scale: 3}\n    b: {weight_decay: 0, lr: 0.25}\n");
  EXPECT_EQ(result.errors, "");
  ASSERT_EQ(result.options.parameters.size(), 2u);
  EXPECT_EQ(result.options.parameters[0].name, "h.0.w");
  EXPECT_EQ(result.options.parameters[0].weightDecay, 0.1);
  EXPECT_EQ(result.options.parameters[0].lrScale, 3);
  EXPECT_EQ(result.options.parameters[1].name, "h.0.b");
  EXPECT_EQ(result.options.parameters[1].weightDecay, 0);
  EXPECT_EQ(result.options.parameters[1].lrScale, 0.5);
}

TEST(TrainPlan, AnOwnRateNeedsAPeak) {
  Read result = read("par: 1\ntrain: {optimizer: {kind: sgd, lr: 0}, groups: {head.w: {lr: 0.25}}}\n");
  EXPECT_NE(result.errors.find(
                "train.optimizer.lr.peak takes a positive number where a group has its own lr, found 0"),
            std::string::npos)
      << result.errors;
}

TEST(TrainPlan, WithoutTrainingThereAreDefaults) { EXPECT_EQ(read("par: 1\n").options.kind, "sgd"); }

} // namespace
