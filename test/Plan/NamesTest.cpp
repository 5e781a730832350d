// A plan against the names of a model: errors 2, 3, 4 and 5 of docs/plan.md §5, and how the rules of shard resolve.
#include "par/Plan/Names/NameTable.h"
#include "gtest/gtest.h"

using namespace par;

/// Names of a GPT-2 with two blocks: 8 weights a block of which 2 are looked at, embeddings, tied head.
static NameTable gpt2() {
  NameTable names;
  names.model = "gpt2.onnx";
  names.parameters.push_back({"transformer.wte.weight", {"lm_head.weight"}, {512, 64}, "f32", true, ""});
  names.modules = {"lm_head", "transformer", "transformer.wte"};
  for (std::string block : {"transformer.h.0", "transformer.h.1"}) {
    names.parameters.push_back({block + ".attn.c_attn.weight", {}, {64, 192}, "f32", true, ""});
    names.parameters.push_back({block + ".mlp.c_fc.weight", {}, {64, 256}, "f32", true, ""});
    names.parameters.push_back({block + ".mlp.c_fc.bias", {}, {256}, "f32", true, ""});
    for (std::string module : {"", ".ln_1", ".attn", ".mlp", ".mlp.c_fc"})
      names.modules.push_back(block + module);
    names.nodes.push_back({block + ".mlp/Gelu", block + ".mlp", "Gelu", ""});
  }
  names.inputs.push_back({"input_ids", {"batch", "seq"}, "i64"});
  names.outputs.push_back({"logits", {"batch", "seq", "512"}, "f32"});
  names.symbols = {"batch", "seq"};
  return names;
}

struct Outcome {
  std::optional<Plan> plan;
  std::vector<ResolvedShard> shards;
  std::string errors;
};

/// Reads `text` as plan.yaml, completes it and checks it against `names`.
static Outcome check(const std::string &text, const NameTable &names = gpt2()) {
  Outcome outcome;
  PlanErrors errors;
  PlanLayers layers(errors);
  layers.addText(text, "plan.yaml");
  if (!errors.any())
    outcome.plan = buildPlan(layers.tree(), layers.recipes(), errors);
  if (outcome.plan) {
    completePlan(*outcome.plan, names, errors);
    checkPlanNames(*outcome.plan, names, errors);
    PlanErrors again;
    outcome.shards = resolveShards(*outcome.plan, names, again);
  }
  outcome.errors = errors.toText(names.model);
  return outcome;
}

TEST(Names, GradientsAndStatesAreOfWhatIsTrained) {
  std::string rules = "mesh: {tp: 2}\nshard: {grad(c_fc.bias): {0: tp}, state(wte.weight): {0: tp}}\n";
  for (const char *said :
       {"plan.yaml:2:9: error: grad(c_fc.bias) takes parameters that are trained, found no \"train\" in the plan",
        "plan.yaml:2:35: error: state(wte.weight) takes parameters that are trained, found no \"train\""})
    EXPECT_NE(check(rules).errors.find(said), std::string::npos) << said;
  EXPECT_NE(check(rules + "train: {loss: cross_entropy, freeze: [wte]}\n")
                .errors.find("state(wte.weight) takes parameters that are trained, found transformer.wte.weight"),
            std::string::npos);
  // The rule takes only the trained ones of several parameters.
  Outcome some = check("mesh: {tp: 2}\ntrain: {loss: cross_entropy, only: [h.1]}\nshard: {grad(c_fc.bias): {0: tp}}\n");
  EXPECT_EQ(some.errors, "");
  ASSERT_EQ(some.shards.size(), 1u);
  EXPECT_EQ(some.shards[0].kind, ResolvedShard::Gradient);
  EXPECT_EQ(some.shards[0].index, 6u);
}

