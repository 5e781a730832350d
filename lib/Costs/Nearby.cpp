#include "Nearby.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace par;

int64_t par::doublings(int64_t count) {
  if (count <= 1)
    return 0;
  unsigned whole = llvm::Log2_64(count);
  constexpr unsigned bits = 10;
  uint64_t rest = static_cast<uint64_t>(count) - (uint64_t(1) << whole);
  return (int64_t(whole) << bits) +
         static_cast<int64_t>(whole > bits ? rest >> (whole - bits) : rest << (bits - whole));
}

/// ns that any work of the rows' kind takes beside what grows with it: where the line through the mean of the half of
/// the rows with less work and that of the other half begins (Wald 1940).
int64_t Nearby::constant() const {
  constexpr size_t fewest = 6;
  if (!reach.hasConstant || rows.size() < fewest)
    return 0;
  llvm::SmallVector<std::pair<int64_t, int64_t>> points;
  for (const Row &row : rows)
    points.emplace_back(row.model, row.measured);
  llvm::sort(points);
  auto meansOf = [](llvm::ArrayRef<std::pair<int64_t, int64_t>> half) {
    __int128 model = 0, measured = 0;
    for (auto [one, other] : half)
      model += one, measured += other;
    auto count = static_cast<__int128>(half.size());
    return std::pair(model / count, measured / count);
  };
  auto [less, ofLess] = meansOf(llvm::ArrayRef(points).take_front(points.size() / 2));
  auto [more, ofMore] = meansOf(llvm::ArrayRef(points).drop_front(points.size() / 2));
  if (more <= less)
    return 0;
  __int128 begin = ofLess - std::max<__int128>(ofMore - ofLess, 0) * less / (more - less);
  return static_cast<int64_t>(std::max<__int128>(begin, 0));
}

/// Ratios are in 1/65536.
static constexpr int64_t one = 1 << 16;

Cost Nearby::costOf(int64_t model) const {
  if (exactCount > 0)
    return {exactSum / exactCount, CostSource::Measured};
  if (nearest > reach.farthest)
    return {model};
  constexpr int64_t soft = doubling / 64; // rows that are nearer than this weigh as much as one at this distance
  int64_t end = std::min(nearest + window, reach.farthest), begin = constant();
  __int128 ratios = 0, begins = 0, weights = 0;
  for (const Row &row : rows) {
    if (row.most > end)
      continue;
    __int128 square = static_cast<__int128>(row.sum + soft) * (row.sum + soft);
    __int128 weight = (static_cast<__int128>(end + 1 - row.most) << 62) / (square * square);
    int64_t ofRow = std::min(begin, row.measured - row.measured / 8); // some of a row always grows with the work
    __int128 ratio = static_cast<__int128>(row.measured - ofRow) * one / row.model;
    ratios += std::min(ratio, static_cast<__int128>(1) << 40) * weight;
    begins += ofRow * weight;
    weights += weight;
  }
  __int128 time = begins / weights + model * (ratios / weights) / one;
  if (nearest > reach.kept)
    time = model + (time - model) * (reach.farthest - nearest) / (reach.farthest - reach.kept);
  time = std::clamp(time, static_cast<__int128>(1), static_cast<__int128>(1) << 56);
  return {static_cast<int64_t>(time), CostSource::Table, nearest * 1000 / doubling};
}
