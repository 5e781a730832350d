// A whole run of par-run: what is opened before ranks exist, and what every rank then does.
#pragma once

#include "par/app/Options.h"
#include "par/comm/job/Launch.h"
#include "par/save/Checkpoint.h"

#include <chrono>
#include <functional>

namespace par::core {

class StartCache;

/// A bundle of the family, beside the one that a job runs.
struct Member {
  std::string name; ///< its folder
  format::Bundle bundle;
};

/// Everything that is checked and opened once, before ranks start; ranks share it read-only.
struct Job {
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  RunOptions options;
  format::Bundle bundle;
  std::string name;           ///< the bundle as typed, without a trailing slash
  std::vector<Member> family; ///< under --shrink: those that an attempt with fewer ranks, or more again, runs
  std::unique_ptr<Dataset> dataset, evalDataset;
  std::optional<WeightStore> weights; ///< absent with --init, --resume and a kept start
  std::optional<Checkpoint> checkpoint;
  std::shared_ptr<StartCache> start; ///< of a session with --cache; if it is filled, there are no `weights`
  std::shared_ptr<SaveFolder> saves; ///< of --save, where rank 0 runs
  std::string remark;                ///< lines for the user from opening these; "" for none
  std::string dataSample;            ///< identifies the data of this job
  uint64_t seed = 0;
  std::shared_ptr<sim::World> world; ///< of --device sim
  bool shuffled = true;
  bool alone = false;                                ///< of one rank, whose command line other ranks have not read
  uint64_t steps = 0;                                ///< last step of training
  std::function<void(const std::string &)> listener; ///< takes the lines for the user instead of standard output

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
/// The save in `path`, or the newest of the saves in it. Throws Failure.
Checkpoint openSave(const std::string &path);
/// The weights of --weights; lines for the user are added to `remark`. Throws Failure.
WeightStore openWeights(const RunOptions &options, const format::Manifest &manifest, const std::string &bundle,
                        std::string &remark);
/// Opens and proves a bundle, for this device if it names one, and looks for what it needs of this machine.
format::Bundle openBundle(const std::string &name, const std::string &device);
/// Throws Failure where a key of --set, or its value, is none of the bundle's. `place` is for messages.
void checkHypers(const format::Manifest &manifest, const std::string &place, const std::map<std::string, double> &set);
/// Throws Failure where the weights cannot be exported to --export.
void checkExport(const Job &job, bool checkData);
/// How the ranks of a job are started.
comm::Launch launchOf(const Job &job);
/// Runs one rank; returns its exit code.
int runRank(const Job &job, comm::Control &control);
/// par-run's main without the reading of arguments: returns the exit code and prints errors.
int runTool(const RunOptions &options);
/// The same with other work for each rank, in a process of its own or a thread; it returns the rank's exit code.
int runTool(const RunOptions &options, const std::function<int(Job &, comm::Control &)> &work);
/// The bundle as typed, without a slash at its end.
std::string nameOf(const RunOptions &options);

} // namespace par::core
