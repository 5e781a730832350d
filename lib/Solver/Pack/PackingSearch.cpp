// Packing by placing items one after another, each into the tightest gap that the items alive with it leave. The order
// decides: several greedy orders first, then a local search that places items at the top of the arena earlier.
#include "par/Solver/Pack/Packing.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>
#include <optional>

using namespace par;

namespace {

enum class Fit { Lowest, Tightest };

class Placer {
public:
  explicit Placer(const PackingProblem &problem) : problem(problem) {
    for (unsigned item = 0; item < problem.items.size(); ++item) {
      const PackItem &data = problem.items[item];
      boxes.push_back(
          {data.lives.front().begin, data.lives.back().end, problem.alignedSize(item), data.lives.size() == 1});
    }
    if (boxes.size() <= maxInTable)
      fillTable();
    divideTime();
  }

  /// Places all items in this order; nothing if one would end above the limit.
  std::optional<Packing> place(llvm::ArrayRef<unsigned> order, Fit fit, int64_t limit) {
    Packing packing;
    packing.offsets.assign(boxes.size(), 0);
    for (std::vector<Placed> &placed : parts)
      placed.clear();
    for (unsigned item : order) {
      int64_t offset = placeOne(item, fit);
      packing.offsets[item] = offset;
      packing.arena = std::max(packing.arena, offset + boxes[item].size);
      if (packing.arena > limit)
        return std::nullopt;
    }
    return packing;
  }

  int64_t placeOne(unsigned item, Fit fit) {
    const Box &box = boxes[item];
    int64_t cursor = 0, best = -1, bestGap = INT64_MAX;
    const Placed *met[inBlock];
    const std::vector<Placed> &placed = parts[partOf(box)];
    for (size_t begin = 0; begin < placed.size() && (best < 0 || fit != Fit::Lowest); begin += inBlock) {
      unsigned count = findConflicts(placed, item, begin, met);
      for (const Placed *other : llvm::ArrayRef(met, count)) {
        int64_t gap = other->offset - cursor;
        if (gap >= box.size && gap < bestGap) {
          best = cursor;
          bestGap = gap;
          if (fit == Fit::Lowest)
            break;
        }
        cursor = std::max(cursor, other->offset + boxes[other->item].size);
      }
    }
    int64_t offset = best < 0 ? cursor : best;
    for (size_t first = box.first, last = box.last; first > 0; first /= 2, last /= 2)
      for (size_t part = first; part <= last; ++part) {
        auto isLower = [&](const Placed &other) { return other.offset < offset; };
        parts[part].insert(llvm::partition_point(parts[part], isLower), {item, offset});
      }
    return offset;
  }

  void remove(unsigned item) {
    for (std::vector<Placed> &placed : parts)
      llvm::erase_if(placed, [&](const Placed &other) { return other.item == item; });
  }

  int64_t size(unsigned item) const { return boxes[item].size; }
  int64_t length(unsigned item) const { return boxes[item].end - boxes[item].begin; }
  int64_t begin(unsigned item) const { return boxes[item].begin; }

private:
  struct Box {
    int64_t begin, end; ///< from the first life to the last
    int64_t size;
    bool simple;                ///< a single life
    size_t first = 1, last = 1; ///< the shortest parts of the time that it lives in
  };
  struct Placed {
    unsigned item;
    int64_t offset;
  };

  /// Divides the time into halves of halves, part 1 being all of it and 2p and 2p + 1 the halves of p, at quantiles of
  /// the items' begins. Most items of a large problem live in one of the shortest parts, and meet only those that are
  /// placed there.
  void divideTime() {
    constexpr size_t few = 2000, shortest = 16;
    size_t count = boxes.size() < few ? 1 : shortest;
    parts.resize(2 * count);
    std::vector<int64_t> begins, bounds; // of each part but the first: where it begins
    for (const Box &box : boxes)
      begins.push_back(box.begin);
    llvm::sort(begins);
    for (size_t part = 1; part < count; ++part)
      bounds.push_back(begins[begins.size() * part / count]);
    for (Box &box : boxes) {
      box.first = count + (llvm::upper_bound(bounds, box.begin) - bounds.begin());
      box.last = count + (llvm::upper_bound(bounds, box.end - 1) - bounds.begin());
    }
  }

