// Checks that flags of par-run go together: which exclude each other, and which need another.
#include "OptionChecks.h"

#include "par/save/Export.h"

#include <algorithm>
#include <span>

namespace par::core {
namespace {

void exclude(bool a, bool b, const char *nameA, const char *nameB) {
  if (a && b)
    refuse(Message::flagsExclude, nameA, nameB);
}

void need(bool a, bool b, const char *nameA, const char *nameB) {
  if (a && !b)
    refuse(Message::flagNeeds, nameA, nameB);
}

/// The flag goes with these and no others.
void takesOnly(const char *flag, std::span<const char *const> taken, const std::map<std::string, std::string> &given) {
  for (const auto &[name, value] : given)
    if (std::find(taken.begin(), taken.end(), name) == taken.end())
      refuse(Message::flagsExclude, flag, name);
}

/// Flags that --calibrate takes: where it runs. It reads no data and no weights, and writes one file. With --trace it
/// runs nothing.
constexpr const char *calibrationFlags[] = {"--calibrate", "-n",      "--comm",   "--device",  "--threads",
                                            "--rank",      "--world", "--master", "--timeout", "--join-timeout",
                                            "--no-tuning", "-q",      "--trace"};

void checkCalibrates(const RunOptions &options, const std::map<std::string, std::string> &given) {
  if (!options.calibrate)
    return;
  takesOnly("--calibrate", calibrationFlags, given);
  exclude(true, options.device == "sim", "--calibrate", "--device sim");
}

/// Flags that --bench takes: where it runs, and with which weights. It makes up its data and writes one file.
constexpr const char *benchFlags[] = {
    "--bench",   "--iterations", "--duration", "--warm-up",   "-n",        "--comm",    "--device",
    "--threads", "--rank",       "--world",    "--master",    "--timeout", "--weights", "--join-timeout",
    "--init",    "--eval",       "--set",      "--no-tuning", "-q"};

void checkBenches(const RunOptions &options, const std::map<std::string, std::string> &given) {
  for (const char *flag : {"--iterations", "--duration", "--warm-up"})
    if (!options.bench && given.count(flag))
      refuse(Message::flagNeeds, flag, "--bench");
  if (given.count("--iterations") && given.count("--duration"))
    refuse(Message::flagsExclude, "--iterations", "--duration");
  if (!options.bench)
    return;
  takesOnly("--bench", benchFlags, given);
  exclude(true, options.device == "sim", "--bench", "--device sim");
}

/// Flags that --into takes: where it runs, and which weights.
constexpr const char *intoFlags[] = {"--into", "--from",    "--max-shard",    "-n",        "--comm",
                                     "--rank", "--world",   "--master",       "--device",  "--threads",
                                     "--init", "--weights", "--join-timeout", "--timeout", "--set",
                                     "-q",     "--json",    "--no-tuning",    "--ema"};

void checkExports(const RunOptions &options, const std::map<std::string, std::string> &given) {
  if (!options.exportOnly && given.count("--from"))
    refuse(Message::flagNeeds, "--from", "--into F");
  if (given.count("--from") && given.count("--weights"))
    refuse(Message::flagsExclude, "--from", "--weights");
  if (given.count("--max-shard") && !isExportFolder(options.exportTo))
    refuse(Message::flagNeeds, "--max-shard", "--export FOLDER");
  if (!options.exportOnly)
    return;
  takesOnly("--into", intoFlags, given);
}

/// Flags that --serve takes: where it runs, and with which weights. Requests say all else.
constexpr const char *serveFlags[] = {
    "--serve",   "--max-wait",     "--metrics", "-n",    "--comm",      "--device", "--threads", "--timeout",
    "--weights", "--join-timeout", "--init",    "--set", "--no-tuning", "-q",       "--cache",   "--ema"};

void checkServes(const RunOptions &options, const std::map<std::string, std::string> &given) {
  if (options.serve.empty() && given.count("--max-wait"))
    refuse(Message::flagNeeds, "--max-wait", "--serve");
  if (options.serve.empty())
    return;
  takesOnly("--serve", serveFlags, given);
  exclude(true, options.device == "sim", "--serve", "--device sim");
}

/// Data are arrays, text, tokens or made up.
void checkData(const RunOptions &options) {
  std::pair<const char *, bool> sources[] = {{"--data", !options.data.empty()},
                                             {"--input", !options.inputs.empty()},
                                             {"--text", !options.text.empty()},
                                             {"--tokens", !options.tokens.empty()},
                                             {"--synthetic", options.synthetic}};
  for (size_t i = 0; i < std::size(sources); ++i)
    for (size_t j = 0; j < i; ++j)
      exclude(sources[j].second && (i > 1), sources[i].second, sources[j].first, sources[i].first);
  for (const auto &[flag, given] : sources)
    exclude(!options.generate.empty(), given, "--generate", flag);
  bool windows = !options.text.empty() || !options.tokens.empty();
  need(!options.labels.empty(), windows, "--labels", "--text F or --tokens F");
  need(options.stride.has_value(), windows, "--stride", "--text F or --tokens F");
  need(!options.normalize.empty(), !options.data.empty() || !options.inputs.empty(), "--normalize", "--data F");
}

void checkPairs(const RunOptions &options) {
  // "auto" may find nothing, and then begins as these say.
  bool goesOn = !options.resume.empty() && options.resume != "auto";
  exclude(goesOn, options.init, "--resume DIR", "--init");
  exclude(goesOn, !options.weights.empty(), "--resume DIR", "--weights");
  checkData(options);
  bool readsWeights = !options.weights.empty() || !options.resume.empty();
  need(options.averages, readsWeights || !options.exportTo.empty(), "--ema", "--weights SAVE, or --export F");
  exclude(options.steps.has_value(), options.epochs.has_value(), "--steps", "--epochs");
  exclude(options.quiet, options.verbose, "-q", "-v");
  exclude(options.eval, options.evalEvery > 0, "--eval", "--eval-every");
  exclude(options.eval, !options.save.empty(), "--eval", "--save");
  exclude(options.eval, options.steps.has_value(), "--eval", "--steps");
  exclude(options.eval, options.epochs.has_value(), "--eval", "--epochs");
  need(options.saveEvery > 0, !options.save.empty(), "--save-every", "--save DIR");
  need(options.resume == "auto", !options.save.empty(), "--resume auto", "--save DIR");
  need(options.evalEvery > 0, !options.evalData.empty(), "--eval-every", "--eval-data F");
  need(!options.evalData.empty(), options.evalEvery > 0, "--eval-data", "--eval-every N");
  bool simulates = options.device == "sim";
  need(options.interleavings.has_value(), simulates, "--interleavings", "--device sim");
  need(options.simSeed.has_value(), simulates, "--sim-seed", "--device sim");
  exclude(simulates, options.comm == "shm", "--device sim", "--comm shm");
  exclude(simulates, options.comm == "tcp", "--device sim", "--comm tcp");
  exclude(simulates, options.comm == "mpi", "--device sim", "--comm mpi");
  exclude(simulates, options.rank.has_value(), "--device sim", "--rank");
  exclude(simulates, options.shrink.has_value(), "--device sim", "--shrink");
  exclude(simulates, options.restarts.has_value(), "--device sim", "--restart");
  need(options.spares.has_value(), options.restarts.has_value(), "--spares", "--restart");
  need(options.mirror.has_value(), options.restarts.has_value(), "--mirror", "--restart");
  need(options.rank.has_value(), options.world.has_value(), "--rank", "--world N");
  if (!options.exportTo.empty() && !isExportFile(options.exportTo) && !isExportFolder(options.exportTo))
    refuse(Message::exportKind, options.exportOnly ? "--into" : "--export", options.exportTo);
  if (!options.output.empty() && !options.output.ends_with(".safetensors"))
    refuse(Message::notYet, "--output to other than .safetensors");
  bool generates = !options.generate.empty();
  exclude(generates, !options.output.empty(), "--generate", "--output");
  exclude(generates, options.eval, "--generate", "--eval");
  exclude(!options.output.empty(), options.eval, "--output", "--eval");
  exclude(!options.output.empty(), options.steps.has_value(), "--output", "--steps");
  exclude(!options.output.empty(), options.epochs.has_value(), "--output", "--epochs");
}

} // namespace

void checkTogether(const RunOptions &options, const std::map<std::string, std::string> &given) {
  checkPairs(options);
  checkCalibrates(options, given);
  checkBenches(options, given);
  checkServes(options, given);
  checkExports(options, given);
}

} // namespace par::core
