// The bound of each plan of random small spaces is not above its step, where each plan is compiled and played.
#include "par/Search/Search.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <random>

using namespace par;

namespace {

/// A machine in a file of its own.
class DrawnMachine {
public:
  explicit DrawnMachine(std::mt19937 &random) {
    auto oneOf = [&](std::initializer_list<int> choices) { return choices.begin()[random() % choices.size()]; };
    const char *text = "name: drawn\npeak: {{f32: {0}, f64: {0}, bf16: {1}}\nmemory: {2}\nlaunch: {3}\noverlap: {4}\n"
                       "kernels: {{flops: {0}, overhead: 0}\nlevels:\n"
                       "  - {{name: node, ranks: {5}, link: {6}, latency: {7}, share: {8}}\n"
                       "  - {{name: fabric, link: {9}, latency: {10}}\n";
    int fd;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("drawn", "yaml", fd, path));
    llvm::raw_fd_ostream file(fd, /*shouldClose=*/true);
    int peak = oneOf({100'000, 1'000'000, 10'000'000});
    file << llvm::formatv(text, peak, 4 * peak, oneOf({10'000, 100'000, 1'000'000}), oneOf({0, 500, 5000}),
                          random() % 4 ? "true" : "false", oneOf({2, 4}), oneOf({100, 1000, 10'000}),
                          oneOf({0, 1000, 20'000}), oneOf({0, 100, 300}), oneOf({10, 100, 1000}),
                          oneOf({1000, 50'000}));
  }
  ~DrawnMachine() { llvm::sys::fs::remove(path); }
  std::string setting() const { return "target=" + path.str().str(); }

private:
  llvm::SmallString<64> path;
};

/// The plans that were played of a space whose mesh is said, and how far the nearest bound is from its step.
struct Bounded {
  size_t plans = 0;
  size_t recomputing = 0; ///< of them
  double nearest = 1e9;
};

/// Settings of the machine and of what the bound depends on.
std::vector<std::string> drawSettings(const DrawnMachine &machine, std::mt19937 &random) {
  return {"train={}", machine.setting(), random() % 2 ? "precision=bf16" : "precision=f32",
          random() % 3 ? "collectives.overlap=true" : "collectives.overlap=false",
          random() % 2 ? "collectives.bucket=2048" : "collectives.bucket=1048576"};
}

std::vector<SearchedPlan> playAll(const std::shared_ptr<const Model> &model, const std::vector<std::string> &settings,
                                  int64_t ranks) {
  SearchOptions options;
  options.ranks = ranks;
  options.nodes = 1'000'000; // each plan is compiled
  std::string error;
  auto keep = [&](const CompileDiagnostic &finding) { error = finding.warning ? error : finding.message; };
  std::optional<SearchResult> found = searchPlans(model, {{}, settings}, options, keep);
  EXPECT_TRUE(found) << error;
  return found ? found->plans : std::vector<SearchedPlan>();
}

/// `limit`: each rank has so many percent of the bytes that the plan which needs fewest takes, if any.
Bounded checkSpace(const std::string &file, std::vector<std::string> settings, int64_t ranks, std::mt19937 &random,
                   int64_t limit = 0) {
  std::string error;
  auto keep = [&](const CompileDiagnostic &finding) { error = finding.warning ? error : finding.message; };
  std::shared_ptr<const Model> model = readModel(PAR_SOURCE_DIR "/test/Models/" + file, keep);
  if (!model) {
    ADD_FAILURE() << error;
    return {};
  }
  DrawnMachine machine(random);
  for (std::string setting : drawSettings(machine, random))
    settings.push_back(std::move(setting));
  std::vector<SearchedPlan> plans = playAll(model, settings, ranks);
  if (limit > 0) {
    int64_t least = INT64_MAX;
    for (const SearchedPlan &plan : plans)
      least = std::min(least, plan.known().peak);
    settings.push_back("target.memory=" + std::to_string(least * limit / 100));
    plans = playAll(model, settings, ranks);
  }
  Bounded out;
  for (const SearchedPlan &plan : plans) {
    if (!plan.played)
      continue;
    ++out.plans;
    EXPECT_LE(plan.boundNs, plan.played->stepNs)
        << describeCandidate(plan.candidate) << ", " << llvm::join(settings, ", ");
    out.recomputing += plan.played->recomputes;
    out.nearest = std::min(out.nearest, double(plan.played->stepNs) / double(std::max<int64_t>(1, plan.boundNs)));
  }
  return out;
}

const char *const meshes[] = {"mesh={dp: 4}", "mesh={pp: 2, dp: 2}", "mesh={pp: 4}", "mesh={dp: 2, tp: 2}",
                              "mesh={pp: 2, tp: 2}"};

} // namespace

/// 10 spaces, each mesh twice; the seed is 17.
TEST(PlayedBound, IsBelowEachPlanWithoutLayers) {
  std::mt19937 random(17);
  Bounded all;
  for (int space = 0; space < 10; ++space) {
    Bounded own = checkSpace("mlp/model.onnx", {meshes[space % 5]}, 4, random);
    all = {all.plans + own.plans, 0, std::min(all.nearest, own.nearest)};
  }
  EXPECT_GE(all.plans, 60u);
  EXPECT_LT(all.nearest, 1.1);
}

/// Equal layers, whose profiles are those of one and two of them, and a table; the seed is 19.
TEST(PlayedBound, IsBelowEachPlanOfLayers) {
  std::mt19937 random(19);
  size_t plans = 0;
  for (const char *microbatches : {"batch.microbatches=1", "batch.microbatches=2"})
    plans += checkSpace("gpt2/model.onnx", {"mesh={dp: 2}", microbatches}, 2, random).plans;
  EXPECT_GE(plans, 7u); // zero 0, 1 and 3, and 2 with two microbatches
}

/// Limits of memory make plans recompute, which the bound counts; the seed is 23.
TEST(PlayedBound, IsBelowEachPlanThatRecomputes) {
  std::mt19937 random(23);
  Bounded all;
  for (const char *mesh : {"mesh={dp: 2}", "mesh={tp: 2}"}) {
    Bounded own = checkSpace("gpt2/model.onnx", {mesh, "batch.microbatches=2"}, 2, random, 85);
    all = {all.plans + own.plans, all.recomputing + own.recomputing, std::min(all.nearest, own.nearest)};
  }
  EXPECT_GE(all.recomputing, 2u);
  EXPECT_LT(all.nearest, 1.1);
}
