// Runs a bundle on made-up data and tells what came out.
#pragma once

#include "par/data/Data.h"
#include "par/session/Session.h"
#include "par/sim/World.h"

namespace par::toy {

/// Rows made up from their number: sines where an input takes floats, numbers below its limit where integers.
class MadeUpRows : public core::Dataset {
public:
  explicit MadeUpRows(const format::Manifest &manifest) : count(2 * manifest.batch) {}
  uint64_t rows() const override { return count; }
  std::string describe() const override { return "made-up rows"; }
  bool has(const std::string &) const override { return true; }
  std::string feeds() const override { return "made-up rows feed all"; }
  const std::byte *row(const format::Input &input, uint64_t row, std::vector<std::byte> &scratch) const override;
  const std::byte *whole(const format::Input &input) const override;

private:
  uint64_t count;
  mutable std::vector<std::byte> wholeInput;
};

/// How a bundle ran.
struct Ran {
  std::string trouble;                     ///< "" if nothing was wrong
  uint64_t digest = 0;                     ///< of all tensors and all results of all ranks
  std::vector<std::vector<double>> values; ///< the floats of each of them, where they were asked for
  /// When each step of rank 0's last run ran; on the device `sim` in steps of all ranks.
  std::vector<core::Stamp> stamps;
};

/// Initialises, and runs every entry twice, on the device `cpu` or, with `world`, on `sim`; all ranks as
/// threads. `folder` is where the bundle's kernels lie.
Ran runBundle(const format::Bundle &bundle, const std::string &folder, std::shared_ptr<sim::World> world = nullptr,
              bool withValues = false);
/// The same on `sim`.
Ran simulate(const format::Bundle &bundle, const std::string &folder, const sim::Options &options);
/// Runs on the device `cpu` in a process of its own, for at most `seconds`; with values.
Ran runApart(const format::Bundle &bundle, const std::string &folder, unsigned seconds);
/// The largest difference of two runs, relative to the largest number of each tensor and result; infinite where their
/// forms differ, or numbers are no more finite.
double largestDifference(const Ran &a, const Ran &b);
/// simulate() in a process of its own, which a kernel may crash, or loop in for a minute.
Ran simulateApart(const format::Bundle &bundle, const std::string &folder, const sim::Options &options);

} // namespace par::toy
