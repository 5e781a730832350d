// A whole run of par-run: what is opened before ranks exist, and what every rank then does.
#pragma once

#include "par/app/Options.h"
#include "par/save/Checkpoint.h"

#include <chrono>

namespace par::core {

/// Everything that is checked and opened once, before ranks start; ranks share it read-only.
struct Job {
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  RunOptions options;
  format::Bundle bundle;
  std::string name; ///< the bundle as typed, without a trailing slash
  std::unique_ptr<Dataset> dataset, evalDataset;
  std::optional<WeightStore> weights; ///< absent with --init and --resume
  std::optional<Checkpoint> checkpoint;
  std::shared_ptr<SaveFolder> saves; ///< of --save, where rank 0 runs
  std::string remark;                ///< lines for the user from opening these; "" for none
  std::string dataSample;            ///< identifies the data of this job
  uint64_t seed = 0;
  std::shared_ptr<sim::World> world; ///< of --device sim
  bool shuffled = true;
  bool alone = false; ///< of one rank, whose command line other ranks have not read
  uint64_t steps = 0; ///< last step of training

  /// The device to run on: the bundle's, unless --device names another.
  std::string device() const;
  /// Adds a line to `remark`.
  void tell(const std::string &line) { remark += (remark.empty() ? "" : "\n") + line; }
  bool trains() const { return !options.eval && !predicts(); }
  /// Asked for results, or the bundle gives nothing else.
  bool predicts() const;
  /// Whether an input has samples. Without any, each step is fed the same values.
  bool isSampled() const;
  /// Rows that make an epoch: those of the data, or a batch where no input has samples.
  uint64_t rowsOf(const Dataset *data) const;
};

/// Reads and verifies the bundle, checks the machine, opens data and weights. Throws Failure.
Job prepareJob(const RunOptions &options);
/// Runs one rank; returns its exit code.
int runRank(const Job &job, comm::Control &control);
/// par-run's main without the reading of arguments: returns the exit code and prints errors.
int runTool(const RunOptions &options);

} // namespace par::core
