// A plan's training keys, as options of Train.
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
  result.errors = errors.toText();
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

// The later group wins, key by key; frozen parameters need no settings; a group's own rate is a share of the peak.
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

// Rows that a step looks up have no layout: nothing is said about how they lie.
TEST(TrainPlan, GroupsKeepRows) {
  Read result = read("par: 1\ntrain: {groups: {w: {sparse: true}, head.w: {sparse: false}}}\n");
  EXPECT_EQ(result.errors, "");
  ASSERT_EQ(result.options.parameters.size(), 1u);
  EXPECT_EQ(result.options.parameters[0].name, "h.0.w");
  EXPECT_TRUE(result.options.parameters[0].sparse);
  EXPECT_NE(read("mesh: {dp: 2}\nzero: {level: 1, min_size: 4}\ntrain: {groups: {head.w: {sparse: true}}}\n")
                .errors.find("plan.yaml:3:35: error: head.w is sparse and zero is 1: looked-up rows are not sharded "
                             "over ranks yet; say sparse: false, or a zero.min_size above its 4 elements"),
            std::string::npos);
  EXPECT_EQ(read("mesh: {dp: 2}\nzero: {level: 1, min_size: 5}\ntrain: {groups: {head.w: {sparse: true}}}\n").errors,
            "");
  EXPECT_NE(
      read("mesh: {dp: 2}\nshard: {grad(head.w): {0: dp}}\ntrain: {groups: {head.w: {sparse: true}}}\n")
          .errors.find(
              "error: head.w is sparse: its gradient is looked-up rows, which have no layout of its own; drop this "
              "rule, or say sparse: false"),
      std::string::npos);
}

// For another kind, keys that no group sets have that kind's defaults; for the same kind, the values of all others.
TEST(TrainPlan, GroupsHaveOptimizersOfTheirOwn) {
  Read result = read("par: 1\ntrain:\n  optimizer: {kind: adamw, weight_decay: 0.1, eps: 1e-6}\n  groups:\n"
                     "    head.w: {eps: 1e-4}\n    h.0.w: {kind: sgd}\n    b: {kind: momentum, nesterov: true}\n"
                     "    h.0.b: {momentum: 0.5}\n    \"{w,b}\": {lr_scale: 2}\n");
  EXPECT_EQ(result.errors, "");
  ASSERT_EQ(result.options.parameters.size(), 3u);
  const auto &weight = result.options.parameters[0], &bias = result.options.parameters[1],
             &head = result.options.parameters[2];
  EXPECT_EQ(weight.kind, "sgd");
  EXPECT_EQ(weight.weightDecay, 0);
  EXPECT_TRUE(weight.settings.empty());
  EXPECT_EQ(bias.kind, "momentum");
  std::vector<std::pair<std::string, double>> settings{{"nesterov", 1}, {"momentum", 0.5}};
  EXPECT_TRUE(std::is_permutation(bias.settings.begin(), bias.settings.end(), settings.begin(), settings.end()));
  EXPECT_EQ(bias.lrScale, 2);
  EXPECT_EQ(head.kind, "");
  EXPECT_EQ(head.weightDecay, std::nullopt);
  settings = {{"epsilon", 1e-4}};
  EXPECT_EQ(head.settings, settings);
}

TEST(TrainPlan, AnOwnRateNeedsAPeak) {
  Read result = read("par: 1\ntrain: {optimizer: {kind: sgd, lr: 0}, groups: {head.w: {lr: 0.25}}}\n");
  EXPECT_NE(result.errors.find("train.optimizer.lr.peak takes a positive number if a group has its own lr, found 0"),
            std::string::npos)
      << result.errors;
}

TEST(TrainPlan, WithoutTrainingThereAreDefaults) { EXPECT_EQ(read("par: 1\n").options.kind, "sgd"); }

} // namespace