  /// The shortest part with all of an item's life: what it may meet is placed there, too.
  static size_t partOf(const Box &box) {
    size_t first = box.first, last = box.last;
    for (; first != last; first /= 2)
      last /= 2;
    return first;
  }

  /// Finds the pairs of items that are alive together by a sweep over all lives. A slot has one life for each
  /// microbatch that uses it, and placing queries each pair many times.
  void fillTable() {
    struct Change {
      int64_t position;
      bool begins;
      unsigned item;
    };
    std::vector<Change> changes;
    for (unsigned item = 0; item < boxes.size(); ++item)
      for (auto [begin, end] : problem.items[item].lives) {
        changes.push_back({begin, true, item});
        changes.push_back({end, false, item});
      }
    llvm::sort(changes, [](const Change &a, const Change &b) {
      return std::tuple(a.position, a.begins, a.item) < std::tuple(b.position, b.begins, b.item);
    });
    table.assign(boxes.size(), llvm::BitVector(boxes.size()));
    llvm::BitVector alive(boxes.size());
    for (const Change &change : changes) {
      alive[change.item] = change.begins;
      if (change.begins)
        table[change.item] |= alive;
    }
    // Only the later one of two boxes has recorded the other.
    for (unsigned a = 0; a < boxes.size(); ++a)
      for (unsigned b : table[a].set_bits())
        table[b].set(a);
  }

  static constexpr size_t inBlock = 64; ///< placed items that are looked at together

  /// The items of a block of placed ones that are alive with an item, in their order. Nothing branches on which are: it
  /// cannot be foreseen.
  unsigned findConflicts(llvm::ArrayRef<Placed> placed, unsigned item, size_t begin, const Placed **met) const {
    unsigned count = 0;
    size_t end = std::min(begin + inBlock, placed.size());
    if (table.empty()) {
      for (size_t i = begin; i < end; ++i)
        if (conflict(item, placed[i].item))
          met[count++] = &placed[i];
      return count;
    }
    using Word = uintptr_t;
    constexpr unsigned bits = sizeof(Word) * 8;
    const Word *row = table[item].getData().data();
    for (size_t i = begin; i < end; ++i) {
      met[count] = &placed[i];
      count += row[placed[i].item / bits] >> (placed[i].item % bits) & 1;
    }
    return count;
  }

  bool conflict(unsigned a, unsigned b) const {
    if (boxes[a].begin >= boxes[b].end || boxes[b].begin >= boxes[a].end)
      return false;
    return (boxes[a].simple && boxes[b].simple) || problem.liveTogether(a, b);
  }

  static constexpr size_t maxInTable = 1 << 15; ///< items: 128 MiB

  const PackingProblem &problem;
  std::vector<Box> boxes;
  std::vector<llvm::BitVector> table;     ///< whether two items are alive together; empty: too many
  std::vector<std::vector<Placed>> parts; ///< items that live in each part of the time, by offset
};

/// The search for a good order of placement, within a fixed amount of work.
class PackingSearch {
public:
  PackingSearch(const PackingProblem &problem, uint64_t comparisons)
      : placer(problem), count(problem.items.size()), comparisons(comparisons) {
    best.lowerBound = problem.computeLowerBound();
    best.arena = INT64_MAX;
  }