TEST(Names, Error2NamesTheNearest) {
  EXPECT_EQ(check("mesh: {tp: 1}\nshard:\n  mlp.fc.weight: {1: tp}\n").errors,
            "plan.yaml:3:3: error: pattern \"mlp.fc.weight\" matches no parameter, module or value\n"
            "  mlp.fc.weight: {1: tp}\n"
            "  ^\n"
            "  note: nearest is \"mlp.c_fc.weight\" (2 parameters); write \"mlp.fc.weight?\" if it may be absent; "
            "--list shows all names\n");
}

TEST(Names, EachAlternativeMatchesSomething) {
  EXPECT_EQ(
      check("train: {freeze: [\"{c_fc,c_atn}.weight\"]}\n").errors,
      "plan.yaml:1:18: error: \"c_atn\" of pattern \"{c_fc,c_atn}.weight\" matches nothing that the others do not; "
      "leave it out, or end the pattern in \"?\"\n"
      "train: {freeze: [\"{c_fc,c_atn}.weight\"]}\n"
      "                 ^\n"
      "  note: nearest is \"c_attn.weight\" (2 parameters); write \"c_atn.weight?\" if it may be absent; "
      "--list shows all names\n");
  for (const char *good : {"{c_fc,c_atn}.weight?", "{c_fc,c_attn}.{weight,bias}", "{wte,h.0}"})
    EXPECT_EQ(check("train: {freeze: [\"" + std::string(good) + "\"]}\n").errors, "") << good;
  EXPECT_NE(check("mesh: {tp: 2}\nshard: {\"{wte,wtf}.weight\": {0: tp}}\n").errors.find("\"wtf\" of pattern"),
            std::string::npos);
}

TEST(Names, SwappedLettersAreNear) {
  for (std::string pattern : {"c_attn.wegiht", "\"{c_fc,c_atnt}.weight\""}) {
    std::string said = check("train: {freeze: [" + pattern + "]}\n").errors;
    EXPECT_NE(said.find("note: nearest is \"c_attn.weight\" (2 parameters)"), std::string::npos) << said;
  }
  NameTable names = gpt2();
  names.parameters.push_back({"h.0.qkv.weight", {}, {64, 192}, "f32", true, ""});
  EXPECT_NE(check("train: {freeze: [\"{qvk,c_fc}.weight\"]}\n", names)
                .errors.find("note: nearest is \"qkv.weight\" (1 parameter)"),
            std::string::npos);
}

TEST(Names, ATiedParameterIsInEveryModuleThatHasIt) {
  for (std::string module : {"wte", "lm_head"}) {
    Outcome outcome = check("train: {freeze: [" + module + "]}\n");
    EXPECT_EQ(outcome.errors, "");
    PlanErrors errors;
    EXPECT_FALSE(resolveTrained(*outcome.plan, gpt2(), errors)[0]) << module;
  }
}

TEST(Names, Error2WithoutANearName) {
  EXPECT_NE(check("recompute: {each: encoder.layers.elephants}\n")
                .errors.find("note: write \"encoder.layers.elephants?\" if it may be absent; --list shows all names"),
            std::string::npos);
}

TEST(Names, Error3OneAxisOnTwoDims) {
  EXPECT_NE(check("mesh: {tp: 2}\nshard:\n  mlp.c_fc.weight: {0: tp}\n  h.0.mlp.c_fc.weight: {1: tp}\n")
                .errors.find("plan.yaml:4:28: error: axis \"tp\" shards both dim 0 and dim 1 of "
                             "transformer.h.0.mlp.c_fc.weight\n"),
            std::string::npos);
}

TEST(Names, Error4AnAxisThatShardsNothing) {
  EXPECT_EQ(check("par: 1\nmesh: {dp: 2, tp: 2}\n").errors,
            "plan.yaml:2:19: error: axis \"tp\" (size 2) shards nothing, so ranks 1 and 3 would repeat ranks 0 and 2; "
            "shard a value over it or use [megatron]\n"
            "mesh: {dp: 2, tp: 2}\n"
            "                  ^\n");
  // A rule with "?" that meets nothing shards nothing.
  EXPECT_NE(check("mesh: {x: 8}\nshard: {\"none.of.these?\": {0: x}}\n")
                .errors.find("axis \"x\" (size 8) shards nothing, so ranks 1, 2, 3 and 4 more would repeat rank 0; "
                             "shard a value over it\n"),
            std::string::npos);
}

