// Branch and bound over what is profiled: candidates of one tensor degree and number of samples share a profile, and
// before it is made, those that are there bound it.
#include "ProfileSpace.h"

#include "par/Search/Bound.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace par {

namespace {

/// Candidates that share a profile.
struct Branch {
  std::vector<Candidate> candidates;
  /// The least of their bounds by other profiles; nothing: these say nothing, or none can fit.
  std::optional<int64_t> bound;
  bool isBounded = false; ///< by other profiles
};

class SpaceProfiler {
public:
  SpaceProfiler(Profiler &profiler, const Space &space, const Machine &machine, std::optional<uint64_t> limit)
      : profiler(profiler), space(space), machine(machine), limit(limit) {}

  ProfiledSpace run(std::vector<Candidate> candidates, int64_t tolerance, bool everything, BestSoFar tell);

private:
  void makeBranches(std::vector<Candidate> candidates);
  void bound(Branch &branch) const;
  /// The branch to profile next: one that has no bound yet, else that with the lowest.
  std::vector<Branch>::iterator next();
  void profile(const Branch &branch);
  bool isWorthIt(const Branch &branch, int64_t tolerance) const;
  /// Profiles single samples, which need fewest bytes: nothing fits.
  void profileLeanest();

  Profiler &profiler;
  const Space &space;
  const Machine &machine;
  const std::optional<uint64_t> limit;
  std::vector<Branch> branches; ///< not profiled
  std::vector<Branch> lean;     ///< left out, since no plan of them fits with its states; those of fewest samples
  int64_t best = INT64_MAX;     ///< estimate of a plan that fits
  size_t bestPlace = 0;         ///< of it among `out.plans`
  ProfiledSpace out;
};

} // namespace

void SpaceProfiler::makeBranches(std::vector<Candidate> candidates) {
  llvm::stable_sort(candidates, [](const Candidate &a, const Candidate &b) {
    return std::tuple(a.tensor, a.rules(), a.samples, -a.zero) < std::tuple(b.tensor, b.rules(), b.samples, -b.zero);
  });
  std::map<Profiler::Key, size_t> places;
  for (Candidate &candidate : candidates) {
    auto [place, fresh] = places.try_emplace(profiler.keyOf(candidate), branches.size());
    if (fresh)
      branches.emplace_back();
    branches[place->second].candidates.push_back(std::move(candidate));
  }
}

void SpaceProfiler::bound(Branch &branch) const {
  std::optional<ModelCost> cost = profiler.lowerCost(branch.candidates.front());
  branch.isBounded = cost.has_value();
  branch.bound.reset();
  for (const Candidate &candidate : branch.candidates)
    if (cost)
      if (std::optional<int64_t> ns = boundNs(candidate, *cost, space, machine, limit))
        branch.bound = std::min(branch.bound.value_or(INT64_MAX), *ns);
}

std::vector<Branch>::iterator SpaceProfiler::next() {
  for (Branch &branch : branches)
    bound(branch);
  auto isGone = [](const Branch &branch) { return branch.isBounded && !branch.bound; }; // none of its plans can fit
  for (const Branch &branch : branches)
    if (isGone(branch)) {
      out.left += branch.candidates.size();
      if (branch.candidates.front().samples == 1 || !space.open.microbatches)
        lean.push_back(branch);
    }
  erase_if(branches, isGone);
  return min_element(branches, [](const Branch &a, const Branch &b) { return a.bound < b.bound; });
}

void SpaceProfiler::profile(const Branch &branch) {
  for (const Candidate &candidate : branch.candidates) {
    const std::optional<ModelCost> &cost = profiler.costOf(candidate);
    if (!cost)
      return;
    SearchedPlan plan{candidate, estimate(candidate, *cost, space, machine, limit), std::nullopt};
    std::optional<int64_t> ns = boundNs(candidate, *cost, space, machine, limit);
    if (plan.estimate.fits && plan.estimate.stepNs < best) {
      best = plan.estimate.stepNs;
      bestPlace = out.plans.size();
    }
    plan.boundNs = ns.value_or(INT64_MAX);
    out.bounds.push_back(plan.boundNs);
    out.plans.push_back(std::move(plan));
  }
}

bool SpaceProfiler::isWorthIt(const Branch &branch, int64_t tolerance) const {
  return !branch.bound || best == INT64_MAX || best - *branch.bound > *branch.bound * tolerance / 1000;
}

void SpaceProfiler::profileLeanest() {
  for (const Branch &branch : lean) {
    out.left -= branch.candidates.size();
    profile(branch);
  }
}

ProfiledSpace SpaceProfiler::run(std::vector<Candidate> candidates, int64_t tolerance, bool everything,
                                 BestSoFar tell) {
  makeBranches(std::move(candidates));
  if (everything) {
    for (const Branch &branch : branches)
      profile(branch);
    branches.clear();
  }
  int64_t bound = INT64_MAX;
  for (auto branch = next(); branch != branches.end(); branch = next()) {
    if (!isWorthIt(*branch, tolerance)) {
      bound = *branch->bound; // of all that are left
      break;
    }
    if (best != INT64_MAX && branch->bound)
      tell(out.plans[bestPlace], *branch->bound);
    Branch chosen = std::move(*branch);
    branches.erase(branch);
    profile(chosen);
  }
  for (const Branch &branch : branches)
    out.left += branch.candidates.size();
  if (best == INT64_MAX)
    profileLeanest();
  for (int64_t ns : out.bounds)
    bound = std::min(bound, ns);
  out.boundNs = bound == INT64_MAX ? 0 : bound;
  return std::move(out);
}

ProfiledSpace profileSpace(std::vector<Candidate> candidates, Profiler &profiler, const Space &space,
                           const Machine &machine, std::optional<uint64_t> limit, int64_t tolerance, bool everything,
                           BestSoFar tell) {
  return SpaceProfiler(profiler, space, machine, limit).run(std::move(candidates), tolerance, everything, tell);
}

} // namespace par
