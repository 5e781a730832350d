// Other systems' names of Par's keys: every text of the tables is a plan that Par accepts.
#include "par/Plan/Language/ForeignNames.h"
#include "par/Plan/Language/Schema.h"
#include "par/Plan/Names/NameTable.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace par;

/// The plan reader's errors for a text.
static std::string readText(const std::string &text) {
  PlanErrors errors;
  PlanLayers layers(errors);
  layers.addText(text, "plan.yaml");
  if (!errors.any())
    checkPlanTree(layers.tree(), errors);
  return errors.toText("plan");
}

/// A text of the tables with numbers and a module in the places of N, M and P.
static std::string filled(llvm::StringRef text) {
  std::string plain = text.str();
  for (auto [from, to] : {std::pair(" N", " 2"), {" M", " 2"}, {"{each: P}", "{each: layers.*}"}})
    for (size_t at; (at = plain.find(from)) != std::string::npos;)
      plain.replace(at, strlen(from), to);
  return plain;
}

static bool isPath(llvm::StringRef text) {
  return llvm::any_of(planKeys(), [&](const PlanKey &key) { return text == key.path; });
}

TEST(ForeignNames, EachTextIsAPlan) {
  auto tool = llvm::MemoryBuffer::getFile(PAR_SOURCE_DIR "/runtime/src/app/Options.cpp");
  ASSERT_TRUE(bool(tool));
  for (const ForeignKey &key : foreignKeys()) {
    llvm::StringRef ours = key.ours;
    if (ours.consume_front("par-run ")) {
      EXPECT_TRUE((*tool)->getBuffer().contains("{\"" + ours.str() + "\"")) << key.name << ": " << ours.str();
      continue;
    }
    std::string document;
    llvm::SmallVector<llvm::StringRef> parts;
    ours.split(parts, " with ");
    for (llvm::StringRef part : parts)
      if (!isPath(part))
        document += filled(part) + "\n";
    EXPECT_EQ(readText(document), "") << key.name << ": " << document;
  }
}

TEST(ForeignNames, EachWordIsAValue) {
  for (const ForeignWord &word : foreignWords()) {
    EXPECT_TRUE(isPath(word.key)) << word.key;
    std::string value = filled(std::string(" ") + word.ours).substr(1);
    llvm::SmallVector<llvm::StringRef> path;
    llvm::StringRef(word.key).split(path, '.');
    std::string document;
    for (const llvm::StringRef &part : path)
      document += part.str() + ": " + (&part == &path.back() ? value : "{");
    EXPECT_EQ(readText(document + std::string(path.size() - 1, '}')), "") << word.name << ": " << document;
    // The foreign word must be refused, for only an error names Par's word.
    if (llvm::StringRef(word.key) != "train.loss") {
      size_t at = document.rfind(value);
      document.replace(at, value.size(), word.name);
      EXPECT_NE(readText(document + std::string(path.size() - 1, '}')), "") << document;
    }
  }
}

TEST(ForeignNames, NoneIsAKeyOfPar) {
  llvm::StringSet<> names;
  for (const ForeignKey &key : foreignKeys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name << " stands twice";
    EXPECT_EQ(llvm::StringRef(key.name).lower(), key.name);
    EXPECT_FALSE(llvm::StringRef(key.name).contains('-')) << key.name;
    EXPECT_NE(readText(std::string(key.name) + ": 1\n"), "") << key.name;
  }
  EXPECT_GT(names.size(), 150u);
}

TEST(ForeignNames, NumbersThatMeanSomethingElse) {
  auto says = [](const std::string &text, const std::string &wanted) {
    std::string said = readText(text);
    EXPECT_NE(said.find(wanted), std::string::npos) << said;
  };
  says("per_device_train_batch_size: 4\n",
       "error: unknown key \"per_device_train_batch_size\"; Par calls this \"batch.microbatch_size\"\n");
  says("reduce_bucket_size: 500\n", "Par calls this \"collectives.bucket\"\nreduce_bucket_size: 500\n^\n"
                                    "  note: collectives.bucket: in bytes (25MiB), where that counts elements\n");
  says("num_train_epochs: 3\n",
       "error: unknown key \"num_train_epochs\"; give it when a bundle runs: par-run --epochs\n");
  says("Max-Grad-Norm: 1\n", "Par calls this \"train.clip\"");
  says("train: {optimizer: Adam}\n", "did you mean \"{kind: adamw, weight_decay: 0}\"?");
  says("train: {optimizer: Adam}\n", "note: {kind: adamw, weight_decay: 0}: Adam is adamw without weight decay");
  says("train: {optimizer: AdamW}\n", "found \"AdamW\"; did you mean \"adamw\"?");
  says("train: {optimizer: SGD}\n", "found \"SGD\"; did you mean \"sgd\"?");
  says("precision: BFloat16\n", "found \"BFloat16\"; did you mean \"bf16\"?");
  says("zero: {stage: 3}\n", "error: unknown key \"stage\" in zero; Par calls this \"zero.level\"\n");
  says("train: {optimizer: {kind: adamw, lr: {peak: 1e-3, warmup: 0.1}}}\n",
       "error: train.optimizer.lr.warmup takes a whole number, found \"0.1\"");
  says("train: {optimizer: {kind: adamw, lr: {peak: 1e-3, warmup: 0.1}}}\n",
       "note: train.optimizer.lr.warmup: in steps, not as a share of all");
  says("pipeline: {schedule: 1F1B}\n", "did you mean \"1f1b\"?");
}

TEST(ForeignNames, TheModelsOwnLayers) {
  NameTable names;
  for (int layer = 0; layer < 3; ++layer)
    for (const char *part : {"attn.weight", "experts.0.weight", "experts.1.weight"})
      names.parameters.push_back({"model.layers." + std::to_string(layer) + "." + part, {}, {8, 8}, "f32", true, ""});
  for (const char *name : {"blocks.0.weight", "blocks.1.weight", "embed.weight"})
    names.parameters.push_back({name, {}, {4, 4}, "f32", true, ""});
  EXPECT_EQ(repeatedModule(names), "layers.*");
  EXPECT_EQ(nameRepeated("Par calls this \"recompute: {each: P}\"", names),
            "Par calls this \"recompute: {each: layers.*}\"");
  names.parameters.resize(1);
  EXPECT_EQ(repeatedModule(names), "");
  EXPECT_EQ(nameRepeated("{each: P}", names), "{each: P}");
}

TEST(ForeignNames, AxesOfOtherNames) {
  EXPECT_EQ(foreignAxisHint("fsdp"), "; as replicas that shard their parameters: batch: {over: fsdp} with zero: 3");
  EXPECT_EQ(foreignAxisHint("pipe"), "; as stages: pipeline: {over: pipe}");
  EXPECT_EQ(foreignAxisHint("x"), "");
}
