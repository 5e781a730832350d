#include "par/Solver/Order/GlobalOrder.h"
#include "par/Solver/Order/OrderTable.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace par;

/// Tasks of 2 to 6 stages of 1 or 2 ranks, any DAG of runs, a communication before each use of another stage's
/// run.
static GlobalOrderProblem randomOrder(std::mt19937 &random) {
  auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  GlobalOrderProblem problem;
  unsigned stages = 2 + below(5), width = 1 + below(2), runs = 5 + below(30);
  std::vector<std::pair<unsigned, unsigned>> done; // task, stage
  auto ranksOf = [&](unsigned stage) {
    std::vector<unsigned> ranks;
    for (unsigned i = 0; i < width; ++i)
      ranks.push_back(stage * width + i);
    return ranks;
  };
  for (unsigned run = 0; run < runs; ++run) {
    unsigned stage = below(stages);
    OrderTask task{"r" + std::to_string(run), below(4), ranksOf(stage), {}, "s" + std::to_string(stage)};
    for (unsigned uses = done.empty() ? 0 : below(4); uses > 0; --uses) {
      auto [other, otherStage] = done[below(done.size())];
      if (otherStage == stage) {
        task.after.push_back(other);
        continue;
      }
      OrderTask send{task.name + "." + std::to_string(uses), below(3), ranksOf(otherStage), {other}, ""};
      llvm::append_range(send.ranks, ranksOf(stage));
      task.after.push_back(problem.tasks.size());
      problem.tasks.push_back(send);
    }
    done.push_back({problem.tasks.size(), stage});
    problem.tasks.push_back(task);
  }
  return problem;
}

// Any schedule: ranks that issue the restriction of the one order never deadlock, on one engine with
// rendezvous.
TEST(GlobalOrder, NeverDeadlocks) {
  std::mt19937 random(1);
  for (unsigned trial = 0; trial < 2000; ++trial) {
    GlobalOrderProblem problem = randomOrder(random);
    auto order = problem.solve();
    ASSERT_TRUE(bool(order));
    ASSERT_EQ(llvm::toString(problem.verify(*order)), "") << "trial " << trial;
  }
}

/// The step of a schedule: runs in the order of the table, a transfer to the next stage after each forward
/// and to the previous one after each backward.
static GlobalOrderProblem stepOf(const OrderTableProblem &schedule) {
  GlobalOrderProblem problem;
  std::map<std::tuple<unsigned, bool, unsigned>, unsigned> run, send;
  OrderTable table = *schedule.solve();
  for (unsigned s = 0; s < schedule.stages; ++s)
    for (const ScheduleSlot &slot : table.devices[s].slots) {
      bool backward = slot.kind == SlotKind::Backward;
      std::string name = (backward ? "B" : "F") + std::to_string(s) + "." + std::to_string(slot.microbatch);
      run[{s, backward, slot.microbatch}] = problem.tasks.size();
      problem.tasks.push_back({name, backward ? 20 : 10, {s}, {}, "s" + std::to_string(s)});
      unsigned to = backward ? s - 1 : s + 1;
      if (to >= schedule.stages)
        continue;
      send[{s, backward, slot.microbatch}] = problem.tasks.size();
      unsigned produced = problem.tasks.size() - 1;
      problem.tasks.push_back({name + ">", 1, {s, to}, {produced}, ""});
    }
  for (auto &[key, task] : run) {
    auto [s, backward, microbatch] = key;
    unsigned from = backward ? s + 1 : s - 1;
    if (from < schedule.stages)
      problem.tasks[task].after.push_back(send[{from, backward, microbatch}]);
  }
  return problem;
}

/// The obvious order of each rank: receive right before use, send right after produce.
static std::vector<std::vector<unsigned>> receiveBeforeUse(const GlobalOrderProblem &problem) {
  std::vector<std::vector<unsigned>> ofRank(problem.numRanks());
  for (auto [index, task] : llvm::enumerate(problem.tasks)) {
    if (task.isCommunication())
      continue;
    for (unsigned before : task.after)
      if (problem.tasks[before].isCommunication())
        ofRank[task.ranks[0]].push_back(before);
    if (index + 1 < problem.tasks.size() && problem.tasks[index + 1].isCommunication())
      ofRank[task.ranks[0]].push_back(index + 1);
  }
  return ofRank;
}

// The obvious order deadlocks 1f1b on one engine and gpipe hides it; the global order runs both at no cost.
TEST(GlobalOrder, ObviousOrderDeadlocks1F1B) {
  for (llvm::StringRef schedule : {"gpipe", "1f1b"}) {
    OrderTableProblem table;
    table.schedule = schedule.str();
    table.stages = 4;
    table.microbatches = 8;
    table.forward.assign(4, 10);
    table.backward.assign(4, 20);
    table.transfer = 1;
    GlobalOrderProblem problem = stepOf(table);
    auto order = problem.solve();
    ASSERT_TRUE(bool(order));
    EXPECT_EQ(llvm::toString(problem.verify(*order)), "");
    EXPECT_EQ(order->makespan, table.solve()->makespan);
    std::vector<std::vector<unsigned>> ofRank;
    for (unsigned rank = 0; rank < problem.numRanks(); ++rank)
      ofRank.push_back(problem.restrict(order->order, rank));
    EXPECT_TRUE(problem.playRendezvous(ofRank).empty());
    EXPECT_EQ(problem.playRendezvous(receiveBeforeUse(problem)).empty(), schedule == "gpipe");
  }
}

TEST(GlobalOrder, Errors) {
  GlobalOrderProblem cycle{{{"a", 1, {0}, {1}, ""}, {"b", 1, {0}, {0}, ""}}};
  EXPECT_EQ(llvm::toString(cycle.solve().takeError()), "task 'a' waits for itself: the dependencies have a cycle");
  GlobalOrderProblem range{{{"a", 1, {0}, {7}, ""}}};
  EXPECT_EQ(llvm::toString(range.check()), "task 'a' comes after task 7 of 1");
  GlobalOrderProblem negative{{{"a", -1, {0}, {}, ""}}};
  EXPECT_EQ(llvm::toString(negative.check()), "task 'a' lasts -1 ns");
  GlobalOrderProblem chain{{{"a", 5, {0}, {}, "s"}, {"b", 5, {0}, {}, "s"}}};
  GlobalOrder order = *chain.solve();
  std::swap(order.order[0], order.order[1]);
  EXPECT_EQ(llvm::toString(chain.verify(order)), "task 'b' does not wait for 'a'");
  order.order = {0, 0};
  EXPECT_EQ(llvm::toString(chain.verify(order)), "the order repeats task 0");
  order.order = {0};
  EXPECT_EQ(llvm::toString(chain.verify(order)), "the order has 1 of 2 tasks");
}
