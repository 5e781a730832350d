#include "par/Search/Reasons.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

namespace {

/// Compares the best plan with the others, key by key.
class KeyComparison {
public:
  explicit KeyComparison(const SearchResult &result) : result(result), best(result.plans.front()) {}

  std::vector<KeyReason> run();

private:
  using ValueOf = function_ref<std::string(const Candidate &)>;
  void add(StringRef key, ValueOf valueOf);
  void addRecompute();
  KeyReason compare(StringRef key, function_ref<std::string(const SearchedPlan &)> valueOf) const;
  std::string describeOthers(StringRef key, const Candidate &other) const;

  const SearchResult &result;
  const SearchedPlan &best;
  std::vector<KeyReason> reasons;
};

} // namespace

/// "12 rules over tp"
static std::string describeRules(StringRef setting) {
  size_t rules = setting.count(": tp}");
  return std::to_string(rules) + (rules == 1 ? " rule" : " rules") + " over tp";
}

/// Other keys than `key` in which a plan differs: a value that would be refused by itself is told with them.
std::string KeyComparison::describeOthers(StringRef key, const Candidate &other) const {
  const Candidate &own = best.candidate;
  std::vector<std::string> parts;
  bool sameMesh = describeMesh(own) == describeMesh(other);
  if (!sameMesh && key != "mesh")
    parts.push_back(describeMesh(other));
  if (sameMesh && own.rules() != other.rules() && key != "shard")
    parts.push_back("other rules over tp");
  if (own.zero != other.zero && key != "zero.level")
    parts.push_back("zero " + std::to_string(other.zero));
  if (other.stages > 1 && own.schedule != other.schedule && key != "pipeline.schedule")
    parts.push_back(other.schedule);
  if (own.microbatches != other.microbatches && key != "batch.microbatches")
    parts.push_back(std::to_string(other.microbatches) + (other.microbatches == 1 ? " microbatch" : " microbatches"));
  return join(parts, ", ");
}

KeyReason KeyComparison::compare(StringRef key, function_ref<std::string(const SearchedPlan &)> valueOf) const {
  KeyReason reason;
  reason.key = key.str();
  reason.value = valueOf(best);
  std::optional<std::pair<bool, double>> least; // plans that were played come first: estimates err
  for (const SearchedPlan &plan : result.plans) {
    std::string value = valueOf(plan);
    std::pair<bool, double> order{!plan.played, slowerPercent(plan, best)};
    if (value == reason.value || (least && order >= *least))
      continue;
    least = order;
    reason.second = value;
    reason.slowerPercent = order.second;
    reason.played = plan.played && best.played;
    reason.others = describeOthers(key, plan.candidate);
  }
  return reason;
}

void KeyComparison::add(StringRef key, ValueOf valueOf) {
  reasons.push_back(compare(key, [&](const SearchedPlan &plan) { return valueOf(plan.candidate); }));
}

void KeyComparison::addRecompute() {
  reasons.push_back(compare("recompute", [](const SearchedPlan &plan) {
    return plan.known().recomputes ? std::string("auto") : std::string("none");
  }));
}

std::vector<KeyReason> KeyComparison::run() {
  const OpenKeys &open = result.space.open;
  if (best.candidate.offloads) {
    KeyReason &reason = reasons.emplace_back();
    reason.key = "offload";
    reason.value = "[states]";
  }
  if (open.mesh)
    add("mesh", describeMesh);
  if (open.recipe && best.candidate.tensor > 1)
    add("shard", [&](const Candidate &candidate) {
      return candidate.tensor > 1 ? describeRules(result.space.shardingOf(candidate)) : std::string("none");
    });
  if (open.microbatches)
    add("batch.microbatches", [](const Candidate &candidate) { return std::to_string(candidate.microbatches); });
  if (open.zero && result.space.trains)
    add("zero.level", [](const Candidate &candidate) { return std::to_string(candidate.zero); });
  if (open.schedule && best.candidate.stages > 1 && result.space.trains)
    add("pipeline.schedule",
        [](const Candidate &candidate) { return candidate.stages > 1 ? candidate.schedule : std::string("none"); });
  if (open.recompute && best.known().recomputes)
    addRecompute();
  return std::move(reasons);
}

std::vector<KeyReason> explainKeys(const SearchResult &result) { return KeyComparison(result).run(); }

double slowerPercent(const SearchedPlan &plan, const SearchedPlan &best) {
  bool bothPlayed = plan.played && best.played;
  int64_t own = bothPlayed ? plan.played->stepNs : plan.estimate.stepNs;
  int64_t other = bothPlayed ? best.played->stepNs : best.estimate.stepNs;
  return 100.0 * double(own - other) / double(std::max<int64_t>(1, other));
}

} // namespace par
