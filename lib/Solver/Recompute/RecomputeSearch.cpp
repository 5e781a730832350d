#include "par/Solver/Recompute/RecomputeSearch.h"
#include "ChoiceSearch.h"
#include "PriceSearch.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;

struct RecomputeSearch::State {
  explicit State(const RecomputeProblem &problem)
      : problem(problem), states(problem), prices(problem, peaks, states), tolerance(toleranceOf(problem)) {}

  const RecomputeProblem &problem;
  std::vector<BytePeak> peaks;
  ChoiceStates states;
  PriceSearch prices;
  int64_t tolerance;
};

int64_t RecomputeSearch::toleranceOf(const RecomputeProblem &problem) {
  constexpr size_t large = 1024;
  constexpr int64_t parts = 1024;
  if (problem.values.size() < large)
    return 0;
  int64_t all = 0;
  for (const ForwardValue &value : problem.values)
    all += value.cost;
  return all / parts;
}

RecomputeSearch::RecomputeSearch(const RecomputeProblem &problem) : state(std::make_unique<State>(problem)) {}
RecomputeSearch::~RecomputeSearch() = default;

bool RecomputeSearch::addPeak(BytePeak peak) { return state->prices.addPeak(std::move(peak)); }
std::pair<int64_t, int64_t> RecomputeSearch::getMinimum() const { return state->prices.getMinimum(); }
void RecomputeSearch::improve(int64_t enough) { state->prices.improve(state->tolerance, enough); }
int64_t RecomputeSearch::getBound() const { return state->prices.getBound(); }
int64_t RecomputeSearch::getTolerance() const { return state->tolerance; }
const std::optional<RecomputeChoice> &RecomputeSearch::getBest() const { return state->prices.getBest(); }

/// Saves values that need not be moved, the longest copies first: where copies are hidden, they cost nothing, and the
/// search does not tell few from many.
static RecomputeChoice moveLess(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks,
                                RecomputeChoice choice) {
  std::vector<unsigned> moved;
  for (unsigned index = 0; index < choice.moved.size(); ++index)
    if (choice.moved[index])
      moved.push_back(index);
  llvm::stable_sort(
      moved, [&](unsigned one, unsigned other) { return problem.values[one].copyNs > problem.values[other].copyNs; });
  for (unsigned index : moved) {
    std::vector<bool> saved = choice.saved;
    saved[index] = true;
    RecomputeChoice less = problem.evaluate(saved, choice.moved);
    less.minCost = choice.minCost;
    if (less.cost <= choice.cost && problem.fits(less, peaks))
      choice = std::move(less);
  }
  return choice;
}

std::optional<RecomputeChoice> RecomputeSearch::finish(int64_t enough) {
  std::optional<RecomputeChoice> found = getBest();
  if (state->states.areListed())
    found = ChoiceSearch(state->problem, state->peaks, state->states, state->prices.getPrices(),
                         {found, getBound(), enough, state->tolerance})
                .run();
  else if (found)
    found->minCost = std::min(getBound(), found->cost);
  else
    return RecomputeChoice::notFound(getBound());
  return found && found->cost >= 0 ? moveLess(state->problem, state->peaks, *found) : found;
}
