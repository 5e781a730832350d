#include "par/Plan/Schema.h"
#include "par/Solver/OrderTable.h"

#include "llvm/ADT/StringSet.h"

#include <gtest/gtest.h>

using namespace par;

static OrderTableProblem makeProblem(llvm::StringRef schedule, unsigned stages, unsigned microbatches) {
  OrderTableProblem problem;
  problem.schedule = schedule.str();
  problem.stages = stages;
  problem.microbatches = microbatches;
  problem.forward.assign(stages, 100);
  problem.backward.assign(stages, 200);
  return problem;
}

// A second schedule of one name would never be found, and a plan says the names of all.
TEST(Schedules, EachHasOneName) {
  llvm::StringSet<> names;
  for (const Schedule &schedule : getSchedules()) {
    EXPECT_TRUE(names.insert(schedule.name).second) << schedule.name.str() << " is in the table twice";
    EXPECT_TRUE(llvm::is_contained(planWords("pipeline.schedule"), schedule.name))
        << schedule.name.str() << " is no word of pipeline.schedule in lib/Plan/Schema.cpp";
  }
  EXPECT_EQ(names.size(), planWords("pipeline.schedule").size());
}

// Equal stages and free links: every schedule of the table has the bubble (p-1)/(m+p-1), exactly.
TEST(OrderTable, BubbleHasItsClosedForm) {
  for (const Schedule &schedule : getSchedules())
    for (unsigned p = 1; p <= 8; ++p)
      for (unsigned m = 1; m <= 12; ++m) {
        auto problem = makeProblem(schedule.name, p, m);
        auto table = problem.solve();
        ASSERT_TRUE(bool(table));
        EXPECT_EQ(llvm::toString(problem.verify(*table)), "");
        EXPECT_EQ(table->makespan, 300 * (m + p - 1)) << schedule.name.str() << " p=" << p << " m=" << m;
      }
}

TEST(OrderTable, InFlight) {
  for (unsigned p = 1; p <= 8; ++p)
    for (unsigned m = 1; m <= 12; ++m)
      for (unsigned s = 0; s < p; ++s) {
        EXPECT_EQ(makeProblem("1f1b", p, m).solve()->stages[s].inFlight, std::min(m, p - s));
        EXPECT_EQ(makeProblem("gpipe", p, m).solve()->stages[s].inFlight, m);
      }
}

TEST(OrderTable, VerifyRefusesWrongTables) {
  auto problem = makeProblem("1f1b", 2, 3);
  auto refused = [&](auto change) {
    OrderTable table = *problem.solve();
    change(table);
    return llvm::toString(problem.verify(table));
  };
  EXPECT_EQ(refused([](OrderTable &t) { t.stages.pop_back(); }), "the table has 1 stages, expected 2");
  EXPECT_EQ(refused([](OrderTable &t) { t.stages[0].slots.pop_back(); }),
            "stage 0 runs 3 forwards and 2 backwards of 3 microbatches");
  EXPECT_EQ(refused([](OrderTable &t) { std::swap(t.stages[0].slots[0], t.stages[0].slots[1]); }),
            "stage 0 runs F1 where F0 is next");
  EXPECT_EQ(refused([](OrderTable &t) { t.stages[1].slots.back().last = false; }),
            "stage 1 marks the wrong backward as last: B2");
  EXPECT_EQ(refused([](OrderTable &t) { t.stages[0].inFlight = 1; }),
            "stage 0 has 2 microbatches in flight, not 1");
  // Stage 1 wants its first backward before its first forward.
  EXPECT_EQ(refused([](OrderTable &t) {
              std::swap(t.stages[1].slots[0], t.stages[1].slots[1]);
              t.stages[1].inFlight = 1;
            }),
            "the orders deadlock: stage 0 waits in B0");
  EXPECT_EQ(refused([](OrderTable &t) { t.makespan += 1; }), "the orders take 1200 ns, not 1201");
}

TEST(OrderTable, PrintsWhatItParses) {
  auto problem = makeProblem("gpipe", 3, 5);
  problem.forward = {1, 2, 3};
  problem.transfer = 7;
  std::string text, again;
  llvm::raw_string_ostream os(text), osAgain(again);
  problem.print(os);
  ProblemText reader(text);
  OrderTableProblem::parse(reader)->print(osAgain);
  EXPECT_EQ(text, again);
}