  Packing run(PackingEffort effort) {
    tryGreedyOrders();
    if (effort == PackingEffort::Greedy)
      return best;
    uint64_t tries = comparisons / (uint64_t(count) * count + 1); // one placement compares each pair at most once
    for (uint64_t i = std::min<uint64_t>(tries, 4000); i > 0 && best.arena > best.lowerBound; --i)
      improveOnce();
    return best;
  }

private:
  void tryGreedyOrders() {
    std::vector<unsigned> order(count);
    std::iota(order.begin(), order.end(), 0);
    auto attempt = [&](auto larger) {
      llvm::stable_sort(order, larger);
      for (Fit fit : {Fit::Tightest, Fit::Lowest})
        if (best.arena > best.lowerBound && !isEnough())
          accept(order, fit);
    };
    attempt([&](unsigned a, unsigned b) { return placer.begin(a) < placer.begin(b); });
    attempt([&](unsigned a, unsigned b) { return placer.length(a) > placer.length(b); });
    attempt([&](unsigned a, unsigned b) {
      return static_cast<__int128>(placer.size(a)) * placer.length(a) >
             static_cast<__int128>(placer.size(b)) * placer.length(b);
    });
    attempt([&](unsigned a, unsigned b) {
      return std::pair(-placer.size(a), -placer.length(a)) < std::pair(-placer.size(b), -placer.length(b));
    });
  }

  /// Items of which orders take long may stay above the bound by 1/256.
  bool isEnough() const {
    return orders * count * count / 4 > comparisons && best.arena - best.lowerBound <= best.lowerBound / 256;
  }

  /// Keeps the order if its arena is no larger.
  bool accept(llvm::ArrayRef<unsigned> order, Fit fit) {
    ++orders;
    std::optional<Packing> packing = placer.place(order, fit, best.arena);
    if (!packing)
      return false;
    packing->lowerBound = best.lowerBound;
    best = std::move(*packing);
    bestOrder.assign(order.begin(), order.end());
    bestFit = fit;
    return true;
  }

  /// Moves one of the items that reach the top to an earlier place, mostly far to the front.
  void improveOnce() {
    std::vector<unsigned> top;
    for (unsigned place = 0; place < count; ++place)
      if (best.offsets[bestOrder[place]] + placer.size(bestOrder[place]) == best.arena)
        top.push_back(place);
    unsigned from = top[next() % top.size()], to = next() % (from + 1);
    std::vector<unsigned> order = bestOrder;
    std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
    if (next() % 2)
      std::swap(order[next() % count], order[next() % count]);
    accept(order, next() % 8 == 0 ? (bestFit == Fit::Lowest ? Fit::Tightest : Fit::Lowest) : bestFit);
  }

  /// A fixed sequence of numbers (Numerical Recipes' linear congruential generator).
  unsigned next() { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; }

  Placer placer;
  unsigned count;
  uint64_t comparisons; ///< that may be made
  uint64_t orders = 0;  ///< that were tried
  Packing best;
  std::vector<unsigned> bestOrder;
  Fit bestFit = Fit::Tightest;
  uint64_t state = 1;
};

} // namespace

llvm::Expected<Packing> PackingProblem::solve(PackingEffort effort, uint64_t comparisons) const {
  if (llvm::Error error = check())
    return error;
  if (items.empty())
    return Packing();
  Packing packing = PackingSearch(*this, comparisons).run(effort);
  return packing;
}

// Some order of placement at the lowest free offset is optimal: the order of the offsets in an optimal packing, since
// each item ends up no higher than there. So this tries all orders, and prunes those whose arena is no smaller.
int64_t PackingProblem::solveExhaustively() const {
  Placer placer(*this);
  int64_t best = INT64_MAX, bound = computeLowerBound();
  std::vector<bool> used(items.size(), false);
  auto extend = [&](auto &self, unsigned depth, int64_t arena) -> void {
    if (arena >= best || best == bound)
      return;
    if (depth == items.size()) {
      best = arena;
      return;
    }
    for (unsigned item = 0; item < items.size(); ++item) {
      if (used[item])
        continue;
      used[item] = true;
      int64_t offset = placer.placeOne(item, Fit::Lowest);
      self(self, depth + 1, std::max(arena, offset + placer.size(item)));
      placer.remove(item);
      used[item] = false;
    }
  };
  extend(extend, 0, 0);
  return best;
}
