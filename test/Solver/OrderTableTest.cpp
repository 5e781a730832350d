// Orders of pipeline schedules against their published closed forms, and the automatic order against exhaustive search.
#include "par/Solver/Order/OrderTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <gtest/gtest.h>
#include <random>

using namespace par;

/// Equal stages whose forward, input's and weight's gradient take 100 ns each, and which keep whole activations until
/// the weight's gradient.
static OrderTableProblem makeProblem(llvm::StringRef schedule, unsigned devices, unsigned microbatches,
                                     unsigned chunks = 1) {
  OrderTableProblem problem;
  problem.schedule = schedule.str();
  problem.stages = devices * chunks;
  problem.devices = devices;
  problem.microbatches = microbatches;
  problem.forward.assign(problem.stages, 100);
  problem.backward.assign(problem.stages, 100);
  problem.weight.assign(problem.stages, 100);
  problem.kept = 1000;
  return problem;
}

/// Calls `visit` with the problem of every schedule whose order depends on nothing but the shape, in many shapes.
static void forEachShape(llvm::function_ref<void(const Schedule &, const OrderTableProblem &)> visit) {
  for (const Schedule *schedule : getSchedules())
    for (unsigned p = 1; p <= 8 && schedule->order; ++p)
      for (unsigned m = 1; m <= 18; ++m)
        for (unsigned v = schedule->minChunks; v <= std::min(schedule->maxChunks, 4u); ++v) {
          OrderTableProblem problem = makeProblem(schedule->name, p, m, v);
          SCOPED_TRACE(
              (schedule->name + " p=" + llvm::Twine(p) + " m=" + llvm::Twine(m) + " v=" + llvm::Twine(v)).str());
          visit(*schedule, problem);
        }
}

// A second schedule of one name would never be found.
TEST(Schedules, EachHasOneName) {
  llvm::StringSet<> names;
  for (const Schedule *schedule : getSchedules()) {
    EXPECT_TRUE(names.insert(schedule->name).second) << schedule->name.str() << " is in the table twice";
    EXPECT_FALSE(OrderTableProblem::isPath(schedule->name)) << schedule->name.str() << " would be read as a file";
    EXPECT_NE(!schedule->order, !schedule->solve) << schedule->name.str() << " has one of order and solve";
  }
}

// Any number of microbatches, also fewer than devices: every order is complete and no device waits for ever.
TEST(OrderTable, EveryScheduleTakesAnyNumberOfMicrobatches) {
  forEachShape([](const Schedule &, const OrderTableProblem &problem) {
    auto table = problem.solve();
    ASSERT_TRUE(bool(table)) << llvm::toString(table.takeError());
    EXPECT_EQ(llvm::toString(problem.verify(*table)), "");
  });
}

// Equal stages and free links: the share of time in which devices wait is the schedule's closed form.
TEST(OrderTable, BubbleHasItsClosedForm) {
  unsigned compared = 0;
  forEachShape([&](const Schedule &schedule, const OrderTableProblem &problem) {
    std::optional<double> closed;
    if (schedule.bubble)
      closed = schedule.bubble(problem.shape(), {100, 100, 100});
    if (!closed)
      return;
    OrderTable table = *problem.solve();
    EXPECT_NEAR(1 - double(table.devices[0].busy) / table.makespan, *closed, 1e-9);
    ++compared;
  });
  EXPECT_GT(compared, 700u);
}

// As many as the published closed forms say: 1f1b p-s; zb-h1 as 1f1b, and at most p until the weight's gradient.
TEST(OrderTable, InFlight) {
  for (unsigned p = 1; p <= 8; ++p)
    for (unsigned m = 1; m <= 18; ++m)
      for (unsigned s = 0; s < p; ++s) {
        EXPECT_EQ(makeProblem("1f1b", p, m).solve()->devices[s].inFlight, std::min(m, p - s));
        EXPECT_EQ(makeProblem("gpipe", p, m).solve()->devices[s].inFlight, m);
        DeviceOrder late = makeProblem("zb-h1", p, m).solve()->devices[s];
        EXPECT_EQ(late.inFlight, std::min(m, p - s));
        EXPECT_LE(late.memory, 1000 * std::min(m, p));
      }
}

