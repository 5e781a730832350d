// The paths between shardings: legal, the cheapest of all, and of as many bytes as their closed forms say.
#include "par/Solver/Reshard/ReshardPath.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace par;

namespace {

Hardware machine(const char *name) { return llvm::cantFail(Hardware::find(name)); }

/// Axes of a list are drawn onto dims, or onto none.
void drawLists(std::mt19937 &random, unsigned axes, std::vector<AxisList *> places) {
  AxisList order(axes);
  for (unsigned i = 0; i < axes; ++i)
    order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (unsigned axis : order)
    if (unsigned place = random() % (places.size() + 1); place < places.size())
      places[place]->push_back(axis);
}

/// A mesh of two or three axes of two or three ranks, two dims of up to 13 elements.
ReshardProblem randomProblem(std::mt19937 &random, unsigned axes) {
  ReshardProblem problem;
  problem.costs = machine(random() % 2 ? "cpu" : "h100-sxm");
  // So that bytes count as much as messages do.
  problem.element = random() % 2 ? 4 : 400000;
  for (unsigned i = 0; i < axes; ++i)
    problem.axes.push_back({std::string(1, 'a' + i), 2 + int64_t(random() % 2)});
  for (unsigned i = 0; i < 2; ++i)
    problem.dims.push_back({1 + int64_t(random() % 13), {}, {}});
  drawLists(random, axes, {&problem.dims[0].from, &problem.dims[1].from, &problem.sums});
  drawLists(random, axes, {&problem.dims[0].to, &problem.dims[1].to});
  return problem;
}

/// All states of the value: each axis on a dim in any order, summed over, or neither.
class AllStates {
public:
  explicit AllStates(const ReshardProblem &problem) : problem(problem) {
    ReshardState state{std::vector<AxisList>(problem.dims.size()), std::vector<int64_t>(problem.dims.size()), {}};
    place(0, state);
  }
  std::vector<ReshardState> list;

private:
  void place(unsigned axis, const ReshardState &state) {
    if (axis == problem.axes.size())
      return choose(0, state);
    place(axis + 1, state);
    ReshardState more = state;
    more.sums.push_back(axis);
    place(axis + 1, more);
    for (unsigned dim = 0; dim < problem.dims.size(); ++dim)
      for (size_t at = 0; at <= state.axes[dim].size(); ++at) {
        more = state;
        more.axes[dim].insert(more.axes[dim].begin() + at, axis);
        place(axis + 1, more);
      }
  }
  /// Shards of any size that holds all elements, up to the largest that padding makes.
  void choose(unsigned dim, ReshardState state) {
    if (dim == problem.dims.size()) {
      list.push_back(state);
      return;
    }
    int64_t size = problem.dims[dim].size, parts = problem.sizeOf(state.axes[dim]);
    int64_t least = (size + parts - 1) / parts;
    for (state.shard[dim] = least; state.shard[dim] <= 2 * least + 2; ++state.shard[dim]) {
      choose(dim + 1, state);
      if (state.axes[dim].empty())
        break;
    }
  }
  const ReshardProblem &problem;
};

/// The least cost of all sequences of moves, by looking at every pair of states until nothing gets cheaper.
/// Knows moves only from checkMove.
ReshardCost minOfAll(const ReshardProblem &problem) {
  constexpr ReshardKind kinds[] = {ReshardKind::Slice, ReshardKind::AllReduce, ReshardKind::ReduceScatter,
                                   ReshardKind::AllToAll, ReshardKind::AllGather};
  std::vector<ReshardState> states = AllStates(problem).list;
  std::map<ReshardState, ReshardCost> least{{problem.source(), {}}};
  for (std::vector<ReshardState> fresh{problem.source()}; !fresh.empty();) {
    std::map<ReshardState, bool> improved;
    for (const ReshardState &before : fresh)
      for (const ReshardState &after : states)
        for (ReshardKind kind : kinds) {
          if (llvm::errorToBool(problem.checkMove(kind, before, after)))
            continue;
          ReshardCost cost = least.at(before) + problem.costOf(kind, before, after);
          auto [at, first] = least.try_emplace(after, cost);
          if (!first && !(cost < at->second))
            continue;
          at->second = cost;
          improved[after] = true;
        }
    fresh.clear();
    for (auto &[state, _] : improved)
      fresh.push_back(state);
  }
  return least.at(problem.target());
}

void againstAllSequences(unsigned axes, unsigned trials) {
  std::mt19937 random(7);
  unsigned moved = 0;
  for (unsigned trial = 0; trial < trials; ++trial) {
    ReshardProblem problem = randomProblem(random, axes);
    ASSERT_EQ(llvm::toString(problem.check()), "");
    auto path = problem.solve();
    ASSERT_TRUE(bool(path)) << problem.toText() << llvm::toString(path.takeError());
    ASSERT_EQ(llvm::toString(problem.verify(*path)), "") << problem.toText();
    ReshardCost least = minOfAll(problem);
    ASSERT_EQ(path->cost.time, least.time) << problem.toText();
    ASSERT_EQ(path->cost.bytes, least.bytes) << problem.toText();
    ASSERT_EQ(path->cost.moves, least.moves) << problem.toText();
    moved += path->moves.size() > 1;
  }
  EXPECT_GT(moved, trials / 5); // so many are more than one move
}

TEST(ReshardPath, IsTheCheapestOfAllSequencesOnTwoAxes) { againstAllSequences(2, 400); }
TEST(ReshardPath, IsTheCheapestOfAllSequencesOnThreeAxes) { againstAllSequences(3, 24); }

// Larger meshes, with more units than are searched completely: a path is found, and is one.
TEST(ReshardPath, LeadsToTheTargetOnLargerMeshes) {
  std::mt19937 random(3);
  for (unsigned trial = 0; trial < 50; ++trial) {
    ReshardProblem problem = randomProblem(random, 4 + random() % 3);
    problem.dims.push_back({int64_t(1 + random() % 100), {}, {}});
    problem.dims[0].size = 1000 + random() % 10;
    auto path = problem.solve();
    ASSERT_TRUE(bool(path)) << problem.toText() << llvm::toString(path.takeError());
    ASSERT_EQ(llvm::toString(problem.verify(*path)), "") << problem.toText();
  }
}

// The error about an invalid path names its fault.
TEST(ReshardPath, WhatIsWrongIsNamed) {
  ReshardProblem problem;
  problem.costs = machine("cpu");
  problem.axes = {{"a", 2}, {"b", 2}};
  problem.dims = {{8, {}, {0}}, {6, {}, {}}};
  problem.sums = {0};
  const ReshardPath right = llvm::cantFail(problem.solve());
  ASSERT_EQ(right.moves.size(), 1u);
  auto expect = [&](ReshardPath path, const std::string &message) {
    EXPECT_EQ(llvm::toString(problem.verify(path)), message);
  };
  ReshardPath path = right;
  path.moves[0].kind = ReshardKind::AllToAll;
  expect(path, "move 0: no all_to_all does this");
  path = right;
  path.moves[0].after.shard[0] = 3;
  expect(path, "move 0: dim 0 cannot be cut into shards of 3");
  path = right;
  path.moves[0].after.shard[1] = 5;
  expect(path, "move 0: dim 1 changes, but by no axis at its end");
  path = right;
  path.moves[0].after.sums = {1};
  expect(path, "move 0: a sum came to be");
  path = right;
  path.moves.clear();
  expect(path, "the last move does not end at the target");
  path = right;
  path.cost.time += 1;
  expect(path, "the path costs " + std::to_string(right.cost.time) + " ns, not " + std::to_string(path.cost.time));
  problem.dims[0] = {8, {0}, {}};
  problem.sums = {};
  path = llvm::cantFail(problem.solve());
  path.moves[0].after.shard[0] = 7;
  expect(path, "move 0: dim 0 cannot be joined to shards of 7");
  problem.dims[0].to = {5};
  EXPECT_EQ(llvm::toString(problem.check()), "axis 5 is out of range, there are 2");
}

// N ranks as axes of prime sizes: one collective over all of them, padded once.
TEST(ReshardPath, SendsWhatTheClosedFormsSay) {
  const std::vector<std::vector<int64_t>> meshes{{2}, {2, 2}, {2, 2, 2}, {3, 2}};
  for (const std::vector<int64_t> &sizes : meshes)
    for (int64_t rows : {50257, 768, 7}) {
      ReshardProblem problem;
      problem.costs = machine("h100-sxm");
      AxisList all;
      int64_t ranks = 1, columns = 768;
      for (int64_t size : sizes) {
        all.push_back(problem.axes.size());
        problem.axes.push_back({"dp." + std::to_string(all.back()), size});
        ranks *= size;
      }
      int64_t padded = (rows + ranks - 1) / ranks * ranks;
      auto expect = [&](AxisList from, AxisList to, AxisList sums, ReshardKind kind, int64_t bytes) {
        problem.dims = {{rows, from, to}, {columns, {}, {}}};
        problem.sums = sums;
        auto path = problem.solve();
        ASSERT_TRUE(bool(path));
        ASSERT_EQ(path->moves.size(), 1u) << problem.toText();
        EXPECT_EQ(path->moves[0].kind, kind) << problem.toText();
        EXPECT_EQ(path->moves[0].axes, all);
        EXPECT_EQ(path->cost.bytes, bytes) << problem.toText();
      };
      expect({}, {}, all, ReshardKind::AllReduce, 2 * 4 * rows * columns * (ranks - 1) / ranks);
      expect({}, all, all, ReshardKind::ReduceScatter, 4 * padded * columns / ranks * (ranks - 1));
      expect(all, {}, {}, ReshardKind::AllGather, 4 * padded * columns / ranks * (ranks - 1));
      expect({}, all, {}, ReshardKind::Slice, 0);
      // From rows to columns: a rank keeps its own part.
      problem.dims = {{rows, all, {}}, {columns, {}, all}};
      problem.sums = {};
      auto path = problem.solve();
      ASSERT_TRUE(bool(path));
      ASSERT_EQ(path->moves.size(), 1u) << problem.toText();
      EXPECT_EQ(path->moves[0].kind, ReshardKind::AllToAll);
      EXPECT_EQ(path->cost.bytes, 4 * (padded / ranks) * (columns / ranks) * (ranks - 1));
    }
}

} // namespace
