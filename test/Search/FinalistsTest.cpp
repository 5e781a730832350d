// Which estimated candidates a search compiles: lib/Search/Finalists.h.
#include "../../lib/Search/Finalists.h"

#include "gtest/gtest.h"

using namespace par;

static SearchedPlan planOf(int64_t data, int64_t zero, int64_t ns) {
  SearchedPlan plan;
  plan.candidate.data = data;
  plan.candidate.zero = zero;
  plan.estimate.stepNs = ns;
  return plan;
}

static Estimate playedIn(int64_t ns) {
  Estimate played;
  played.stepNs = ns;
  played.fits = true;
  return played;
}

static Estimate tooLarge(int64_t peak) {
  Estimate played;
  played.peak = peak;
  return played;
}

/// The order in which all are tried if each takes so many times its estimate as `factor` has for its dp.
static std::vector<size_t> orderOf(const std::vector<SearchedPlan> &plans, bool eachGroup,
                                   llvm::function_ref<double(int64_t)> factor, bool must = false) {
  Finalists finalists(plans, eachGroup);
  std::vector<size_t> order;
  while (std::optional<size_t> index = finalists.next(must)) {
    order.push_back(*index);
    const SearchedPlan &plan = plans[*index];
    finalists.note(*index, playedIn(static_cast<int64_t>(factor(plan.candidate.data) * double(plan.estimate.stepNs))));
  }
  return order;
}

static std::vector<SearchedPlan> twoMeshes() {
  return {planOf(4, 0, 100), planOf(4, 1, 101), planOf(4, 2, 102), planOf(2, 0, 140), planOf(2, 1, 141)};
}

TEST(Finalists, AnOptimisticGroupDoesNotHideAnother) {
  // dp 4 takes 1.7 times its estimate: the first of dp 2 is tried second, and is the fastest.
  auto factor = [](int64_t data) { return data == 4 ? 1.7 : 1.0; };
  EXPECT_EQ(orderOf(twoMeshes(), true, factor), (std::vector<size_t>{0, 3}));
}

TEST(Finalists, WithoutGroupsEstimatesDecideUntilATrialCorrectsThem) {
  auto factor = [](int64_t data) { return data == 4 ? 1.7 : 1.0; };
  EXPECT_EQ(orderOf(twoMeshes(), false, factor), (std::vector<size_t>{0, 3}));
  auto exact = [](int64_t) { return 1.0; };
  EXPECT_EQ(orderOf(twoMeshes(), false, exact), (std::vector<size_t>{0}));
  EXPECT_EQ(orderOf(twoMeshes(), false, exact, /*must=*/true), (std::vector<size_t>{0, 1, 2, 3, 4}));
}

TEST(Finalists, DoubtGoesOnWithPlansThatAreExpectedSlower) {
  // dp 4 takes 1.7 times its estimate but for its third plan, which takes half.
  std::vector<SearchedPlan> plans = twoMeshes();
  for (double doubt : {1.0, 1.3}) {
    Finalists finalists(plans, /*eachGroup=*/true, doubt);
    std::vector<size_t> order;
    while (std::optional<size_t> index = finalists.next(/*must=*/false)) {
      order.push_back(*index);
      const SearchedPlan &plan = plans[*index];
      double factor = *index == 2 ? 0.5 : plan.candidate.data == 4 ? 1.7 : 1.0;
      finalists.note(*index, playedIn(static_cast<int64_t>(factor * double(plan.estimate.stepNs))));
    }
    EXPECT_EQ(order, doubt > 1 ? (std::vector<size_t>{0, 3, 4, 1, 2}) : (std::vector<size_t>{0, 3}));
  }
}

TEST(Finalists, AGroupThatDoesNotCompileIsTriedLast) {
  std::vector<SearchedPlan> plans = twoMeshes();
  Finalists finalists(plans, /*eachGroup=*/false);
  EXPECT_EQ(finalists.next(true), 0u);
  finalists.note(0, std::nullopt);
  EXPECT_EQ(finalists.misfits(), 1u);
  EXPECT_EQ(finalists.next(true), 3u); // not 1, which is estimated faster
  finalists.note(3, playedIn(140));
  EXPECT_EQ(finalists.next(true), 4u);
  EXPECT_EQ(finalists.next(true), 1u);                     // nothing else is left
  std::vector<SearchedPlan> untried = finalists.untried(); // 0 was refused, 3 was played
  ASSERT_EQ(untried.size(), 3u);
  EXPECT_EQ(untried[0].estimate.stepNs, 101);
  EXPECT_EQ(untried[2].estimate.stepNs, 141);
}

