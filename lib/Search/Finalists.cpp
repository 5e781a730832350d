#include "Finalists.h"

#include <map>

namespace par {

/// A group whose best estimate is so many times as long as that of all is not tried.
static constexpr int64_t maxSpread = 2;

Finalists::Finalists(llvm::ArrayRef<SearchedPlan> plans, bool eachGroup, double doubt)
    : plans(plans), doubt(doubt), tried(plans.size()), noted(plans.size()) {
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, std::string>, size_t> known;
  for (const SearchedPlan &plan : plans) {
    const Candidate &c = plan.candidate;
    int64_t samples = doubt > 1 && c.stages > 1 ? c.samples : 0;
    auto key = std::tuple(c.data, c.tensor, c.stages, c.rules(), c.chunks, samples, c.schedule);
    groupOf.push_back(known.try_emplace(key, known.size()).first->second);
  }
  groups.resize(known.size(), Group{!eachGroup});
}

double Finalists::expected(size_t index) const {
  return static_cast<double>(plans[index].estimate.stepNs) * groups[groupOf[index]].factor;
}

std::optional<size_t> Finalists::nextGroup() const {
  for (size_t index = 0; index < plans.size(); ++index)
    if (!groups[groupOf[index]].isTried)
      return plans[index].estimate.stepNs <= maxSpread * plans.front().estimate.stepNs ? std::optional(index)
                                                                                       : std::nullopt;
  return std::nullopt;
}

std::optional<size_t> Finalists::nextExpected() const {
  std::optional<size_t> least;
  auto orderOf = [&](size_t index) { return std::pair(groups[groupOf[index]].isSpoiled, expected(index)); };
  for (size_t index = 0; index < plans.size(); ++index)
    if (!tried[index] && (!least || orderOf(index) < orderOf(*least)))
      least = index;
  return least;
}

std::optional<size_t> Finalists::next(bool must) {
  std::optional<size_t> chosen = nextGroup();
  if (!chosen) {
    chosen = nextExpected();
    if (chosen && !must && best && expected(*chosen) >= doubt * static_cast<double>(*best))
      return std::nullopt;
  }
  if (chosen) {
    tried[*chosen] = true;
    groups[groupOf[*chosen]].isTried = true;
  }
  return chosen;
}

void Finalists::note(size_t index, std::optional<int64_t> ns) {
  noted[index] = true;
  if (!ns) {
    groups[groupOf[index]].isSpoiled = true;
    ++misfitCount;
    return;
  }
  int64_t estimated = std::max<int64_t>(1, plans[index].estimate.stepNs);
  groups[groupOf[index]].factor = static_cast<double>(*ns) / static_cast<double>(estimated);
  best = std::min(best.value_or(INT64_MAX), *ns);
}

std::vector<SearchedPlan> Finalists::untried() const {
  std::vector<SearchedPlan> out;
  for (size_t index = 0; index < plans.size(); ++index)
    if (!noted[index])
      out.push_back(plans[index]);
  return out;
}

} // namespace par
