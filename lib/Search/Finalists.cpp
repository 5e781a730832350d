#include "Finalists.h"

#include <map>

namespace par {

/// A group whose best estimate is so many times as long as that of all is not tried.
static constexpr int64_t maxSpread = 2;

Finalists::Finalists(llvm::ArrayRef<SearchedPlan> plans, bool eachGroup, double doubt, std::optional<uint64_t> limit)
    : plans(plans), doubt(doubt), tried(plans.size()), noted(plans.size()), limit(limit) {
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, std::string>, size_t> known;
  for (const SearchedPlan &plan : plans) {
    const Candidate &c = plan.candidate;
    int64_t samples = doubt > 1 && c.stages > 1 ? c.samples : 0;
    auto key = std::tuple(c.data, c.tensor, c.stages, c.rules(), c.chunks, samples, c.schedule);
    groupOf.push_back(known.try_emplace(key, known.size()).first->second);
  }
  groups.resize(known.size(), Group{!eachGroup});
  std::map<std::tuple<std::string, bool, int64_t, bool>, size_t> kin;
  for (const SearchedPlan &plan : plans) {
    const Candidate &c = plan.candidate;
    auto key = std::tuple(c.schedule, c.stages > 1, c.rules(), c.zero == 3);
    kinOf.push_back(kin.try_emplace(key, kin.size()).first->second);
  }
  leanest.resize(kin.size());
}

double Finalists::expected(size_t index) const {
  return static_cast<double>(plans[index].estimate.stepNs) * groups[groupOf[index]].factor;
}

bool Finalists::mayMisfit(size_t index) const {
  bool isSpoiled = groups[groupOf[index]].isSpoiled;
  if (isSpoiled || !limit || bytes == 0)
    return isSpoiled || (limit && !plans[index].estimate.fits);
  // Less is known of plans that are no kin of a misfit: each further one asks for a quarter more room.
  double spare = misfitsInRow > 1 ? 1 + static_cast<double>(misfitsInRow - 1) / 4 : 1;
  double times = leanest[kinOf[index]] > 0 ? leanest[kinOf[index]] : bytes * spare;
  return static_cast<double>(plans[index].estimate.least) * times > static_cast<double>(*limit);
}

std::optional<size_t> Finalists::nextGroup() const {
  for (size_t index = 0; index < plans.size(); ++index)
    if (!groups[groupOf[index]].isTried)
      return plans[index].estimate.stepNs <= maxSpread * plans.front().estimate.stepNs ? std::optional(index)
                                                                                       : std::nullopt;
  return std::nullopt;
}

bool Finalists::mayBeFaster(size_t index) const {
  return !best || expected(index) < doubt * static_cast<double>(*best);
}

/// With doubts, plans that may not fit are tried, too, as long as they may be faster. While none has fitted, those that
/// may not are tried by the bytes that they need.
std::optional<size_t> Finalists::nextExpected(bool must) const {
  std::optional<size_t> least;
  auto orderOf = [&](size_t index) {
    bool misfits = mayMisfit(index), byBytes = misfits && limit && !best && doubt > 1;
    return std::pair(misfits, byBytes ? static_cast<double>(plans[index].estimate.least) : expected(index));
  };
  for (size_t index = 0; index < plans.size(); ++index)
    if (!tried[index] && (doubt == 1 || must || mayBeFaster(index)) && (!least || orderOf(index) < orderOf(*least)))
      least = index;
  return least;
}

std::optional<size_t> Finalists::next(bool must) {
  std::optional<size_t> chosen = nextGroup();
  if (!chosen) {
    chosen = nextExpected(must);
    if (chosen && !must && !mayBeFaster(*chosen))
      return std::nullopt;
  }
  if (chosen) {
    tried[*chosen] = true;
    groups[groupOf[*chosen]].isTried = true;
  }
  return chosen;
}

void Finalists::note(size_t index, const std::optional<Estimate> &played) {
  noted[index] = true;
  Group &group = groups[groupOf[index]];
  const Estimate &estimate = plans[index].estimate;
  if (!played || !played->fits) {
    ++misfitCount;
    group.isSpoiled |= !played;
  }
  if (played && !played->fits) { // so it has recomputed all that it can
    ++misfitsInRow;
    auto over = [&](int64_t estimated) {
      return static_cast<double>(played->peak) / static_cast<double>(std::max<int64_t>(1, estimated));
    };
    bytes = std::max(bytes, over(estimate.recomputes ? estimate.least : estimate.peak));
    leanest[kinOf[index]] = std::max(leanest[kinOf[index]], over(estimate.least));
  }
  if (!played || !played->fits)
    return;
  misfitsInRow = 0;
  int64_t estimated = std::max<int64_t>(1, estimate.stepNs);
  group.factor = static_cast<double>(played->stepNs) / static_cast<double>(estimated);
  best = std::min(best.value_or(INT64_MAX), played->stepNs);
}

std::vector<SearchedPlan> Finalists::untried() const {
  std::vector<SearchedPlan> out;
  for (size_t index = 0; index < plans.size(); ++index)
    if (!noted[index] && !(limit && mayMisfit(index)))
      out.push_back(plans[index]);
  return out;
}

} // namespace par