// Megatron-LM's count where p divides m: (v - 1) p + 2 (p - s - 1) + 1 stages' activations on device s.
TEST(OrderTable, InterleavedInFlight) {
  for (unsigned p = 1; p <= 8; ++p)
    for (unsigned v = 2; v <= 4; ++v)
      for (unsigned m = p; m <= 3 * p; m += p)
        for (unsigned s = 0; s < p; ++s)
          EXPECT_EQ(makeProblem("interleaved", p, m, v).solve()->devices[s].inFlight,
                    std::min(v * m, (v - 1) * p + 2 * (p - s - 1) + 1));
}

// Every device of zb-v keeps p microbatches, 2p of its half stages, and has no bubble of its own.
TEST(OrderTable, ZeroBubbleV) {
  for (unsigned p = 1; p <= 8; ++p)
    for (unsigned m = 1; m <= 18; ++m) {
      OrderTable table = *makeProblem("zb-v", p, m, 2).solve();
      bool fills = m >= 2 * p - 1;
      for (const DeviceOrder &device : table.devices) {
        EXPECT_LE(device.memory, 2000 * std::min(m, p)) << "p=" << p << " m=" << m;
        EXPECT_TRUE(!fills || device.memory == 2000 * p) << "p=" << p << " m=" << m;
      }
      EXPECT_TRUE(!fills || table.longest == 600 * m) << "p=" << p << " m=" << m;
    }
}

//===-- auto ---------------------------------------------------------------------------------===//

// All orders of small pipelines with random times: auto finds the best of them, or one at most 2 % longer.
TEST(OrderTable, AutoAgainstAllOrders) {
  std::mt19937 random(1);
  auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  unsigned best = 0, trials = 0;
  for (auto [p, m] : {std::pair(1, 3), {2, 1}, {2, 2}, {2, 3}, {3, 1}, {3, 2}})
    for (unsigned trial = 0; trial < 4; ++trial) {
      OrderTableProblem problem = makeProblem("auto", p, m);
      for (std::vector<int64_t> *times : {&problem.forward, &problem.backward, &problem.weight})
        for (int64_t &time : *times)
          time = 20 + below(100);
      problem.transfer = below(30);
      problem.limit.assign(p, 1 + below(p + 1));
      problem.kept = 1000 - 250 * below(4);
      problem.barrier = below(2);
      auto found = problem.solve();
      auto oracle = problem.solveExhaustively(true);
      ASSERT_EQ(bool(found), oracle.has_value());
      EXPECT_EQ(llvm::toString(problem.verify(*found)), "");
      auto time = [&](const OrderTable &table) { return problem.barrier ? table.makespan : table.longest; };
      EXPECT_GE(time(*found), time(*oracle));
      EXPECT_LE(time(*found) * 100, time(*oracle) * 102) << "p=" << p << " m=" << m << " trial " << trial;
      best += time(*found) == time(*oracle);
      ++trials;
    }
  RecordProperty("optimal", std::to_string(best) + " of " + std::to_string(trials));
  EXPECT_GE(best * 10, trials * 9);
}

// It is at least as good as each hand-made order that keeps to its limit, in shapes that those are made for and others.
TEST(OrderTable, AutoAgainstHandMade) {
  for (auto [p, m] : {std::pair(2, 1), {4, 2}, {4, 8}, {3, 7}})
    for (int64_t weight : {40, 100, 160}) {
      OrderTableProblem hand = makeProblem("zb-h1", p, m), search = makeProblem("auto", p, m);
      hand.weight.assign(p, weight);
      search.weight.assign(p, weight);
      hand.transfer = search.transfer = 7;
      EXPECT_LE(search.solve()->longest, hand.solve()->longest) << "p=" << p << " m=" << m << " weight " << weight;
    }
}

