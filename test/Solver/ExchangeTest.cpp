// Every receiver gets its shard, each element from one sender that holds it, for any parts of the two sides.
#include "par/Solver/Reshard/Exchange.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace par;

namespace {

using Index = std::vector<int64_t>;

int64_t shardOf(int64_t size, int64_t parts) { return (size + parts - 1) / parts; }

/// All indices of a box, row by row.
std::vector<Index> indicesOf(const Index &box) {
  std::vector<Index> all{Index()};
  for (int64_t size : box) {
    std::vector<Index> next;
    for (const Index &index : all)
      for (int64_t i = 0; i < size; ++i) {
        next.push_back(index);
        next.back().push_back(i);
      }
    all = std::move(next);
  }
  return all;
}

/// Parts of each dim, each held by some members, in any order.
ExchangeSide drawSide(std::mt19937 &random, const Index &parts) {
  ExchangeSide side{parts, {}};
  unsigned copies = 1 + random() % 3;
  for (unsigned copy = 0; copy < copies; ++copy)
    for (const Index &index : indicesOf(parts))
      side.index.push_back(index);
  std::shuffle(side.index.begin(), side.index.end(), random);
  return side;
}

/// The elements that each receiver gets: local index -> global index, without padding.
std::vector<std::map<Index, Index>> play(const Index &shape, const Exchange &exchange, const ExchangeSide &from,
                                         const ExchangeSide &to) {
  std::vector<std::map<Index, Index>> received(to.index.size());
  std::vector<Index> grid = indicesOf(exchange.grid);
  for (const std::vector<unsigned> &group : exchange.groups)
    for (unsigned piece = 0; piece < exchange.senders; ++piece)
      for (const Exchange::Send &send : exchange.sends) {
        if (send.peer >= group.size())
          continue;
        for (const Index &index : indicesOf(exchange.piece)) {
          Index local, global;
          bool inside = true;
          for (size_t dim = 0; dim < shape.size(); ++dim) {
            int64_t at = exchange.slices[send.slice][dim] + index[dim];
            EXPECT_LT(at, exchange.padded[dim]);
            global.push_back(from.index[group[piece]][dim] * shardOf(shape[dim], from.parts[dim]) + at);
            local.push_back(grid[piece][dim] * exchange.piece[dim] + index[dim]);
            inside = inside && global.back() < shape[dim] && at < shardOf(shape[dim], from.parts[dim]);
          }
          bool first = !inside || received[group[send.peer] - from.index.size()].try_emplace(local, global).second;
          EXPECT_TRUE(first) << "an element comes twice";
        }
      }
  return received;
}

TEST(Exchange, EveryElementOnce) {
  std::mt19937 random(7);
  unsigned nested = 0;
  for (unsigned trial = 0; trial < 4000; ++trial) {
    Index shape, a, b;
    for (unsigned dim = 0, rank = random() % 4; dim < rank; ++dim) {
      shape.push_back(1 + random() % 12);
      a.push_back(1 + random() % 4);
      b.push_back(1 + random() % 4);
    }
    ExchangeSide from = drawSide(random, a), to = drawSide(random, b);
    std::optional<Exchange> exchange = Exchange::find(shape, from, to);
    if (!exchange)
      continue;
    ++nested;
    auto received = play(shape, *exchange, from, to);
    for (size_t member = 0; member < to.index.size(); ++member)
      for (const Index &local : indicesOf(shape)) {
        Index global;
        bool mine = true;
        for (size_t dim = 0; dim < shape.size(); ++dim) {
          int64_t shard = shardOf(shape[dim], b[dim]);
          global.push_back(to.index[member][dim] * shard + local[dim]);
          mine = mine && local[dim] < shard && global.back() < shape[dim];
        }
        if (mine) {
          ASSERT_TRUE(received[member].count(local)) << "trial " << trial;
          EXPECT_EQ(received[member][local], global);
        }
      }
  }
  EXPECT_GT(nested, 1000u);
}

// Half of a sender's rows to each of two receivers, as the header says.
TEST(Exchange, Rows) {
  ExchangeSide from{{2}, {{0}, {1}}}, to{{4}, {{0}, {1}, {2}, {3}}};
  std::optional<Exchange> exchange = Exchange::find({12}, from, to);
  ASSERT_TRUE(exchange);
  EXPECT_EQ(exchange->piece, (Index{3}));
  EXPECT_EQ(exchange->slices, (std::vector<Index>{{0}, {3}}));
  EXPECT_EQ(exchange->groups, (std::vector<std::vector<unsigned>>{{0, 2, 3}, {1, 4, 5}}));
  EXPECT_EQ(exchange->sends[1].peer, 2u);
}

// 5 rows in two parts are 3 and 2, in four 2, 2, 1 and 0: the second begins inside the first part and ends in the
// other.
TEST(Exchange, DoesNotNest) {
  EXPECT_FALSE(Exchange::nests(5, 2, 4));
  EXPECT_FALSE(Exchange::nests(6, 2, 3));
  EXPECT_TRUE(Exchange::nests(6, 1, 4));
  EXPECT_TRUE(Exchange::nests(5, 4, 1));
  EXPECT_TRUE(Exchange::nests(8, 2, 4));
}

// With three senders of one shard and two receivers, two send; the third is in no group.
TEST(Exchange, Replicas) {
  ExchangeSide three{{1}, {{0}, {0}, {0}}}, two{{1}, {{0}, {0}}};
  EXPECT_EQ(Exchange::find({4}, three, two)->groups, (std::vector<std::vector<unsigned>>{{0, 3}, {1, 4}}));
  EXPECT_EQ(Exchange::find({4}, two, three)->groups, (std::vector<std::vector<unsigned>>{{0, 2, 4}, {1, 3}}));
}

} // namespace