TEST(Names, ARecipeThatMeetsNothingIsNotProposed) {
  NameTable names = gpt2();
  names.parameters = {{"fc1.weight", {}, {64, 256}, "f32", true, ""}};
  EXPECT_NE(check("mesh: {tp: 2}\n", names).errors.find("so rank 1 would repeat rank 0; shard a value over it\n"),
            std::string::npos);
}

TEST(Names, ALossThatIsNeitherAKindNorAnOutput) {
  EXPECT_NE(check("train: {loss: crossentropy}\n")
                .errors.find("plan.yaml:1:15: error: train.loss is \"crossentropy\", which is neither an output of "
                             "the model nor cross_entropy, bce, mse or l1; did you mean \"cross_entropy\"?\n"),
            std::string::npos);
  EXPECT_NE(check("train: {loss: logit}\n").errors.find("; did you mean \"logits\"?\n"), std::string::npos);
  EXPECT_NE(check("train: {loss: hinge}\n").errors.find("nor cross_entropy, bce, mse or l1\n"), std::string::npos);
  EXPECT_EQ(check("train: {loss: logits}\n").errors, "");
}

/// The sequence is dim 0 of all inputs, the batch dim 1.
static NameTable sequenceFirst(const std::string &batch) {
  NameTable names = gpt2();
  names.inputs = {{"lengths", {"2"}, "i64"}, {"input_ids", {"5", batch}, "i64"}};
  names.symbols = {"batch"};
  return names;
}

TEST(Names, TheBatchIsAnotherDim) {
  EXPECT_NE(
      check("batch: 8\n", sequenceFirst("batch"))
          .errors.find(
              "plan.yaml:1:8: error: batch.size is 8, and the model was exported for a batch of 2; par.export with "
              "dynamic leaves its size to the plan; \"input_ids\" has \"batch\" in dim 1: say batch.dim: batch if "
              "that is the batch\n"),
      std::string::npos);
  EXPECT_NE(
      check("batch: 8\n", sequenceFirst("4")).errors.find("; if another dim is the batch, say which: batch.dim\n"),
      std::string::npos);
  // Each way to say it.
  for (const char *said :
       {"batch: {size: 8, dim: batch}\n", "batch: 8\ninputs: {lengths: {batch: none}, input_ids: {batch: 1}}\n",
        "batch: 8\ninputs: {lengths: {batch: none}, input_ids: {batch: -1}}\n"}) {
    Outcome outcome = check(said, sequenceFirst("batch"));
    EXPECT_EQ(outcome.errors, "") << said;
    ASSERT_TRUE(outcome.plan) << said;
    EXPECT_EQ(outcome.plan->dims.size(), 1u) << said;
    EXPECT_EQ(outcome.plan->batch.size->value_or(0), 8) << said;
  }
  Outcome fixed = check("inputs: {lengths: {batch: none}, input_ids: {batch: 1}}\n", sequenceFirst("4"));
  EXPECT_EQ(fixed.plan->batch.size->value_or(0), 4);
}

