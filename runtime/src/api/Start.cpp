#include "api/Start.h"

#include "api/RankProcesses.h"
#include "par/format/PlainFile.h"
#include "par/messages/Failure.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace par::api {

using core::Failure;
using core::Message;

/// Flags that say what is run, on what, and for how long.
static void refuseFlags(const core::RunOptions &options) {
  const char *calls = "call train, eval or predict with arrays", *own = "the session's calls do that";
  for (auto [given, flag, instead] : {std::tuple(!options.data.empty(), "--data", calls),
                                      {!options.text.empty(), "--text", calls},
                                      {!options.evalData.empty(), "--eval-data", calls},
                                      {options.eval, "--eval", calls},
                                      {!options.order.empty(), "--order", "rows come as they are fed"},
                                      {options.steps || options.epochs, "--steps and no --epochs", calls},
                                      {!options.exportTo.empty(), "--export", own},
                                      {!options.output.empty(), "--output", own},
                                      {!options.trace.empty(), "--trace", "par-run writes traces"},
                                      {!options.generate.empty(), "--generate", "call its entries with arrays"},
                                      {!options.serve.empty(), "--serve", "par-run serves"},
                                      {options.bench.has_value(), "--bench", "par-run measures"},
                                      {options.restarts.has_value(), "--restart", "open another one after an error"},
                                      {options.calibrate.has_value(), "--calibrate", "par-run calibrates"},
                                      {options.dryRun, "--dry-run", "opening a session checks all"},
                                      {options.help || options.version, "--help", "docs/python.md has it"}})
    if (given)
      throw Failure::at(options.bundle, Message::sessionFlag, flag, instead).exitsWith(core::exitUsage);
}

core::RunOptions readOptions(const std::vector<std::string> &arguments) {
  core::RunOptions options = core::parseOptions(arguments);
  refuseFlags(options);
  options.fed = options.quiet = true;
  if (const char *cache = std::getenv("PAR_CACHE"); cache && options.cache.empty())
    options.cache = cache;
  return options;
}

/// The ranks of a bundle; nothing where its manifest cannot be read, of which opening it tells more.
static std::optional<size_t> ranksOf(const std::string &bundle) {
  auto text = format::readPlainFile(bundle + "/manifest.json");
  if (!text)
    return std::nullopt;
  auto manifest = format::parseManifest(*text, bundle);
  return manifest ? std::optional(manifest->ranks.size()) : std::nullopt;
}

/// Whether a launcher has made this process one rank of several.
static bool isOneOfSeveral(const core::RunOptions &options) {
  core::Job none;
  none.options = options;
  try {
    auto place = comm::placeOfProcess(core::launchOf(none));
    return place && place->world > 1;
  } catch (const comm::LaunchError &error) {
    throw Failure::at(options.bundle, Message::cannotStartRanks, "a rank", error.what()).exitsWith(error.code);
  }
}

/// ../bin/par-rank beside the folder of the library that holds this function.
static std::string workerBesideLibrary() {
  Dl_info about{};
  if (!dladdr(reinterpret_cast<void *>(&workerBesideLibrary), &about) || !about.dli_fname)
    return "par-rank";
  return std::filesystem::path(about.dli_fname).parent_path().parent_path() / "bin" / "par-rank";
}

std::unique_ptr<Ranks> startRanks(const std::vector<std::string> &arguments, bool isolated, const std::string &worker) {
  core::RunOptions options = readOptions(arguments);
  std::string name = core::nameOf(options);
  std::optional<size_t> ranks = ranksOf(name);
  bool placed = isOneOfSeveral(options);
  if (!ranks || (*ranks == 1 && !isolated && !placed))
    return rankHere(options);
  if (options.comm == "inproc")
    throw Failure::at(name, Message::sessionFlag, "--comm inproc", "its ranks are processes")
        .exitsWith(core::exitUsage);
  return rankProcesses(core::openBundle(name, options.device), arguments,
                       worker.empty() ? workerBesideLibrary() : worker);
}

} // namespace par::api
