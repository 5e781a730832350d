// Means and sums of scalar outputs over all samples, from their values of batches.
#pragma once

#include "par/format/Manifest.h"

#include <map>
#include <string>

namespace par::core {

/// Adds up each scalar with the weights that the bundle says (Output::mean), so that the means are those of all samples
/// or labels that count, in batches of whatever size.
class BatchMeans {
public:
  explicit BatchMeans(const format::Manifest &manifest) : manifest(manifest) {}

  /// Adds the scalars of a batch, `share` times. A batch of r samples that others fill up is added once, and the
  /// others' share of a batch that holds nothing else is then taken off: -(batch - r) / batch. Scalars that do not
  /// add up are passed over where `whole` is false.
  void add(const std::map<std::string, double> &scalars, double share = 1, bool whole = true);
  /// By name, sums as sums; NaN where nothing counts.
  std::map<std::string, double> means() const;
  /// Whether a label of the batch counts: whether its value is one.
  bool counts(const format::Output &output, const std::map<std::string, double> &scalars) const;

private:
  double valueOf(const format::Output &output) const;

  struct Sum {
    double value = 0, weight = 0;
  };
  const format::Manifest &manifest;
  std::map<std::string, Sum> sums;
};

/// Whether batches can be filled up: whether the scalar is a mean over samples or labels, a sum, or a sum of these.
bool addsUp(const format::Output &output);

} // namespace par::core