TEST(Names, Error5OfAModelWithAFixedBatch) {
  NameTable names = gpt2();
  names.inputs[0].shape[0] = "30";
  EXPECT_NE(
      check("mesh: {dp: 4}\nbatch: {microbatches: 8}\n", names)
          .errors.find("plan.yaml:2:23: error: batch of 30 does not split into 8 microbatches x 4 ranks of \"dp\"; "
                       "the nearest sizes are 32 and 64\n"),
      std::string::npos);
  // Nothing of the plan is to blame: the model is named.
  EXPECT_NE(check("mesh: {dp: 4}\n", names).errors.find("gpt2.onnx: error: batch of 30 does not split"),
            std::string::npos);
  EXPECT_NE(check("batch: 16\n", names)
                .errors.find("plan.yaml:1:8: error: batch.size is 16, and the model was exported for a batch of 30"
                             "; par.export with dynamic leaves its size to the plan"),
            std::string::npos);
  EXPECT_NE(check("batch: 16\ndims: {batch: 4}\n", gpt2())
                .errors.find("plan.yaml:1:8: error: batch.size is 16, and dims.batch, which is the batch too, is 4\n"),
            std::string::npos);
}

TEST(Names, ShardsOutsideTheTensor) {
  std::string errors = check("mesh: {tp: 2, big: 512}\nbatch: {over: big}\nshard:\n  mlp.c_fc.weight: {2: tp}\n"
                             "  mlp.c_fc.bias: {0: big}\n  attn.c_attn.weight: {0: tp}\n")
                           .errors;
  EXPECT_NE(
      errors.find(
          "plan.yaml:4:24: error: transformer.h.0.mlp.c_fc.weight (and 1 more) has 2 dims, so there is no dim 2\n"),
      std::string::npos);
  EXPECT_NE(
      errors.find("plan.yaml:5:22: error: dim 0 of transformer.h.0.mlp.c_fc.bias (and 1 more) is 256, smaller than 512 "
                  "(axis \"big\")\n"),
      std::string::npos);
}

// A rule may not name one dim by both of its numbers: one of the two settings was dropped in silence.
TEST(Names, ShardsOfOneDimUnderTwoNumbers) {
  std::string errors = check("mesh: {a: 2, b: 2}\nshard:\n  h.0.mlp.c_fc.weight: {0: a, -2: a}\n"
                             "  h.1.mlp.c_fc.weight: {1: a, -1: b}\n  out(mlp): {0: a, -0: b}\n")
                           .errors;
  EXPECT_NE(
      errors.find("plan.yaml:3:35: error: transformer.h.0.mlp.c_fc.weight takes all axes of a dim in one list, found "
                  "0 and -2, which are one dim\n"),
      std::string::npos)
      << errors;
  EXPECT_NE(
      errors.find("plan.yaml:4:35: error: transformer.h.1.mlp.c_fc.weight takes all axes of a dim in one list, found "
                  "1 and -1, which are one dim\n"),
      std::string::npos)
      << errors;
  EXPECT_NE(errors.find("plan.yaml:5:24: error: "), std::string::npos) << errors;
  EXPECT_NE(errors.find("found 0 and 0, which are one dim"), std::string::npos) << errors;
}

TEST(Names, UnknownSymbols) {
  EXPECT_NE(check("dims: {sequence: 128}\n")
                .errors.find("plan.yaml:1:18: error: the model has no symbolic dim \"sequence\"; it has batch, seq\n"),
            std::string::npos);
}

TEST(Names, LaterRulesOverrideDimByDim) {
  Outcome outcome = check("mesh: {a: 2, b: 2}\nshard:\n  c_fc.weight: {0: a, 1: b}\n  h.1.mlp.c_fc.weight: {-1: none}\n"
                          "  out(mlp): {1: a}\n");
  EXPECT_EQ(outcome.errors, "");
  ASSERT_EQ(outcome.shards.size(), 4u);
  EXPECT_EQ(*outcome.shards[0].dims[1].second, PlanAxes{"b"});
  EXPECT_TRUE(outcome.shards[1].dims[1].second->empty());
  EXPECT_EQ(outcome.shards[2].kind, ResolvedShard::ModuleOutput);
}

TEST(Names, TiedWeightsAnswerToAllNames) {
  Outcome outcome = check("mesh: {tp: 2}\nshard: {lm_head.weight: {0: tp}}\n");
  EXPECT_EQ(outcome.errors, "");
  ASSERT_EQ(outcome.shards.size(), 1u);
  EXPECT_EQ(outcome.shards[0].index, 0u);
}

