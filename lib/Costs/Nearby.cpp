#include "Nearby.h"

#include "llvm/Support/MathExtras.h"

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

/// Ratios are in 1/65536.
static constexpr int64_t one = 1 << 16;

void Nearby::addRatio(int64_t most, int64_t sum, int64_t measured, int64_t model) {
  __int128 ratio = static_cast<__int128>(measured) * one / std::max<int64_t>(model, 1);
  nearest = rows.empty() ? most : std::min(nearest, most);
  rows.push_back({most, sum, static_cast<int64_t>(std::min(ratio, static_cast<__int128>(1) << 40))});
}

Cost Nearby::costOf(int64_t model) const {
  if (exactCount > 0)
    return {exactSum / exactCount, CostSource::Measured};
  if (rows.empty())
    return {model};
  constexpr int64_t soft = doubling / 64; // rows that are nearer than this weigh as much as one at this distance
  int64_t end = std::min(nearest + window, reach.farthest);
  __int128 weighted = 0, weights = 0;
  for (const Row &row : rows)
    if (row.most <= end) {
      __int128 weight = (static_cast<__int128>(end + 1 - row.most) << 40) / ((row.sum + soft) * (row.sum + soft));
      weighted += row.ratio * weight;
      weights += weight;
    }
  __int128 ratio = weighted / weights;
  if (nearest > reach.kept)
    ratio = one + (ratio - one) * (reach.farthest - nearest) / (reach.farthest - reach.kept);
  __int128 time = std::min(model * ratio / one, static_cast<__int128>(1) << 56);
  return {std::max<int64_t>(static_cast<int64_t>(time), 1), CostSource::Table, nearest * 1000 / doubling};
}
