// The fewest ranks that a search finds from layers are those of compiling every plan for each number of ranks.
#include "par/Search/Search.h"

#include "gtest/gtest.h"

#include <set>

using namespace par;

namespace {

std::shared_ptr<const Model> modelOf(const std::string &name) {
  return readModel(PAR_SOURCE_DIR "/test/Models/" + name + "/model.onnx", [](const CompileDiagnostic &) {});
}

SearchResult search(const std::shared_ptr<const Model> &model, const std::vector<std::string> &settings,
                    const SearchOptions &options) {
  std::string error;
  auto found =
      searchPlans(model, {{}, settings}, options, [&](const CompileDiagnostic &finding) { error = finding.message; });
  EXPECT_TRUE(found) << error;
  return found ? std::move(*found) : SearchResult();
}

/// Every plan is compiled.
SearchResult searchAll(const std::shared_ptr<const Model> &model, const std::vector<std::string> &settings,
                       int64_t ranks) {
  SearchOptions options;
  options.ranks = ranks;
  options.nodes = 1'000'000;
  return search(model, settings, options);
}

bool fitsOn(const SearchResult &found) { return !found.plans.empty() && !found.plans.front().candidate.offloads; }

/// For limits around what one rank needs: `counts` are those that may be fewer than `ranks`.
void checkFewest(const std::string &name, std::vector<std::string> settings, int64_t ranks,
                 const std::vector<int64_t> &counts, const std::vector<int64_t> &percents) {
  std::shared_ptr<const Model> model = modelOf(name);
  ASSERT_TRUE(model);
  settings.push_back("train={}");
  settings.push_back("target=h100-sxm");
  SearchResult alone = searchAll(model, settings, 1);
  ASSERT_FALSE(alone.plans.empty());
  int64_t whole = INT64_MAX;
  for (const SearchedPlan &plan : alone.plans)
    whole = std::min(whole, plan.known().peak);
  std::set<int64_t> answers;
  for (int64_t percent : percents) {
    std::vector<std::string> limited = settings;
    limited.push_back("target.memory=" + std::to_string(whole * percent / 100));
    int64_t fewest = 0;
    for (int64_t count : counts)
      if (fitsOn(searchAll(model, limited, count))) {
        fewest = count;
        break;
      }
    SearchOptions options;
    options.ranks = ranks;
    options.findsFewest = true;
    SearchResult found = search(model, limited, options);
    EXPECT_TRUE(fewest == 0 || fitsOn(found)) << name << " at " << percent << " %: " << fewest << " fit";
    if (!fitsOn(found))
      continue;
    fewest = fewest ? fewest : ranks;
    ASSERT_TRUE(found.fewest);
    EXPECT_EQ(found.fewest->ranks, fewest) << name << " at " << percent << " %";
    EXPECT_LE(found.fewest->plan.known().peak, whole * percent / 100);
    answers.insert(fewest);
  }
  EXPECT_GE(answers.size(), 2u) << name; // limits that tell counts apart
}

} // namespace

TEST(Fewest, AreThoseOfCompilingEachPlan) { checkFewest("mlp", {"batch.microbatches=2"}, 8, {1, 2, 4}, {60, 130}); }

TEST(Fewest, NeedNotBePowersOfTwo) { checkFewest("mlp", {"batch.microbatches=2"}, 6, {1, 2, 3, 4}, {55, 130}); }

TEST(Fewest, OfEqualLayersRecompute) { checkFewest("gpt2", {"batch.microbatches=2", "zero=3"}, 4, {1, 2}, {70, 85}); }
