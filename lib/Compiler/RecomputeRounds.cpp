#include "RecomputeRounds.h"

namespace par {

static constexpr int maxRounds = 3;
static constexpr int64_t all = int64_t(1) << 50;

int64_t RecomputeRounds::next(int64_t excess, uint64_t first, uint64_t peak) const {
  if (rounds == maxRounds)
    return all;
  if (excess == 0)
    return static_cast<int64_t>(peak - *limit);
  if (peak >= first)
    return 2 * excess;
  __int128 scaled = __int128(excess) * (first - *limit) / (first - peak);
  return static_cast<int64_t>(std::min<__int128>(scaled + scaled / 8, all)); // the last bytes bring least
}

bool RecomputeRounds::start(const format::Bundle &bundle, llvm::ArrayRef<StageRecompute> outcomes,
                            PlanRecompute &recompute) {
  if (!limit || rounds++ == maxRounds)
    return false;
  bool isAbove = false;
  for (const format::Program &program : bundle.programs) {
    uint64_t peak = program.arena.state + program.arena.pool;
    firstPeaks.try_emplace(program.name, peak);
    bool isSmallest = llvm::any_of(
        outcomes, [&](const StageRecompute &outcome) { return "s" + outcome.stages == program.name && !outcome.fits; });
    if (peak <= *limit || isSmallest)
      continue;
    isAbove = true;
    int64_t &excess = recompute.excess[program.name];
    excess = next(excess, firstPeaks[program.name], peak);
  }
  return isAbove;
}

} // namespace par
