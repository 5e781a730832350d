// Prepares a run before ranks exist: opens bundle, initial values and data, checks that flags, device and folders suit,
// then launches the ranks. Faults that would show after hours are looked for here.
#include "par/app/Job.h"

#include "Bench.h"
#include "Calibration.h"
#include "JobData.h"
#include "JobRemarks.h"
#include "Member.h"
#include "OutputPlaces.h"
#include "Progress.h"
#include "StartCache.h"
#include "par/comm/job/Ending.h"
#include "par/cpu/Machine.h"
#include "par/cpu/Matmul.h"
#include "par/cuda/driver/Driver.h"
#include "par/format/Colors.h"
#include "par/messages/TrainMessages.h"
#include "par/save/Export.h"
#include "par/sim/World.h"
#include "par/verify/Verify.h"
#include "save/Replicas.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <unistd.h>

namespace par::core {

namespace fs = std::filesystem;

namespace {

/// A CPU with "isa: avx512f" and the like.
void checkNeeds(const format::Manifest &manifest, const std::string &name) {
  std::string device = manifest.device;
  for (const std::string &need : manifest.needs)
    if (need.starts_with("sm: "))
      device += " sm_" + need.substr(4);
  if (manifest.device != "cpu" && !(manifest.device == "cuda" && cuda::hasDriver()))
    throw Failure::at(name, Message::noDevice, device, manifest.device == "cuda" ? "CUDA" : manifest.device);
  for (const std::string &need : manifest.needs) {
    size_t colon = need.find(": ");
    std::string kind = need.substr(0, colon), value = colon == std::string::npos ? "" : need.substr(colon + 2);
    if (kind == "sm" && manifest.device == "cuda")
      continue; // the device looks when it is opened: not before ranks are processes
    if (kind != "isa")
      throw Failure::at(name, Message::unknownNeed, need);
    if (!cpu::hasFeature(value))
      throw Failure::at(name, Message::missingIsa, value);
  }
}

/// Throws Failure where there is no bundle of this name, or none that this user may look into.
void checkThere(const std::string &name) {
  std::error_code error;
  if (fs::symlink_status(name, error).type() == fs::file_type::not_found)
    throw Failure::at(name, Message::absentBundle, name);
  if (fs::is_regular_file(name, error) && name.ends_with(".onnx")) {
    std::string made = fs::path(name).stem().string() + ".par";
    throw Failure::at(name, Message::isModel, name, made, made);
  }
  auto manifest = format::isThere(name + "/manifest.json");
  if (!manifest)
    throw Failure::at(name + "/manifest.json", Message::cannotOpen, manifest.message());
  if (!*manifest && fs::exists(name, error))
    throw Failure::at(name, Message::notABundle);
}

} // namespace

format::Bundle openBundle(const std::string &name, const std::string &device) {
  checkThere(name);
  auto bundle = format::readBundle(name);
  if (!bundle) {
    // "FILE: what": the place comes first in a message. FILE may be in the folder or say it, and a folder's
    // name may be anything.
    std::string text = bundle.message();
    if (text.starts_with(name + "/"))
      text.erase(0, name.size() + 1);
    size_t colon = text.find(": ");
    if (colon == std::string::npos)
      throw Failure(name, text);
    throw Failure(name + "/" + text.substr(0, colon), text.substr(colon + 2));
  }
  if (!device.empty() && bundle->manifest.device != "cpu")
    throw Failure::at(name, Message::otherDevice, bundle->manifest.device, device);
  checkNeeds(bundle->manifest, name);
  verify::Options files;
  files.folder = name;
  verify::Verdict verdict = verify::verifyBundle(*bundle, files);
  if (!verdict) {
    std::string lines = verify::format(verdict, name);
    throw Failure::verbatim(lines.substr(0, lines.size() - 1),
                            exitRefused); // the caller ends the last line
  }
  return std::move(*bundle);
}

namespace {

/// Throws Failure if the path cannot be examined.
bool isFolder(const std::string &path) {
  std::error_code error;
  bool folder = fs::is_directory(path, error);
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    throw Failure::at(path, Message::cannotOpen, error.message());
  return folder;
}

} // namespace

Checkpoint openSave(const std::string &path) {
  isFolder(path);
  return openCheckpoint(isCheckpoint(path) ? path : newestCheckpoint(path));
}

namespace {

/// Takes tables that PyTorch's state_dict leaves out (`persistent=False`, as of rotary positions) from the model file,
/// if that is there. A note names them, because those that training changes (batch norm's statistics) start again from
/// the model file's values.
void takeBuffersOfModel(WeightStore &store, const format::Manifest &manifest, const std::string &bundle,
                        std::string &remark) {
  std::vector<const format::Tensor *> missing;
  for (const format::Tensor &tensor : manifest.tensors)
    if (tensor.kind == format::TensorKind::Buffer && (tensor.source || tensor.value) && !store.find(tensor))
      missing.push_back(&tensor);
  if (missing.empty())
    return;
  WeightStore model;
  try {
    model = openModelFile(manifest, bundle, /*checkData=*/false);
  } catch (const Failure &) {
    return; // that they are missing is said then
  }
  constexpr size_t shown = 3;
  std::string names;
  for (size_t i = 0; i < missing.size(); ++i) {
    store.arrays.insert(*model.arrays.find(missing[i]->name));
    names += i >= shown ? "" : (i ? ", \"" : "\"") + missing[i]->name + "\"";
  }
  if (missing.size() > shown)
    names += core::format(" and {} more", missing.size() - shown);
  std::move(model.files.begin(), model.files.end(), std::back_inserter(store.files));
  remark += (remark.empty() ? "" : "\n") + store.place + ": note: holds no " + names + "; as in " + model.place;
}

} // namespace

WeightStore openWeights(const RunOptions &options, const format::Manifest &manifest, const std::string &bundle,
                        std::string &remark) {
  const std::vector<std::string> &paths = options.weights;
  auto say = [&](const std::string &line) { remark += (remark.empty() || line.empty() ? "" : "\n") + line; };
  auto check = [&](const WeightStore &store) {
    if (options.init)
      say(checkSomeWeights(manifest, store));
    else
      checkWeights(manifest, store);
  };
  for (const std::string &path : paths) {
    if (isFolder(path)) {
      if (paths.size() > 1)
        throw Failure::at("par-run", Message::flagsExclude,
                          "--weights " + path + " (a folder is a save, with all weights)",
                          "--weights " + (&path == &paths[0] ? paths[1] : paths[0]))
            .exitsWith(exitUsage);
      Checkpoint checkpoint = openSave(path);
      checkpoint.store.transposeFor(manifest);
      say(checkpoint.remark);
      check(checkpoint.store);
      say(describeConverted(manifest, checkpoint.store));
      return std::move(checkpoint.store);
    }
    if (!isArrayFile(path) && !isTorchFile(path) && !path.ends_with(".json"))
      throw Failure::at(path, Message::unknownWeights);
  }
  WeightStore store = openSafetensors(paths);
  say(store.renameFor(manifest));
  store.transposeFor(manifest);
  say(describeUnused(manifest, store));
  takeBuffersOfModel(store, manifest, bundle, remark);
  check(store);
  say(describeConverted(manifest, store));
  return store;
}

namespace {

/// Training goes on with the save's seed and in its order, in which the rows that it has seen are the first ones.
void takeOrder(Job &job) {
  bool saved = job.checkpoint->position.shuffled;
  if (!job.trains())
    return;
  if (auto seed = job.options.set.find("seed");
      seed != job.options.set.end() && static_cast<uint64_t>(seed->second) != job.checkpoint->position.seed)
    throw Failure::at("par-run", Message::seedOfSave, static_cast<uint64_t>(seed->second), job.checkpoint->store.place,
                      job.checkpoint->position.seed)
        .exitsWith(exitUsage);
  if (!job.options.order.empty() && job.shuffled != saved)
    throw Failure::at("par-run", Message::orderOfSave, job.options.order, job.checkpoint->store.place,
                      saved ? "shuffled" : "sequential")
        .exitsWith(exitUsage);
  job.shuffled = saved;
}

/// Initial values: a checkpoint to go on from, files, the rules, or the model file, of which one process checks the
/// data.
void openInitialValues(Job &job, bool checkData) {
  const RunOptions &options = job.options;
  std::string resume = options.resume, note;
  job.start = StartCache::open(job, note);
  if (!note.empty())
    job.tell(note);
  if (job.start && job.start->isFilled()) {
    if (std::string said = job.start->remark(); !said.empty())
      job.tell(said);
    return;
  }
  if (resume == "auto") // nothing saved yet: the first start of a job that is restarted with the same command
    resume = isFolder(options.save) ? findNewestCheckpoint(options.save).value_or("") : "";
  if (!resume.empty()) {
    job.checkpoint = openSave(resume);
    std::string anew = beginAnew(job.bundle.manifest, job.checkpoint->store);
    checkState(job.bundle.manifest, job.checkpoint->store);
    if (!job.checkpoint->remark.empty())
      job.tell(job.checkpoint->remark);
    if (job.trains() && !anew.empty())
      job.tell(anew);
    if (std::string unused = unusedStates(job.bundle.manifest, job.checkpoint->store); job.trains() && !unused.empty())
      job.tell(job.checkpoint->store.place + ": warning: " + unused);
    if (std::string converted = describeConverted(job.bundle.manifest, job.checkpoint->store); !converted.empty())
      job.tell(converted);
    if (options.averages && !job.trains())
      takeAverages(job.checkpoint->store);
    job.seed = job.checkpoint->position.seed;
    takeOrder(job);
  } else if (!options.weights.empty()) {
    job.weights = openWeights(options, job.bundle.manifest, job.name, job.remark);
    if (job.start)
      job.start->note(job.remark);
    if (options.averages && (!job.trains() || options.exportOnly))
      takeAverages(*job.weights);
  } else if (!options.init) {
    // A single rank reads the file while it is compared; several are not to start with another one.
    bool isSingle = job.bundle.manifest.ranks.size() == 1 && !options.dryRun;
    job.weights = openModelFile(job.bundle.manifest, job.name, checkData,
                                isSingle ? ModelComparison::WhileLoading : ModelComparison::First);
    checkWeights(job.bundle.manifest, *job.weights);
  }
}

/// Hours of training must not end in a file that cannot be written.
void checkFolder(const std::string &path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw Failure::at(path, Message::cannotWrite, strerror(EISDIR));
  fs::path folder = fs::path(path).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    throw Failure::at(path, Message::cannotWrite, strerror(errno));
}

/// Nor in a folder that cannot be written.
void checkSave(const std::string &folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Failure::at(folder, Message::cannotWrite, error.message());
  if (access(folder.c_str(), W_OK) != 0)
    throw Failure::at(folder, Message::cannotWrite, strerror(errno));
}

} // namespace

void checkExport(const Job &job, bool checkData) {
  const std::vector<format::Tensor> &tensors = job.bundle.manifest.tensors;
  if (job.options.averages && !job.options.exportOnly && job.trains() &&
      std::none_of(tensors.begin(), tensors.end(), isAverage))
    throw Failure(job.name, say(TrainSentence::keepsNoAverages));
  if (job.options.exportTo.ends_with(".onnx"))
    checkModelExport(job.bundle.manifest, job.name, job.options.exportTo, checkData);
  if (!isExportFolder(job.options.exportTo))
    return checkFolder(job.options.exportTo);
  checkSave(job.options.exportTo);
  checkFolderExport(job.bundle.manifest, job.options.exportTo, job.options.maxShard);
}

namespace {

/// A bundle that asks for more threads than --threads allows runs on that maximum.
void boundThreads(Job &job) {
  auto asked = static_cast<int>(job.bundle.manifest.threads), most = cpu::maxThreads();
  if (job.options.threads || asked <= most)
    return;
  job.options.threads = most;
  job.tell(job.name +
           format(": warning: the bundle asks for {} threads a rank and gets {}, the most that --threads takes here",
                  asked, most));
}

comm::Transport transportOf(const Job &job) {
  const std::string &comm = job.options.comm;
  if (comm == "inproc" || job.world)
    return comm::Transport::inproc;
  if (comm == "shm")
    return comm::Transport::shm;
  // The device is not known before the bundle is.
  if (!job.bundle.manifest.ranks.empty() && job.device() == "cuda")
    return comm::Transport::device;
  return comm == "tcp" ? comm::Transport::tcp : comm == "mpi" ? comm::Transport::mpi : comm::Transport::automatic;
}

} // namespace

comm::Launch launchOf(const Job &job) {
  comm::Launch launch;
  launch.bundle = job.name;
  launch.bundleRanks = static_cast<uint32_t>(job.bundle.manifest.ranks.size());
  launch.mesh = meshOf(job.bundle.manifest);
  launch.n = job.options.n;
  launch.transport = transportOf(job);
  launch.rank = job.options.rank;
  launch.world = job.options.world;
  launch.master = job.options.master;
  launch.timeout = job.options.timeout;
  launch.joinTimeout = job.options.joinTimeout;
  launch.restarts = job.options.restarts;
  launch.shrink = job.options.shrink;
  launch.members.push_back(launch.bundleRanks);
  if (!job.family.empty())
    launch.replicas[launch.bundleRanks] = firstReplicas(job.bundle);
  for (const Member &member : job.family) {
    launch.members.push_back(static_cast<uint32_t>(member.bundle.manifest.ranks.size()));
    launch.replicas[launch.members.back()] = firstReplicas(member.bundle);
  }
  launch.spares = job.options.spares.value_or(0);
  launch.mirror = job.options.mirror.has_value();
  launch.callers = job.options.fed;
  return launch;
}

namespace {

/// The number of ranks that are started, if -n or a launcher says one. run() reports a wrong place.
std::optional<uint32_t> startedRanks(const Job &job) {
  try {
    auto place = comm::placeOfProcess(launchOf(job));
    return place ? std::optional(place->world) : job.options.n;
  } catch (const comm::LaunchError &) {
    return std::nullopt;
  }
}

/// Whether this process is to be rank 0, or to start it. run() reports a wrong place.
bool hasRankZero(const Job &job) {
  try {
    auto place = comm::placeOfProcess(launchOf(job));
    return !place || place->rank == 0;
  } catch (const comm::LaunchError &) {
    return false;
  }
}

} // namespace

void checkHypers(const format::Manifest &manifest, const std::string &place, const std::map<std::string, double> &set) {
  for (const auto &[key, value] : set) {
    bool known = key == "seed";
    std::string names = "seed";
    for (const format::Hyper &hyper : manifest.hypers) {
      known |= hyper.name == key;
      if (hyper.name != "seed")
        names += ", " + hyper.name;
    }
    // As a plan names it, which has the other keys of a run in `train`.
    std::string inPlan = (key == "clip" ? "train." : key == "lr" ? "train.optimizer." : "") + key;
    if (!known)
      throw Failure::at(place, Message::unknownHyper, key, names, manifest.model.name, format("{}={}", inPlan, value))
          .exitsWith(exitUsage);
    // A plan with `clip: none` has no such key; 0 would scale every gradient to nothing.
    float least = key == "clip" ? std::numeric_limits<float>::min() : 0;
    if (key != "seed" && !(value >= least && value <= std::numeric_limits<float>::max()))
      throw Failure::at(place, Message::flagBad, "--set " + key,
                        key == "clip" ? "a number above 0, to 3.4e38" : "a number from 0 to 3.4e38",
                        format("{}", value))
          .exitsWith(exitUsage);
    // The integers that a double holds exactly, so that a save's seed is the given one.
    if (key == "seed" && (value < 0 || value > 0x1p53 || value != std::floor(value)))
      throw Failure::at(place, Message::flagBad, "--set seed", "a whole number from 0 to 2^53", std::to_string(value))
          .exitsWith(exitUsage);
  }
}

namespace {

/// A job ends where its pipeline is flushed: epochs go on to the next such step, and --steps must name one.
void checkFlushes(Job &job) {
  uint64_t calls = job.bundle.manifest.calls, before = job.checkpoint ? job.checkpoint->position.step : 0;
  uint64_t made = job.steps > before ? job.steps - before : 0, whole = (made + calls - 1) / calls * calls;
  if (made != whole && job.options.steps)
    throw Failure::at(job.name, Message::stepsBetweenFlushes, job.steps, calls, made,
                      before + whole - (whole > calls ? calls : 0), before + whole + (whole > calls ? 0 : calls))
        .exitsWith(exitUsage);
  job.steps = std::max(job.steps, before + whole);
}

/// --comm must fit the device.
void checkDeviceFlags(const Job &job) {
  const std::string &comm = job.options.comm;
  bool gpu = job.device() == "cuda";
  if (comm == "nccl" && !gpu)
    throw Failure::at(job.name, Message::flagNeeds, "--comm nccl", "a bundle for cuda").exitsWith(exitUsage);
  if ((comm == "shm" || comm == "tcp" || comm == "mpi") && gpu)
    throw Failure::at(job.name, Message::flagsExclude, "--comm " + comm, "a bundle for cuda").exitsWith(exitUsage);
}

} // namespace

std::string Job::device() const { return options.device.empty() ? bundle.manifest.device : options.device; }

bool Job::predicts() const {
  auto has = [this](const char *name) { return bundle.programs.front().findEntry(name) != format::noIndex; };
  return !options.output.empty() || !options.generate.empty() || (!options.eval && has("predict") && !has("train"));
}

bool Job::isSampled() const {
  const std::vector<format::Input> &inputs = bundle.manifest.inputs;
  return std::any_of(inputs.begin(), inputs.end(), [](const format::Input &input) { return input.microbatched; });
}

uint64_t Job::rowsOf(const Dataset *data) const {
  return !isSampled() ? bundle.manifest.batch : data ? data->rows() : 0;
}

std::string nameOf(const RunOptions &options) {
  std::string name = options.bundle;
  while (name.size() > 1 && name.back() == '/')
    name.pop_back();
  return name;
}

/// Flags of training are refused for a bundle that does not train: they would do nothing.
static void checkTrainingFlags(const Job &job) {
  const RunOptions &options = job.options;
  const auto &entries = job.bundle.programs.front();
  if (entries.findEntry("train") != format::noIndex)
    return;
  for (auto [isGiven, flag] : {std::pair(options.steps.has_value(), "--steps"),
                               {options.epochs.has_value(), "--epochs"},
                               {!options.save.empty(), "--save"},
                               {options.shrink.has_value(), "--shrink"},
                               {options.mirror.has_value(), "--mirror"},
                               {options.evalEvery > 0, "--eval-every"}})
    if (isGiven)
      throw Failure::at(job.name, Message::flagNeeds, flag,
                        "a bundle that trains, this one predicts: its plan has no train")
          .exitsWith(exitUsage);
}

/// Updates are left out only by a bundle that is compiled so.
static void checkNan(const Job &job) {
  if (job.options.onNan == "skip" && job.trains() && !skipsNan(job.bundle.manifest))
    throw Failure(job.name, say(TrainSentence::updatesAnyway, "--on-nan skip")).exitsWith(exitUsage);
}

Job prepareJob(const RunOptions &options) {
  if (!options.cache.empty() && !options.fed)
    throw Failure::at("par-run", Message::flagNeeds, "--cache", "--serve").exitsWith(exitUsage);
  Job job;
  job.options = options;
  for (std::string &path : job.options.weights)
    path = findWeights(path);
  job.name = nameOf(options);
  chooseMember(job, startedRanks(job));
  job.bundle = openBundle(job.name, options.device);
  checkDeviceFlags(job);
  checkHypers(job.bundle.manifest, job.name, options.set);
  checkTrainingFlags(job);
  openFamily(job);
  bool rankZero = hasRankZero(job);
  if (options.bench)
    benchedEntry(job);
  if (options.calibrate) {
    if (rankZero)
      checkCalibration(options, job.name);
    if (rankZero && !options.trace.empty())
      refineCalibration(job);
    job.seed = job.bundle.manifest.seed;
    boundThreads(job);
    return job;
  }
  if (!options.exportTo.empty())
    checkExport(job, rankZero);
  checkNan(job);
  if (!options.save.empty()) {
    checkSave(options.save);
    if (job.trains() && !options.dryRun && rankZero)
      job.saves = std::make_shared<SaveFolder>(options.save);
  }
  for (const std::string &path :
       {options.output, options.metrics, options.log, options.trace, options.bench.value_or("")})
    if (!path.empty())
      checkFolder(path);
  const format::Manifest &manifest = job.bundle.manifest;
  auto seed = options.set.find("seed");
  job.seed = seed == options.set.end() ? manifest.seed : static_cast<uint64_t>(seed->second);
  job.shuffled = options.order.empty() ? job.trains() : options.order == "shuffled";
  if (options.device == "sim")
    job.world =
        std::make_shared<sim::World>(static_cast<uint32_t>(manifest.ranks.size()),
                                     sim::Options{options.simSeed.value_or(1), options.interleavings.value_or(20)});
  openInitialValues(job, rankZero);
  boundThreads(job);
  openData(job);
  constexpr uint64_t maxShuffled = std::numeric_limits<uint32_t>::max();
  if (job.shuffled && job.dataset && job.dataset->rows() > maxShuffled)
    throw Failure::at(
        "par-run", Message::flagBad, "--order",
        format("sequential where data have more than {} rows; these have {}", maxShuffled, job.dataset->rows()),
        "shuffled")
        .exitsWith(exitUsage);
  remarkOnJob(job);
  checkOutputs(job);
  uint64_t rows = job.rowsOf(job.dataset.get());
  uint64_t epochs = options.epochs.value_or(1);
  job.steps = options.steps.value_or((epochs * rows + manifest.batch - 1) / manifest.batch);
  if (options.fed)
    job.steps = std::numeric_limits<uint64_t>::max();
  else if (manifest.calls > 1 && job.trains())
    checkFlushes(job);
  if (job.saves) {
    refuseForeign(options.save, job.steps);
    refuseOthersSaves(options.save, job.checkpoint ? job.checkpoint->store.place : "");
  }
  return job;
}

int runTool(const RunOptions &options) {
  return runTool(options, [](Job &job, comm::Control &control) { return runRank(job, control); });
}

int runTool(const RunOptions &options, const std::function<int(Job &, comm::Control &)> &work) {
  signal(SIGXFSZ, SIG_IGN); // a file that may not grow further is an error of its writer, as a full disk is
  Job none;
  none.options = options;
  none.name = nameOf(options);
  std::optional<comm::LaunchEnvironment> place;
  try {
    // The process's rank and world are checked before its files.
    place = comm::placeOfProcess(launchOf(none));
    comm::endOnSignals(nameOf(options), comm::describeProcess(place));
    Job job = prepareJob(options);
    if (options.calibrate && !options.trace.empty())
      return 0;
    if (options.calibrate && !place)
      widenForCalibration(job);
    job.alone = place.has_value();
    if (job.options.restarts) // a rank that is started again has no time for it
      cpu::generateLibraryCode();
    return comm::run(launchOf(job), [&](comm::Control &control) {
      try {
        takeMember(job, control.world());
        return work(job, control);
      } catch (const Failure &failure) {
        control.fail(failure.exitCode(), failure.what());
      } catch (const std::bad_alloc &error) {
        control.fail(exitError, Failure(job.name, error.what()).what());
      }
    });
  } catch (const Failure &failure) {
    std::cerr << format::colored(failure.what()) << std::endl;
    if (place)
      comm::tellOthers(launchOf(none), *place, failure.what());
    return failure.exitCode();
  } catch (const comm::LaunchError &error) {
    std::cerr << format::colored(Failure(nameOf(options), error.what()).what()) << std::endl;
    return error.code;
  } catch (const std::exception &error) {
    Failure failure(none.name, error.what());
    std::cerr << format::colored(failure.what()) << std::endl;
    if (place)
      comm::tellOthers(launchOf(none), *place, failure.what());
    return exitError;
  }
}

} // namespace par::core