// Several stages on a device, and a limit that leaves room for one activation of each.
TEST(OrderTable, AutoWithSeveralStages) {
  for (unsigned v = 1; v <= 3; ++v)
    for (unsigned p : {1u, 2u, 4u}) {
      OrderTableProblem problem = makeProblem("auto", p, 5, v);
      problem.limit.assign(p, v);
      auto table = problem.solve();
      ASSERT_TRUE(bool(table)) << "p=" << p << " v=" << v << ": " << llvm::toString(table.takeError());
      EXPECT_EQ(llvm::toString(problem.verify(*table)), "");
    }
}

// Equal problems have equal orders.
TEST(OrderTable, AutoIsRepeatable) {
  OrderTableProblem problem = makeProblem("auto", 4, 12);
  problem.transfer = 13;
  OrderTable once = *problem.solve(), again = *problem.solve();
  for (auto [left, right] : llvm::zip(once.devices, again.devices))
    EXPECT_TRUE(left.slots == right.slots);
}

//===-- Errors -------------------------------------------------------------------------------===//

TEST(OrderTable, VerifyRefusesWrongTables) {
  auto problem = makeProblem("1f1b", 2, 3);
  auto refused = [&](auto change) {
    OrderTable table = *problem.solve();
    change(table);
    return llvm::toString(problem.verify(table));
  };
  EXPECT_EQ(refused([](OrderTable &t) { t.devices.pop_back(); }), "the table has 1 devices, expected 2");
  EXPECT_EQ(refused([](OrderTable &t) { t.devices[0].slots.pop_back(); }),
            "device 0 runs 3 forwards and 2 backwards of 3 microbatches");
  EXPECT_EQ(refused([](OrderTable &t) { std::swap(t.devices[0].slots[0], t.devices[0].slots[1]); }),
            "device 0 runs F1, where F0 is next");
  EXPECT_EQ(refused([](OrderTable &t) { t.devices[1].slots.back().last = false; }),
            "device 1 marks the wrong slot as last: B2");
  EXPECT_EQ(refused([](OrderTable &t) { t.devices[0].inFlight = 1; }), "device 0 has 2 microbatches in flight, not 1");
  EXPECT_EQ(refused([](OrderTable &t) { t.devices[0].memory = 1; }),
            "the figures of device 0 are not those of its order");
  EXPECT_EQ(refused([](OrderTable &t) { std::swap(t.devices[1].slots[0], t.devices[1].slots[1]); }),
            "device 1 runs B0, before F0");
  EXPECT_EQ(refused([](OrderTable &t) { t.makespan += 1; }), "the orders take 1200 ns, not 1201");
}

TEST(OrderTable, MakeRefusesTablesOfOtherSizes) {
  EXPECT_EQ(llvm::toString(OrderTableProblem::make("none/of.these", 2, 2, 3).takeError()),
            "none/of.these: cannot open: No such file or directory");
  EXPECT_EQ(llvm::toString(OrderTableProblem::make("zb-v", 2, 2, 3).takeError()),
            "schedule 'zb-v' takes 2 stages a device, and there are 1");
}

TEST(OrderTable, PrintsWhatItParses) {
  auto problem = makeProblem("gpipe", 3, 5);
  problem.forward = {1, 2, 3};
  problem.transfer = 7;
  problem.limit = {5, 5, 5};
  problem.barrier = true;
  auto given = makeProblem("zb-v", 2, 2, 2);
  OrderTable solved = *given.solve();
  for (const DeviceOrder &device : solved.devices)
    given.table.push_back(device.slots);
  for (DeviceSlots &slots : given.table)
    for (ScheduleSlot &slot : slots)
      slot.last = false;
  given.tablePlacement = Placement::V;
  for (const OrderTableProblem &each : {problem, given}) {
    std::string text = each.toText();
    ProblemText reader(text);
    auto parsed = OrderTableProblem::parse(reader);
    ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError()) << text;
    EXPECT_EQ(text, parsed->toText());
  }
}
