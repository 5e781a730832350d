// The command line of par-run (plan.md section 3.2).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace par::core {

struct RunOptions {
  std::string bundle;
  // where
  std::optional<uint32_t> n, rank, world;
  std::string master, comm = "auto";
  std::string device;                    ///< empty: what the bundle was compiled for
  std::optional<uint32_t> interleavings; ///< of --device sim
  std::optional<uint64_t> simSeed;
  int threads = 0; ///< 0: what the bundle was compiled for
  double timeout = 5, joinTimeout = 60;
  std::optional<uint64_t> restarts; ///< of lost ranks; UINT64_MAX: as many as there are losses
  std::optional<double> shrink;     ///< seconds for which lost ranks are waited for
  std::optional<uint32_t> spares;   ///< processes beyond the ranks
  std::optional<uint64_t> mirror;   ///< steps after which neighbours get state again that no other rank holds
  // data
  std::vector<std::string> data, inputs, normalize;
  std::string text, tokens, labels, order;
  std::optional<uint64_t> stride;
  bool synthetic = false;
  std::string generate; ///< a file of requests, "-": standard input
  std::string serve;    ///< where requests come from: a socket's path, "tcp:PORT" or "-"
  double maxWait = 0;   ///< of --serve, in milliseconds
  std::string cache;    ///< a folder where a session keeps the state with which it starts; "": none
  // weights
  std::vector<std::string> weights;
  bool init = false;
  std::string resume;
  // how long
  std::optional<uint64_t> steps, epochs;
  bool eval = false;
  uint64_t evalEvery = 0;
  std::string evalData;
  // results
  std::string save, exportTo, output, metrics, trace;
  uint64_t maxShard = 5'000'000'000;       ///< bytes of tensors in one file of an export into a folder
  bool exportOnly = false;                 ///< --into: nothing is run
  std::string log;                         ///< a table of metrics, CSV
  std::optional<std::string> calibrate;    ///< the hardware file; "": beside the bundle
  std::optional<std::string> bench;        ///< the file of its results; "": none
  std::optional<uint64_t> iterations;      ///< of --bench
  double duration = 3;                     ///< likewise, in seconds
  uint64_t warmUp = 3;                     ///< likewise, in calls
  uint64_t traceFirst = 1, traceLast = 10; ///< steps of --trace
  uint64_t saveEvery = 0, keep = 2, logEvery = 0;
  std::map<std::string, double> set;
  bool averages = false;  ///< --ema: results are of the averaged weights
  std::string onNan;      ///< "stop" or "skip"; empty: as the bundle was compiled
  uint64_t maxSkips = 10; ///< steps in a row that may be skipped
  bool fed = false;       ///< a session: its caller gives the batches, and says how long
  bool here = false;      ///< of one rank, in its caller's process
  std::string color;      ///< of errors and warnings: auto, always or never; empty: as the environment says
  bool noTuning = false, dryRun = false, checkArena = false, quiet = false, help = false, version = false,
       verbose = false, json = false;
};

/// Reads the arguments after the program's name. Throws Failure with exit code 2 for arguments that are wrong or not
/// supported yet.
RunOptions parseOptions(const std::vector<std::string> &arguments);
/// For test suites that run par-run without knowing of devices: "sim", "sim:20" (interleavings) or "sim:20:7" (and
/// seed), the value of PAR_DEVICE, stands for --device and its flags where the arguments say none, nor --comm shm or
/// --rank.
void takeDevice(RunOptions &options, const std::string &environment);
/// The text of --help.
std::string usage();

} // namespace par::core