TEST(Finalists, AGroupFarBehindIsNotTried) {
  std::vector<SearchedPlan> plans{planOf(4, 0, 100), planOf(2, 0, 201)};
  EXPECT_EQ(orderOf(plans, true, [](int64_t) { return 1.5; }), (std::vector<size_t>{0}));
  plans[1].estimate.stepNs = 200;
  EXPECT_EQ(orderOf(plans, true, [](int64_t) { return 1.5; }), (std::vector<size_t>{0, 1}));
}

/// A pipeline's estimate: bytes where nothing is recomputed, and where all is.
static SearchedPlan stagesOf(const char *schedule, int64_t stages, int64_t ns, int64_t peak, int64_t least) {
  SearchedPlan plan = planOf(1, 0, ns);
  plan.candidate.stages = stages;
  plan.candidate.schedule = schedule;
  plan.estimate.peak = peak;
  plan.estimate.least = least;
  return plan;
}

TEST(Finalists, AMisfitsScheduleIsTriedLastButForPlansThatNeedLittle) {
  // Llama 405B on 16,384 ranks: zb-h1 takes 92 where 39 were estimated, and all of zb-h1 were tried, then offloading.
  std::vector<SearchedPlan> plans{stagesOf("zb-h1", 64, 100, 39, 12), stagesOf("zb-h1", 32, 101, 45, 14),
                                  stagesOf("zb-h1", 16, 102, 30, 10), stagesOf("1f1b", 64, 103, 39, 12)};
  Finalists finalists(plans, /*eachGroup=*/false, /*doubt=*/1, /*limit=*/78);
  EXPECT_EQ(finalists.next(true), 0u);
  finalists.note(0, tooLarge(92));
  EXPECT_EQ(finalists.next(true), 2u); // 10 of 12 times 92 are below 78, 14 of 12 times are not
  finalists.note(2, tooLarge(79));
  EXPECT_EQ(finalists.next(true), 3u);
  finalists.note(3, playedIn(110));
  EXPECT_TRUE(finalists.untried().empty()); // no plan is told as faster that is not expected to fit
  EXPECT_EQ(finalists.next(true), 1u);
  EXPECT_EQ(finalists.misfits(), 2u);
}

TEST(Finalists, EachMisfitInARowAsksForMoreRoom) {
  // Estimates of four kinds, each too low by a half: the fifth is tried before the fourth, which is faster.
  std::vector<SearchedPlan> plans{stagesOf("a", 2, 100, 70, 40), stagesOf("b", 2, 101, 70, 40),
                                  stagesOf("c", 2, 102, 70, 40), stagesOf("d", 2, 103, 70, 40),
                                  stagesOf("e", 2, 104, 50, 20)};
  Finalists finalists(plans, /*eachGroup=*/false, /*doubt=*/1, /*limit=*/78);
  std::vector<size_t> order;
  for (int64_t trial = 0; trial < 4; ++trial) {
    order.push_back(*finalists.next(true));
    finalists.note(order.back(), tooLarge(105));
  }
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 4})); // 40 x 1.5 x 1.25 is below 78, 40 x 1.5 x 1.5 is not
}

TEST(Finalists, DoubtTriesPlansThatAreEstimatedTooLarge) {
  // Only the third one is estimated to fit; none is known to, so those of fewest bytes come first, then the faster.
  std::vector<SearchedPlan> plans{stagesOf("a", 2, 100, 90, 90), stagesOf("a", 2, 101, 80, 80),
                                  stagesOf("a", 2, 120, 70, 40), stagesOf("a", 2, 400, 70, 40)};
  plans[2].estimate.fits = plans[3].estimate.fits = true;
  Finalists finalists(plans, /*eachGroup=*/false, /*doubt=*/1.5, /*limit=*/78);
  EXPECT_EQ(finalists.next(false), 2u);
  finalists.note(2, tooLarge(79));
  EXPECT_EQ(finalists.next(false), 3u); // of 40 bytes
  finalists.note(3, playedIn(400));
  EXPECT_EQ(finalists.next(false), 0u);
  finalists.note(0, playedIn(110));
  EXPECT_EQ(finalists.next(false), 1u);
  finalists.note(1, playedIn(300));
  EXPECT_FALSE(finalists.next(false));
}

TEST(Finalists, EstimatesAreBelievedWithoutALimit) {
  std::vector<SearchedPlan> plans{stagesOf("a", 2, 100, 70, 40), stagesOf("b", 2, 101, 70, 40)};
  Finalists finalists(plans, /*eachGroup=*/false);
  EXPECT_EQ(finalists.next(true), 0u);
  finalists.note(0, std::nullopt);
  EXPECT_EQ(finalists.next(true), 1u);
}
