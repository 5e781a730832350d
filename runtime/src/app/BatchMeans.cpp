#include "BatchMeans.h"

#include <algorithm>
#include <limits>

namespace par::core {

bool addsUp(const format::Output &output) { return !output.mean.empty() && !output.mean.starts_with("batch("); }

static bool isSum(const format::Output &output) { return output.mean.starts_with("sum("); }

static bool isOfTerms(const format::Output &output) { return output.mean.starts_with("terms("); }

/// Whether `term` is the result "term(NAME,i)" of the output NAME.
static bool isTermOf(const format::Output &term, const format::Output &output) {
  return term.name.starts_with("term(" + output.name + ",");
}

/// The number of labels or samples that a scalar of a batch is the mean of.
static double weightOf(const format::Output &output, const std::map<std::string, double> &scalars, uint64_t batch) {
  if (!addsUp(output) || isSum(output))
    return 1;
  auto count = scalars.find(output.mean);
  return count == scalars.end() ? static_cast<double>(batch) : count->second;
}

bool BatchMeans::counts(const format::Output &output, const std::map<std::string, double> &scalars) const {
  if (!isOfTerms(output))
    return weightOf(output, scalars, 1) != 0;
  return std::all_of(manifest.outputs.begin(), manifest.outputs.end(), [&](const format::Output &term) {
    return !isTermOf(term, output) || weightOf(term, scalars, 1) != 0;
  });
}

void BatchMeans::add(const std::map<std::string, double> &scalars, double share, bool whole) {
  for (const format::Output &output : manifest.outputs) {
    auto found = scalars.find(output.name);
    if (found == scalars.end() || isOfTerms(output) || (!whole && !addsUp(output)))
      continue;
    double weight = share * weightOf(output, scalars, manifest.batch);
    if (weight == 0) // 0 / 0
      continue;
    Sum &sum = sums[output.name];
    sum.value += weight * found->second;
    sum.weight = isSum(output) ? 1 : sum.weight + weight;
  }
}

/// NaN if nothing of it counts.
double BatchMeans::valueOf(const format::Output &output) const {
  double value = 0;
  if (isOfTerms(output)) {
    for (const format::Output &term : manifest.outputs)
      if (isTermOf(term, output))
        value += valueOf(term);
    return value;
  }
  auto found = sums.find(output.name);
  return found == sums.end() || found->second.weight == 0 ? std::numeric_limits<double>::quiet_NaN()
                                                          : found->second.value / found->second.weight;
}

std::map<std::string, double> BatchMeans::means() const {
  std::map<std::string, double> means;
  for (const format::Output &output : manifest.outputs) {
    bool isShown = output.name == "loss" || (!output.mean.empty() && !output.name.starts_with("term("));
    if (isShown && (sums.count(output.name) || isOfTerms(output) || output.name == "loss"))
      means[output.name] = valueOf(output);
  }
  return means;
}

} // namespace par::core