TEST(Names, FreezeAndOnly) {
  NameTable names = gpt2();
  PlanErrors errors;
  Outcome outcome = check("train: {freeze: [bias]}\n");
  std::vector<bool> trained = resolveTrained(*outcome.plan, names, errors);
  EXPECT_EQ(std::count(trained.begin(), trained.end(), true), 5);
  outcome = check("train: {only: [wte.weight]}\n");
  trained = resolveTrained(*outcome.plan, names, errors);
  EXPECT_EQ(std::count(trained.begin(), trained.end(), true), 1);
  outcome = check("train: {only: [h.0.mlp]}\n");
  trained = resolveTrained(*outcome.plan, names, errors);
  EXPECT_EQ(std::count(trained.begin(), trained.end(), true), 2);
  outcome = check("{}\n");
  trained = resolveTrained(*outcome.plan, names, errors);
  EXPECT_EQ(std::count(trained.begin(), trained.end(), true), 0);
}

TEST(Names, MegatronShardsGpt2AndRefusesOthers) {
  Outcome outcome = check("use: [megatron]\nmesh: {tp: 2}\n");
  EXPECT_EQ(outcome.errors, "");
  EXPECT_EQ(outcome.shards.size(), 7u);
  NameTable mlp;
  mlp.parameters.push_back({"fc1.weight", {}, {64, 32}, "f32", true, ""});
  std::string errors = check("use: [megatron]\nmesh: {tp: 2}\n", mlp).errors;
  EXPECT_NE(errors.find("plan.yaml:1:7: error: recipe \"megatron\" matches no parameter of this model"
                        "; give its names (--list=params) rules under shard\n"),
            std::string::npos)
      << errors;
  // That tp shards nothing follows from it; of another axis it is a mistake of its own.
  EXPECT_EQ(errors.find("shards nothing"), std::string::npos) << errors;
  errors = check("use: [megatron]\nmesh: {tp: 2, cp: 2}\n", mlp).errors;
  EXPECT_NE(errors.find("error: axis \"cp\" (size 2) shards nothing"), std::string::npos) << errors;
}

TEST(Names, TheBatchSymbolGetsItsSize) {
  Outcome outcome = check("mesh: {dp: 2, pp: 2}\nbatch: {microbatch_size: 3}\ntrain: {}\ndims: {seq: 8}\n");
  EXPECT_EQ(outcome.errors, "");
  // With a pipeline of p stages the default is 4p microbatches.
  EXPECT_EQ(**outcome.plan->batch.microbatches, 8);
  EXPECT_EQ(**outcome.plan->batch.size, 48);
  EXPECT_EQ(outcome.plan->dims.back().first, "batch");
  EXPECT_EQ(*outcome.plan->dims.back().second, 48);
  // With a given size it is the largest divisor up to 4p.
  EXPECT_EQ(**check("mesh: {dp: 2, pp: 2}\nbatch: 12\n").plan->batch.microbatches, 6);
  EXPECT_EQ(**check("mesh: {dp: 2}\nbatch: 12\n").plan->batch.microbatches, 1);
}

TEST(Names, TheHashLeavesOutWhatMayChangeWhileRunning) {
  std::string text = check("train: {optimizer: {lr: 1}, clip: 1.0}\nseed: 1\n").plan->hashText();
  EXPECT_EQ(text, check("train: {optimizer: {lr: {peak: 2, warmup: 5}}}\nseed: 2\n").plan->hashText());
  EXPECT_NE(text, check("train: {optimizer: sgd}\n").plan->hashText());
  // The kind of clipping may not change.
  std::string value = check("train: {clip: {value: 2}}\n").plan->hashText();
  EXPECT_NE(text, value);
  EXPECT_EQ(value, check("train: {clip: {value: 3}}\n").plan->hashText());
}
