// Settings of --also, and what of a step and of its state members of a family have in common.
#include "par/Compiler/FamilyStep.h"

#include <gtest/gtest.h>

using namespace par;

namespace {

void ignore(const CompileDiagnostic &) {}

TEST(AlsoSettings, AreSplitOutsideOfBracketsAndQuotes) {
  auto also = readAlso("mesh={dp: 2, tp: 1},shard.\"a,b\"={0: tp},zero=1");
  ASSERT_TRUE(also);
  EXPECT_EQ(also->settings, (std::vector<std::string>{"mesh={dp: 2, tp: 1}", "shard.\"a,b\"={0: tp}", "zero=1"}));
  EXPECT_EQ(readAlso("mesh.dp=3")->name, "dp3");
  EXPECT_EQ(readAlso("mesh.dp=3,zero.level=1")->name, "dp3-level1");
  for (const char *wrong : {"", "mesh.dp", "=3", "mesh.dp=3,", ",mesh.dp=3", "mesh={dp: 3", ".=3"})
    EXPECT_FALSE(readAlso(wrong)) << wrong;
}

PlannedModel planOf(std::vector<std::string> settings) {
  std::shared_ptr<const Model> model = readModel(PAR_SOURCE_DIR "/test/Models/mlp/model.onnx", ignore);
  std::optional<PlannedModel> planned = planModel(model, {{}, std::move(settings)}, {}, ignore);
  EXPECT_TRUE(planned) << settings.size();
  return std::move(*planned);
}

TEST(FamilyStep, IsTheSameOnOtherRanks) {
  PlannedModel main = planOf({"train={}", "mesh.dp=4", "batch.size=16", "batch.microbatch_size=1"});
  EXPECT_EQ(settingsOfStep(main.plan.plan), (std::vector<std::string>{"batch.microbatches=null", "ranks=null",
                                                                      "batch.size=16", "batch.microbatch_size=1"}));
  auto other = [&](std::vector<std::string> settings) {
    std::vector<std::string> all = settingsOfStep(main.plan.plan);
    all.insert(all.begin(), "train={}");
    all.insert(all.end(), settings.begin(), settings.end());
    return describeOtherStep(main, planOf(all));
  };
  EXPECT_EQ(other({"mesh.dp=2"}), "");
  EXPECT_EQ(other({"mesh.dp=2", "zero=1", "recompute=none", "collectives.bucket=0"}), "");
  EXPECT_EQ(other({"mesh.dp=2", "batch.microbatch_size=2"}), "microbatches of 2 on a rank, the bundle has them of 1");
  EXPECT_EQ(other({"mesh.dp=2", "train.clip=1"}), "another train: \"clip: 1\", the bundle has \"clip: none\"");
  EXPECT_EQ(other({"mesh.dp=2", "target=cuda"}), "the device cuda, the bundle has cpu");
}

TEST(FamilyState, IsTheSame) {
  auto tensor = [](const char *name, std::vector<int64_t> shape) {
    format::Tensor made;
    made.name = name;
    made.stored = shape;
    return made;
  };
  format::Manifest main, member;
  main.tensors = {tensor("w", {2, 3}), tensor("b", {3})};
  member.tensors = main.tensors;
  EXPECT_EQ(describeOtherState(main, member), "");
  member.tensors.push_back(tensor("w@s1", {2, 3}));
  member.tensors.back().kind = format::TensorKind::Copy;
  EXPECT_EQ(describeOtherState(main, member), "");
  member.tensors[1].stored = {4};
  EXPECT_EQ(describeOtherState(main, member), "the state b f32[4], which the bundle does not have");
  member.tensors.erase(member.tensors.begin() + 1);
  EXPECT_EQ(describeOtherState(main, member), "no state b f32[3], which the bundle has");
}

} // namespace
