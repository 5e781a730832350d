// Parses par-run's command line by a table of flags. Flags of other launchers and keys of the plan get an error that
// names Par's own.
#include "par/app/Options.h"

#include "OptionChecks.h"
#include "par/cpu/Machine.h"
#include "par/format/NearestWord.h"
#include "par/messages/Failure.h"
#include "par/save/Export.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

namespace par::core {
namespace {

constexpr double longestWait = 1e6; // seconds; beyond it clocks overflow

/// From `least` to what a Number holds, but at most 2^40, so that sums and products of such numbers fit.
template <typename Number>
Number wholeNumber(const std::string &flag, const std::string &text, Number least) {
  constexpr uint64_t most = std::min<uint64_t>(uint64_t(1) << 40, std::numeric_limits<Number>::max());
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool isNumeric = end == text.data() + text.size() && end != text.data() && error != std::errc::invalid_argument;
  if (isNumeric && (error == std::errc::result_out_of_range || value > most))
    refuse(Message::flagBad, flag, format("a whole number from {} to {}", least, most), text);
  if (!isNumeric || value < static_cast<uint64_t>(least))
    refuse(Message::flagBad, flag, format("a whole number of at least {}", least), text);
  return static_cast<Number>(value);
}

/// A whole number of bytes, or of KB, MB or GB.
uint64_t byteCount(const std::string &flag, const std::string &text) {
  constexpr std::pair<std::string_view, uint64_t> units[] = {
      {"KB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"", 1}};
  for (const auto &[unit, bytes] : units)
    if (text.ends_with(unit))
      if (std::string number = text.substr(0, text.size() - unit.size());
          !number.empty() && number.size() < 10 && number.find_first_not_of("0123456789") == std::string::npos &&
          std::stoull(number) > 0)
        return std::stoull(number) * bytes;
  refuse(Message::flagBad, flag, "a number of bytes above 0, KB, MB or GB", text);
}

double realNumber(const std::string &flag, const std::string &text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    refuse(Message::flagBad, flag, "a number", text);
  return value;
}

/// Hearts beat several times a second; a shorter time would take every rank for lost.
double seconds(const std::string &flag, const std::string &text) {
  double value = realNumber(flag, text);
  if (value < 1 || value > longestWait)
    refuse(Message::flagBad, flag, "a number from 1 to 1000000", text);
  return value;
}

int threadCount(const std::string &text) {
  int value = wholeNumber("--threads", text, 1);
  if (value > cpu::maxThreads())
    refuse(Message::tooManyThreads, value, cpu::maxThreads(), cpu::threadsOfCore,
           cpu::maxThreads() / cpu::threadsOfCore);
  return value;
}

const std::string &oneOf(const std::string &flag, const std::string &text, std::initializer_list<const char *> words,
                         const char *all) {
  for (const char *word : words)
    if (text == word)
      return text;
  refuse(Message::flagBad, flag, all, text);
}

/// The number is in the range of the option that holds it.
template <typename Number>
void takeCount(Number &option, const std::string &flag, const std::string &text, std::type_identity_t<Number> least) {
  option = wholeNumber(flag, text, least);
}
template <typename Number>
void takeCount(std::optional<Number> &option, const std::string &flag, const std::string &text,
               std::type_identity_t<Number> least) {
  option = wholeNumber(flag, text, least);
}

/// A flag: its name, its value's name ("" for none), its help, and its parser. A flag with a single meaning is given
/// once.
struct Flag {
  const char *name, *value, *meaning;
  std::function<void(RunOptions &, const std::string &)> take;
  bool repeats = false;
  bool optional = false; ///< its value, which then only `=` gives
};

void takeSet(RunOptions &options, const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos)
    refuse(Message::flagBad, "--set", "KEY=VALUE", text);
  // The plan's names, train.optimizer.lr and train.clip, or the bundle's.
  std::string key = text.substr(0, equals);
  for (std::string_view prefix : {"train.optimizer.", "train."})
    if (key.starts_with(prefix))
      key.erase(0, prefix.size());
  std::string value = text.substr(equals + 1);
  double number = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  bool isNumeric = error == std::errc() && end == value.data() + value.size();
  if (!isNumeric && key != "lr" && key != "clip" && key != "seed")
    refuse(Message::planKey, text, text);
  number = realNumber("--set", value);
  if (auto [known, isNew] = options.set.emplace(key, number); !isNew)
    refuse(Message::flagTwice, "--set " + key, format("{}", known->second), value);
}

/// "--save $UNSET" is no job without saves.
const std::string &notEmpty(const std::string &flag, const std::string &what, const std::string &text) {
  if (text.empty())
    refuse(Message::flagBad, flag, what, text);
  return text;
}

/// F, or F:A-B.
void takeTrace(RunOptions &options, const std::string &spec) {
  options.trace = notEmpty("--trace", "a file", spec);
  size_t colon = spec.rfind(':'), dash = spec.rfind('-');
  bool ranged = colon != std::string::npos && dash != std::string::npos && dash > colon + 1 && dash + 1 < spec.size() &&
                spec.find_first_not_of("0123456789-", colon + 1) == std::string::npos;
  if (!ranged)
    return;
  auto number = [&](size_t from, size_t to, uint64_t &value) {
    auto [end, error] = std::from_chars(spec.data() + from, spec.data() + to, value);
    return error == std::errc() && end == spec.data() + to;
  };
  if (!number(colon + 1, dash, options.traceFirst) || !number(dash + 1, spec.size(), options.traceLast) ||
      options.traceFirst > options.traceLast)
    refuse(Message::flagBad, "--trace", "F or F:A-B, steps A to B", spec);
  options.trace.resize(colon);
}

/// csv:F. Event files of TensorBoard are written by its own package, in Python.
void takeLog(RunOptions &options, const std::string &text) {
  constexpr std::string_view table = "csv:";
  if (text.starts_with("tensorboard:"))
    refuse(Message::flagNeeds, "--log " + text, "the Python package: par.run(log=...), or par.TensorBoard in job.fit");
  if (!text.starts_with(table) || text.size() == table.size())
    refuse(Message::flagBad, "--log", "csv:FILE", text);
  options.log = text.substr(table.size());
}

/// stop, skip or skip:N.
void takeOnNan(RunOptions &options, const std::string &text) {
  constexpr std::string_view limited = "skip:";
  bool isLimited = text.starts_with(limited);
  options.onNan = isLimited ? "skip" : oneOf("--on-nan", text, {"stop", "skip"}, "stop, skip or skip:N");
  if (isLimited)
    takeCount(options.maxSkips, "--on-nan skip:N", text.substr(limited.size()), 1);
}

/// Nothing, or N.
void takeRestart(RunOptions &options, const std::string &text) {
  options.restarts = std::numeric_limits<uint64_t>::max();
  if (!text.empty())
    takeCount(options.restarts, "--restart", text, 1);
}

/// Nothing, or seconds.
void takeShrink(RunOptions &options, const std::string &text) {
  constexpr double usual = 10;
  options.shrink = text.empty() ? usual : seconds("--shrink", text);
}

#define TEXT(FIELD) [](RunOptions &o, const std::string &v) { o.FIELD = v; }
#define LIST(FIELD) [](RunOptions &o, const std::string &v) { o.FIELD.push_back(v); }
#define NAMED(NAME, WHAT, FIELD) [](RunOptions &o, const std::string &v) { o.FIELD = notEmpty(NAME, WHAT, v); }
#define MARK(FIELD) [](RunOptions &o, const std::string &) { o.FIELD = true; }
#define COUNT(NAME, FIELD, LEAST) [](RunOptions &o, const std::string &v) { takeCount(o.FIELD, NAME, v, LEAST); }

/// Flags that measure a bundle instead of using its results.
std::vector<Flag> measuringFlags() {
  return {
      {"--calibrate", "[=F.yaml]", "measure this machine with the bundle's instructions into a hardware file",
       [](RunOptions &o, const std::string &v) { o.calibrate = v; }, false, true},
      {"--bench", "[=F.json]", "time calls of predict (or of train, or with --eval of eval) on made-up data",
       [](RunOptions &o, const std::string &v) { o.bench = v; }, false, true},
      {"--iterations", "N", "with --bench: calls that are timed; default: as many as --duration allows",
       COUNT("--iterations", iterations, 1)},
      {"--duration", "S", "with --bench: seconds of timed calls, at least ten of them; default 3",
       [](RunOptions &o, const std::string &v) { o.duration = seconds("--duration", v); }},
      {"--warm-up", "N", "with --bench: calls after the first one that are not timed; default 3",
       COUNT("--warm-up", warmUp, 0)},
  };
}

/// Flags of bundles that do not train.
std::vector<Flag> predictingFlags() {
  return {
      {"--output", "F.safetensors", "of a bundle without train: what it predicts", NAMED("--output", "a file", output)},
      {"--generate", "F.jsonl|-", "of a decoder: continue prompts, a request a line; -: from standard input",
       NAMED("--generate", "a file, or -", generate)},
      {"--serve", "PATH|tcp:PORT|-", "answer requests: on a socket of this user, of 127.0.0.1, or from standard input",
       NAMED("--serve", "a path, tcp:PORT or -", serve)},
      {"--max-wait", "MS", "with --serve: milliseconds that a request waits for others of its batch; default 0",
       [](RunOptions &o, const std::string &v) {
         o.maxWait = realNumber("--max-wait", v);
         if (o.maxWait < 0 || o.maxWait > 60'000)
           refuse(Message::flagBad, "--max-wait", "a number from 0 to 60000", v);
       }},
      {"--cache", "DIR", "with --serve: keep there what the next start need not compute again; default: $PAR_CACHE",
       NAMED("--cache", "a folder", cache)},
  };
}

/// Flags that say what the inputs are fed.
std::vector<Flag> dataFlags() {
  return {
      {"--data", "F[:input=array,...]",
       "arrays named as the inputs, .safetensors, .npz, .npy or .pt; repeat for shards", LIST(data), true},
      {"--input", "INPUT=F[:ARRAY]", "a file of arrays for one input; repeat for others", LIST(inputs), true},
      {"--normalize", "INPUT[=MEAN/SPREAD]",
       "pixels of u8 as floats: (p / 255 - MEAN) / SPREAD, by channel or one for all", LIST(normalize), true},
      {"--synthetic", "", "made-up data of the inputs' shapes: one batch, again and again", MARK(synthetic)},
      {"--text", "F", "the file's bytes as tokens, in windows", NAMED("--text", "a file", text)},
      {"--tokens", "F[:TYPE]", "the file's integers as tokens, in windows: F.bin:u16, or a .npy",
       NAMED("--tokens", "a file", tokens)},
      {"--stride", "N", "tokens between the begins of two windows; default: they do not overlap",
       COUNT("--stride", stride, 1)},
      {"--labels", "next|same", "labels are the next tokens, or the same",
       [](RunOptions &o, const std::string &v) { o.labels = oneOf("--labels", v, {"next", "same"}, "next or same"); }},
      {"--order", "shuffled|sequential", "order of samples; default: shuffled to train, sequential to evaluate",
       [](RunOptions &o, const std::string &v) {
         o.order = oneOf("--order", v, {"shuffled", "sequential"}, "shuffled or sequential");
       }},
  };
}

std::vector<Flag> runningFlags() {
  return {
      {"-n", "N", "start N local ranks: the bundle's number, or that of a member of its family", COUNT("-n", n, 1)},
      {"--comm", "auto|inproc|shm|tcp|mpi|nccl",
       "what carries the buffers; inproc: ranks are threads, of one GPU on cuda; tcp, mpi: between hosts",
       [](RunOptions &o, const std::string &v) {
         o.comm =
             oneOf("--comm", v, {"auto", "inproc", "shm", "tcp", "mpi", "nccl"}, "auto, inproc, shm, tcp, mpi or nccl");
       }},
      {"--device", "cpu|sim", "what it runs on; sim: all ranks here, queues in hostile orders, races are errors",
       [](RunOptions &o, const std::string &v) { o.device = oneOf("--device", v, {"cpu", "sim"}, "cpu or sim"); }},
      {"--interleavings", "N", "with --device sim: orders in which each run of an entry is played; default 20",
       COUNT("--interleavings", interleavings, 1)},
      {"--sim-seed", "S", "with --device sim: the seed of these orders; default 1", COUNT("--sim-seed", simSeed, 0)},
      {"--threads", "N", "threads of each rank (default: 1)",
       [](RunOptions &o, const std::string &v) { o.threads = threadCount(v); }},
      {"--rank", "R", "this process's rank, with --world and --master", COUNT("--rank", rank, 0)},
      {"--world", "N", "number of ranks", COUNT("--world", world, 1)},
      {"--master", "HOST:PORT", "where rank 0 listens", TEXT(master)},
      {"--timeout", "S", "seconds without a heartbeat until a rank counts as lost",
       [](RunOptions &o, const std::string &v) { o.timeout = seconds("--timeout", v); }},
      {"--join-timeout", "S", "seconds until all ranks of a launcher must have come; default 60",
       [](RunOptions &o, const std::string &v) { o.joinTimeout = seconds("--join-timeout", v); }},
      {"--restart", "[=N]", "start lost ranks again and go on, at most N times (default: always)", takeRestart, false,
       true},
      {"--shrink", "[=S]", "go on with fewer ranks, by a member of the family, where lost ones do not come within S s",
       takeShrink, false, true},
      {"--spares", "K", "with --restart: the launcher's last K processes wait to take the place of lost ranks",
       COUNT("--spares", spares, 1)},
      {"--mirror", "K", "with --restart: every K steps a neighbour gets the state that no other rank holds",
       COUNT("--mirror", mirror, 1)},
      {"--weights", "F", "a .safetensors file, an index.json, a folder of these, or a save; repeat for shards",
       LIST(weights), true},
      {"--init", "", "start from train.init; beside --weights what the files lack", MARK(init)},
      {"--resume", "DIR|auto", "go on from a checkpoint; auto: the newest of --save, if any",
       NAMED("--resume", "a folder", resume)},
      {"--steps", "N", "train until step N", COUNT("--steps", steps, 1)},
      {"--epochs", "E", "train for E passes over the data", COUNT("--epochs", epochs, 1)},
      {"--eval", "", "only forward and loss", MARK(eval)},
      {"--eval-every", "N", "evaluate every N steps, on --eval-data", COUNT("--eval-every", evalEvery, 1)},
      {"--eval-data", "F", "data for --eval-every: a file of arrays, text with --text, or tokens with --tokens",
       NAMED("--eval-data", "a file", evalData)},
      {"--save", "DIR", "write checkpoints", NAMED("--save", "a folder", save)},
      {"--save-every", "N", "after every N steps; the last one is saved always", COUNT("--save-every", saveEvery, 1)},
      {"--keep", "N", "how many checkpoints to keep", COUNT("--keep", keep, 1)},
      {"--export", "F",
       "write the whole weights at the end: .safetensors, a folder as save_pretrained's, or .onnx with the model",
       NAMED("--export", "a file", exportTo)},
      {"--max-shard", "SIZE", "bytes of one file of an export into a folder, as 200MB; default 5GB",
       [](RunOptions &o, const std::string &v) { o.maxShard = byteCount("--max-shard", v); }},
      {"--ema", "", "export the averages of train.ema, and read those of a save for --eval and predictions",
       MARK(averages)},
      {"--into", "F", "write the weights as --export does, and run nothing",
       [](RunOptions &o, const std::string &v) {
         o.exportTo = notEmpty("--into", "a file", v);
         o.exportOnly = true;
       }},
      {"--from", "F", "with --into: the weights or the save that is written; default: the model's",
       [](RunOptions &o, const std::string &v) { o.weights.push_back(notEmpty("--from", "a file", v)); }},
      {"--metrics", "F.jsonl", "one JSON object a step", NAMED("--metrics", "a file", metrics)},
      {"--log", "csv:F", "the same as a table", takeLog},
      {"--log-every", "N", "a progress line every N steps; default: about ten in all",
       COUNT("--log-every", logEvery, 1)},
      {"--trace", "F[:A-B]", "Perfetto trace of all ranks, steps A to B", takeTrace},
      {"--set", "K=V", "lr, clip or seed", takeSet, true},
      {"--on-nan", "stop|skip[:N]", "if a loss or gradient is not finite; skip: at most N (10) in a row", takeOnNan},
      {"--no-tuning", "", "time no algorithms of matmuls, take the library's first proposal", MARK(noTuning)},
      {"--dry-run", "", "load, verify, connect, stop", MARK(dryRun)},
      {"--check-arena", "", "poison unused memory and measure what is touched", MARK(checkArena)},
      {"--help", "", "this", MARK(help)},
      {"--version", "", "version, and that of the bundle format", MARK(version)},
  };
}

/// How a run says what it says.
std::vector<Flag> sayingFlags() {
  return {
      {"-q", "", "no progress lines", MARK(quiet)},
      {"-v", "", "a progress line every step", MARK(verbose)},
      {"--json", "", "lines of standard output as JSON objects: {\"said\": ...}, and those of --metrics", MARK(json)},
      {"--color", "[=auto|always|never]",
       "colours of errors and warnings; --color is auto: on a terminal, unless NO_COLOR is set",
       [](RunOptions &o, const std::string &v) {
         o.color = v.empty() ? "auto" : oneOf("--color", v, {"auto", "always", "never"}, "auto, always or never");
       },
       false, true},
  };
}

const std::vector<Flag> &flags() {
  static const std::vector<Flag> table = [] {
    std::vector<Flag> all = runningFlags();
    for (const std::vector<Flag> &more : {dataFlags(), predictingFlags(), measuringFlags(), sayingFlags()})
      all.insert(all.end() - 2, more.begin(), more.end()); // before --help and --version
    return all;
  }();
  return table;
}

/// Flags of other programs, and par-run's counterparts; or the plan's, if it begins with a key.
struct ForeignFlag {
  const char *names; ///< without dashes, with `-` for `_`, each followed by a blank
  Message message;
  const char *own;
};
constexpr ForeignFlag foreignFlags[] = {
    {"lr learning-rate ", Message::foreignFlag, "--set lr=VALUE"},
    {"seed random-seed ", Message::foreignFlag, "--set seed=N"},
    {"clip clip-grad max-grad-norm clip-grad-norm ", Message::foreignFlag, "--set clip=VALUE"},
    {"max-steps num-steps train-steps train-iters ", Message::foreignFlag, "--steps N"},
    {"num-epochs num-train-epochs ", Message::foreignFlag, "--epochs E"},
    {"output-dir checkpoint-dir save-dir ckpt ", Message::foreignFlag, "--save DIR"},
    {"save-steps save-interval ", Message::foreignFlag, "--save-every N"},
    {"save-total-limit ", Message::foreignFlag, "--keep N"},
    {"eval-steps eval-interval ", Message::foreignFlag, "--eval-every N"},
    {"logging-steps log-interval ", Message::foreignFlag, "--log-every N"},
    {"resume-from-checkpoint ", Message::foreignFlag, "--resume DIR|auto"},
    {"nproc-per-node num-processes gpus np ", Message::foreignFlag, "-n N"},
    {"dataset train-file train-data ", Message::foreignFlag, "--data F.safetensors, or --text F"},
    {"checkpoint load pretrained ", Message::foreignFlag, "--weights F, or --resume DIR"},
    {"predict ", Message::foreignFlag,
     "no flag for it: a bundle without train predicts, and --output F keeps the results"},
    {"batch batch-size train-batch-size per-device-train-batch-size global-batch-size ", Message::planFlag, "batch=N"},
    {"gradient-accumulation-steps micro-batch-size microbatches ", Message::planFlag, "batch.microbatches=N"},
    {"bf16 fp16 precision dtype ", Message::planFlag, "precision=bf16"},
    {"weight-decay ", Message::planFlag, "train.optimizer.weight_decay=VALUE"},
    {"optimizer optim ", Message::planFlag, "train.optimizer=adamw"},
    {"tp tensor-parallel-size dp pp pipeline-parallel-size mesh ", Message::planFlag, "'mesh={dp: N}'"},
    {"zero zero-stage ", Message::planFlag, "zero=1"},
    {"target cuda gpu ", Message::planFlag, "target=cuda"},
};

void refuseForeign(const std::string &name) {
  std::string word = name.substr(std::min(name.find_first_not_of('-'), name.size())) + " ";
  std::replace(word.begin(), word.end(), '_', '-');
  for (const ForeignFlag &foreign : foreignFlags)
    if ((" " + std::string(foreign.names)).find(" " + word) != std::string::npos)
      refuse(foreign.message, name, foreign.own);
}

[[noreturn]] void refuseFlag(const std::string &name) {
  refuseForeign(name);
  std::vector<std::string_view> names;
  for (const Flag &flag : flags())
    names.push_back(flag.name);
  std::string near = format::didYouMean(name, names);
  throw Failure::at("par-run", Message::unknownFlag, name, near.empty() ? "; --help lists them" : near)
      .exitsWith(exitUsage);
}

} // namespace

RunOptions parseOptions(const std::vector<std::string> &arguments) {
  RunOptions options;
  std::map<std::string, std::string> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i], value;
    if (!name.starts_with("-")) {
      if (!options.bundle.empty())
        refuse(Message::twoBundles, options.bundle, name);
      options.bundle = name;
      continue;
    }
    size_t equals = name.find('=');
    bool attached = equals != std::string::npos;
    if (attached) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const Flag *found = nullptr;
    for (const Flag &flag : flags())
      if (name == flag.name)
        found = &flag;
    if (!found)
      refuseFlag(name);
    bool takesValue = *found->value != 0;
    if (takesValue && !attached && !found->optional) {
      if (++i == arguments.size())
        refuse(Message::flagValue, name, found->value);
      value = arguments[i];
    } else if (!takesValue && attached) {
      refuse(Message::flagBad, name, "no value", value);
    }
    auto [before, isNew] = given.emplace(name, value);
    if (!isNew && takesValue && !found->repeats)
      refuse(Message::flagTwice, name, before->second, value);
    found->take(options, value);
  }
  if (options.bundle.empty() && !options.help && !options.version)
    refuse(Message::noBundle);
  if (options.shrink && !options.restarts)
    takeRestart(options, "");
  checkTogether(options, given);
  options.quiet |= !options.generate.empty(); // standard output is that of tokens
  if (options.verbose && options.logEvery == 0)
    options.logEvery = 1;
  return options;
}

void takeDevice(RunOptions &options, const std::string &environment) {
  if (environment.empty() || !options.device.empty() || options.comm == "shm" || options.rank || options.calibrate ||
      options.restarts)
    return;
  size_t first = environment.find(':'), second = first == std::string::npos ? first : environment.find(':', first + 1);
  options.device = oneOf("PAR_DEVICE", environment.substr(0, first), {"cpu", "sim"}, "cpu or sim");
  if (first != std::string::npos)
    takeCount(options.interleavings, "PAR_DEVICE", environment.substr(first + 1, second - first - 1), 1);
  if (second != std::string::npos)
    takeCount(options.simSeed, "PAR_DEVICE", environment.substr(second + 1), 0);
}

std::string usage() {
  std::string text = "par-run BUNDLE [flags]: train, evaluate or predict with a bundle on its ranks\n";
  for (const Flag &flag : flags()) {
    std::string name = std::string("  ") + flag.name + (*flag.value && !flag.optional ? " " : "") + flag.value;
    name.resize(std::max<size_t>(name.size() + 2, 34), ' ');
    text += name + flag.meaning + "\n";
  }
  text += "PAR_TOKEN in the environment: the job's secret, the same for all ranks, 16 characters or more; without it\n"
          "rank 0 makes one and hands it to processes of its own user on its own host. Not needed where -n starts the "
          "ranks.\n";
  return text;
}

} // namespace par::core
