// A compilation that starts from an earlier one gives the bundle of one that starts from nothing.
#include "par/Compiler/Compiler.h"

#include "par/format/Bundle.h"

#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

using namespace par;

namespace {

const std::string models = PAR_SOURCE_DIR "/test/Models/";

struct SilentObserver : CompileObserver {
  std::vector<std::string> steps;
  void begins(const char *step, const Compiled &, const Phase *) override { steps.push_back(step); }
};

std::vector<std::string> errors;
void keepError(const CompileDiagnostic &finding) { errors.push_back(finding.message); }

PlannedModel plan(const std::shared_ptr<const Model> &model, std::vector<std::string> settings) {
  std::optional<PlannedModel> planned = planModel(model, {{}, std::move(settings)}, {}, keepError);
  EXPECT_TRUE(planned) << (errors.empty() ? "" : errors.back());
  return std::move(*planned);
}

/// The hash of all files that are written of a bundle.
std::string hashOf(const Compiled &compiled) {
  llvm::SmallString<64> folder;
  EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("par-compile-test", folder));
  auto manifest = format::writeBundle(folder.str().str(), *compiled.bundle);
  EXPECT_TRUE(manifest) << manifest.message();
  EXPECT_FALSE(llvm::sys::fs::remove_directories(folder));
  return manifest->bundleHash;
}

const std::vector<std::string> base = {"train={}", "mesh={dp: 2}", "batch.microbatches=2"};
CompilerOptions keepsAll() {
  CompilerOptions options;
  for (llvm::StringRef phase : phaseNames())
    options.keep.push_back(phase.str());
  return options;
}

class CompileAgain : public testing::TestWithParam<std::tuple<std::string, unsigned>> {};

TEST_P(CompileAgain, GivesTheSameBundle) {
  auto [setting, reused] = GetParam();
  std::shared_ptr<const Model> model = readModel(models + "mlp/model.onnx", keepError);
  ASSERT_TRUE(model);
  SilentObserver observer;
  Compiled first = compile(plan(model, base), keepsAll(), observer);
  std::vector<std::string> settings = base;
  settings.push_back(setting);
  Compiled fresh = compile(plan(model, settings), {}, observer);
  Compiled again = compile(plan(model, settings), {}, observer, &first);
  ASSERT_FALSE(fresh.failed || again.failed);
  EXPECT_EQ(again.reused, reused);
  EXPECT_EQ(hashOf(again), hashOf(fresh));
  EXPECT_NE(hashOf(again), hashOf(first));
  EXPECT_GT(again.kernels.reused, 0u);
}

// The phases: import, annotate, train, split, propagate, partition, recompute, decompose, schedule, kernels,
// collectives, memory.
INSTANTIATE_TEST_SUITE_P(Settings, CompileAgain,
                         testing::Values(std::tuple("seed=0", 0u), std::tuple("zero.level=3", 4u),
                                         std::tuple("zero={level: 3, min_size: 0}", 4u),
                                         std::tuple("recompute=full", 6u), std::tuple("collectives.decompose=none", 7u),
                                         std::tuple("collectives.bucket=1KiB", 10u),
                                         std::tuple("offload=[states]", 11u), std::tuple("mesh.dp=4", 0u),
                                         std::tuple("precision=bf16", 0u), std::tuple("batch.microbatches=4", 0u)));

// Stages are balanced by whether forward is recomputed.
TEST(Compile, StartsBeforeStagesAreCutWhereTheyDependOnIt) {
  std::shared_ptr<const Model> model = readModel(models + "mlp/model.onnx", keepError);
  std::vector<std::string> settings = {"train={}", "mesh={pp: 2}", "batch.microbatches=2"};
  SilentObserver observer;
  Compiled first = compile(plan(model, settings), keepsAll(), observer);
  settings.push_back("recompute=full");
  Compiled again = compile(plan(model, settings), {}, observer, &first);
  EXPECT_EQ(again.reused, 1u);
  EXPECT_EQ(hashOf(again), hashOf(compile(plan(model, settings), {}, observer)));
}

TEST(Compile, TakesNothingOfAnotherModel) {
  SilentObserver observer;
  Compiled first = compile(plan(readModel(models + "mlp/model.onnx", keepError), base), keepsAll(), observer);
  Compiled other = compile(plan(readModel(models + "mlp/model.legacy.onnx", keepError), base), {}, observer, &first);
  EXPECT_EQ(other.reused, 0u);
  EXPECT_FALSE(other.failed);
}

TEST(Compile, StopsAndKeepsModules) {
  std::shared_ptr<const Model> model = readModel(models + "mlp/model.onnx", keepError);
  SilentObserver observer;
  CompilerOptions options;
  options.until = "split";
  options.keep = {"annotate"};
  Compiled compiled = compile(plan(model, base), options, observer);
  EXPECT_EQ(observer.steps, (std::vector<std::string>{"import", "annotate", "train", "split"}));
  EXPECT_FALSE(compiled.failed || compiled.bundle);
  EXPECT_EQ(compiled.modules.size(), 1u);
  EXPECT_TRUE(compiled.modules.count("annotate"));
  EXPECT_TRUE(bool(compiled.module));
}

TEST(Compile, DiagnosticsAreData) {
  std::shared_ptr<const Model> model = readModel(models + "mlp/model.onnx", keepError);
  SilentObserver observer;
  Compiled compiled = compile(plan(model, {"train={}", "target={isa: z80}"}), {}, observer);
  EXPECT_TRUE(compiled.failed);
  ASSERT_EQ(compiled.findings.size(), 1u);
  EXPECT_EQ(compiled.findings.front().message, "no x86-64 processor or level is called z80; target.isa takes native, "
                                               "x86-64-v2 to v4, or LLVM's name of a processor");
}

} // namespace
