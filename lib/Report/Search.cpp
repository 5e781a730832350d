// Text of what a search has found: the plan, its alternatives, and why.
#include "par/Report/Search.h"

#include "par/Inspect/Prediction.h"
#include "par/Report/Text.h"
#include "par/Search/Reasons.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;

namespace par {

static std::string counted(size_t count, StringRef what) {
  return formatv("{0} {1}{2}", count, what, count == 1 ? "" : "s");
}

static std::string figures(const SearchedPlan &plan) {
  const Estimate &known = plan.known();
  return formatv("step {0}, peak {1}{2}", formatTime(known.stepNs), humanBytes(double(known.peak)),
                 known.recomputes ? " with recomputation" : "");
}

/// By how many percent `slower` is above `ns`.
static std::string percentAbove(int64_t slower, int64_t ns) {
  return formatv("{0:f1}", ns > 0 ? 100.0 * double(slower - ns) / double(ns) : 0.0);
}

static std::string sentenceOf(const SearchFacts::Reason &reason) {
  if (reason.second.empty())
    return "no other value is possible or fits";
  // An estimated one may be faster: it was not compiled, since that is no more than what a search tolerates.
  return formatv("second {0}{1}, {2}{3:f1} % {4}", reason.second,
                 reason.others.empty() ? "" : " (with " + reason.others + ")", reason.compiled ? "" : "estimated ",
                 std::abs(reason.slowerPercent), reason.slowerPercent < 0 ? "faster" : "slower");
}

SearchFacts describeSearch(const SearchResult &result, size_t alternatives) {
  SearchFacts facts;
  facts.ranks = result.space.ranks;
  facts.candidates = result.candidates;
  facts.compiled = result.compiled;
  facts.layers = result.layers;
  facts.boundNs = result.boundNs;
  if (!result.plans.empty() && result.boundNs > 0)
    facts.gapPercent = 100.0 * double(result.plans.front().known().stepNs - result.boundNs) / double(result.boundNs);
  if (!result.plans.empty()) {
    facts.settings = result.settings();
    if (result.space.stages) // the user's
      erase_if(facts.settings, [](StringRef setting) { return setting.starts_with("pipeline.stages="); });
    for (const KeyReason &reason : explainKeys(result))
      facts.reasons.push_back(
          {reason.key, reason.value, reason.second, reason.slowerPercent, reason.others, reason.played});
  }
  for (const SearchedPlan &plan : ArrayRef(result.plans).take_front(alternatives)) {
    const Estimate &known = plan.known();
    facts.alternatives.push_back({describeCandidate(plan.candidate), known.stepNs, known.peak,
                                  slowerPercent(plan, result.plans.front()), plan.played.has_value(),
                                  known.recomputes});
  }
  if (result.fewest) {
    const Estimate &known = result.fewest->plan.known();
    facts.fewest = {result.fewest->ranks, describeCandidate(result.fewest->plan.candidate), known.stepNs, known.peak,
                    result.fewest->mayDo};
  }
  return facts;
}

void printReasons(const SearchFacts &facts, raw_ostream &os) {
  for (const SearchFacts::Reason &reason : facts.reasons)
    os << "  " << reason.key << " = " << reason.value << "; " << sentenceOf(reason) << "\n";
}

/// Cores of a host that are fewer than its ranks; nothing where each rank has its own.
static std::optional<int64_t> sharedCores(const SearchResult &result) {
  if (!result.best)
    return std::nullopt;
  const Hardware here = result.best->planned.hardware.onThisHost();
  int64_t ranks = here.hasHosts() ? std::min(here.ranks, result.space.ranks) : result.space.ranks;
  return here.cores > 0 && here.cores < ranks ? std::optional(here.cores) : std::nullopt;
}

void printSearch(const SearchResult &result, raw_ostream &os) {
  os << "search  " << counted(result.candidates, "plan") << " for " << counted(result.space.ranks, "rank") << ": ";
  if (!result.layers.empty())
    os << counted(result.profiles, "compilation") << " with one and two layers of " << result.layers << "; ";
  os << counted(result.compiled, "plan") << " compiled whole\n";
  if (result.plans.empty())
    return;
  const SearchedPlan &best = result.plans.front();
  int64_t ns = best.known().stepNs;
  os << "best    " << describeCandidate(best.candidate) << ": " << figures(best);
  if (best.played && !result.layers.empty())
    os << " (estimated from its layers: " << formatTime(best.estimate.stepNs) << ", "
       << humanBytes(double(best.estimate.peak)) << ")";
  os << "\n";
  if (std::optional<int64_t> cores = sharedCores(result))
    os << "  times of a search are of ranks with cores of their own, whatever this machine has; here "
       << counted(*cores, "core") << (*cores == 1 ? " is" : " are") << " shared, which \"predicted step\" counts\n";
  if (result.boundNs > 0)
    os << "bound   no plan of these takes less than " << formatTime(result.boundNs)
       << ", by the profiles of their layers (local work, communication of tensor axes, exchange of gradients): gap "
       << percentAbove(ns, result.boundNs) << " %\n";
  if (result.boundNs > 0 && result.left)
    os << "  " << result.left
       << " of them were not profiled: their bounds say that they do not fit, or gain too little\n";
  printReasons(describeSearch(result, 0), os);
}

void printAssumed(const SearchResult &result, raw_ostream &os) {
  const PlannedModel &planned = result.best->planned;
  if (std::optional<double> gain = gainOfBf16(planned))
    os << formatv("note    precision is f32, as the plan says none; {0} has {1:f0} times as many FLOP/s in bf16: --set "
                  "precision=bf16\n",
                  planned.hardware.name, *gain);
}

void printAlternatives(const SearchResult &result, size_t most, raw_ostream &os) {
  os << "alternatives      step    slower        peak\n";
  for (const SearchedPlan &plan : ArrayRef(result.plans).take_front(most)) {
    const Estimate &known = plan.known();
    os << (plan.played ? "  compiled " : "  estimated") << right_justify(formatTime(known.stepNs), 11)
       << right_justify(formatv("{0:f1} %", slowerPercent(plan, result.plans.front())).str(), 10)
       << right_justify(humanBytes(double(known.peak)), 12) << "  " << describeCandidate(plan.candidate)
       << (known.recomputes ? ", with recomputation" : "") << "\n";
  }
  if (result.plans.size() > most)
    os << "  and " << result.plans.size() - most << " more that fit\n";
  const SearchedPlan *best = result.plans.empty() ? nullptr : &result.plans.front();
  auto isEstimated = [](const SearchedPlan &plan) { return !plan.played; };
  if (best && best->played && any_of(ArrayRef(result.plans).take_front(most), isEstimated))
    os << "  \"slower\" compares an estimated plan with the estimate of the best one, "
       << formatTime(best->estimate.stepNs) << "\n";
}

void printFewest(const SearchResult &result, raw_ostream &os) {
  if (!result.fewest)
    return;
  os << "fewest  " << counted(result.fewest->ranks, "rank") << ": " << describeCandidate(result.fewest->plan.candidate)
     << ": " << figures(result.fewest->plan) << (result.fewest->plan.played ? "" : " (estimated from its layers)");
  if (result.fewest->mayDo)
    os << "; " << counted(result.fewest->mayDo, "rank") << " may do, not compiled: --fit with as many says";
  os << "\n";
}

void printLargest(const RoleOverTime &role, raw_ostream &os) {
  os << "largest at the peak of " << nameOfRole(role.role) << "\n";
  for (const PeakValues &values : role.largest)
    os << right_justify(humanBytes(double(values.bytes)), 11) << "  " << left_justify(values.purpose, 8) << values.count
       << " x " << values.type << "  " << values.name << "\n";
}

/// "mesh.dp" is of the key "mesh".
static bool isWithin(StringRef path, StringRef key) {
  return path.consume_front(key) && (path.empty() || path.front() == '.');
}

std::string markFound(const SearchFacts &search, StringRef plan) {
  std::vector<SearchFacts::Reason> reasons = search.reasons;
  std::string text;
  SmallVector<std::pair<size_t, std::string>> above; // the keys that a line lies in, with their indents
  for (StringRef line : split(plan.rtrim('\n'), '\n')) {
    size_t indent = line.size() - line.ltrim().size();
    while (!above.empty() && above.back().first >= indent)
      above.pop_back();
    std::string key = line.trim().split(':').first.str();
    above.emplace_back(indent, above.empty() ? key : above.back().second + "." + key);
    StringRef path = above.back().second, rest = line;
    bool isFound = any_of(search.settings, [&](StringRef setting) { return isWithin(path, setting.split('=').first); });
    if (!isFound || !rest.consume_back("# --set")) {
      text += (line + "\n").str();
      continue;
    }
    text += (rest + "# --auto").str();
    auto reason = find_if(reasons, [&](const SearchFacts::Reason &each) { return isWithin(path, each.key); });
    if (reason != reasons.end()) {
      text += ": " + sentenceOf(*reason);
      reasons.erase(reason); // once, where the key begins
    }
    text += "\n";
  }
  return text;
}

std::string commentReasons(const SearchResult &result) {
  std::string text;
  raw_string_ostream os(text);
  const SearchedPlan &best = result.plans.front();
  os << "# Found by par-compile --auto: " << describeCandidate(best.candidate) << "; " << figures(best)
     << "; by profiles none of " << counted(result.candidates, "plan") << " takes less than "
     << formatTime(result.boundNs) << "\n";
  for (const SearchFacts::Reason &reason : describeSearch(result, 0).reasons)
    os << "# " << reason.key << " = " << reason.value << "; " << sentenceOf(reason) << "\n";
  return text;
}

} // namespace par
