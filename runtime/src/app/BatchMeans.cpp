#include "BatchMeans.h"

#include <limits>

namespace par::core {

bool isMeanOfSamples(const format::Output &output) {
  return !output.mean.empty() && !output.mean.starts_with("batch(");
}

/// The number of labels or samples that a scalar of a batch is the mean of.
static double weightOf(const format::Output &output, const std::map<std::string, double> &scalars, uint64_t batch) {
  if (!isMeanOfSamples(output))
    return 1;
  auto count = scalars.find(output.mean);
  return count == scalars.end() ? static_cast<double>(batch) : count->second;
}

bool BatchMeans::counts(const format::Output &output, const std::map<std::string, double> &scalars) {
  return weightOf(output, scalars, 1) != 0;
}

void BatchMeans::add(const std::map<std::string, double> &scalars, double share, bool whole) {
  for (const format::Output &output : manifest.outputs) {
    auto found = scalars.find(output.name);
    if (found == scalars.end() || (!whole && !isMeanOfSamples(output)))
      continue;
    double weight = share * weightOf(output, scalars, manifest.batch);
    if (weight == 0) // 0 / 0
      continue;
    Sum &sum = sums[output.name];
    sum.value += weight * found->second;
    sum.weight += weight;
  }
}

std::map<std::string, double> BatchMeans::means() const {
  std::map<std::string, double> means;
  for (const format::Output &output : manifest.outputs) {
    auto found = sums.find(output.name);
    bool averaged = output.name == "loss" || !output.mean.empty();
    if (averaged && (found != sums.end() || output.name == "loss"))
      means[output.name] = found == sums.end() || found->second.weight == 0
                               ? std::numeric_limits<double>::quiet_NaN()
                               : found->second.value / found->second.weight;
  }
  return means;
}

} // namespace par::core
