// Compares what the command lines of all ranks come to, before the first step.
#include "Agreement.h"

#include "files/ContentSample.h"
#include "par/messages/Failure.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace par::core {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A flag to compare: as a user says it, and its value in comparable form.
struct Term {
  std::string flag, said, meant;
};

class Terms {
public:
  Terms(const Job &job, bool goesOn) : job(job), options(job.options), goesOn(goesOn) {
    start();
    data();
    length();
    results();
    for (const auto &[key, value] : options.set)
      add("--set " + key, core::format("--set {}={}", key, value), json(value).dump());
  }

  std::vector<Term> all;

private:
  void add(const std::string &flag, const std::string &said, const std::string &meant) {
    all.push_back({flag, said, meant});
  }

  void given(const std::string &flag, bool is) { add(flag, is ? flag : "no " + flag, is ? "1" : "0"); }

  /// Files may have other paths on other hosts; their content counts.
  void files(const std::string &flag, const std::vector<std::string> &paths) {
    std::string said = paths.empty() ? "no " + flag : "", meant;
    for (const std::string &path : paths) {
      std::error_code error;
      said += (said.empty() ? "" : " ") + flag + " " + path;
      meant += sampleOf(fs::is_directory(path, error) ? path + "/index.json" : path) + " ";
    }
    add(flag, said, meant);
  }

  void start() {
    std::string none = options.resume == "auto" ? "--resume auto, which finds no save" : "no --resume";
    // A rank that comes to a job that goes on finds a newer save, and has its state from the others.
    if (goesOn && options.resume == "auto")
      return add("--resume", "--resume auto", "auto");
    add("--resume", job.checkpoint ? "--resume " + job.checkpoint->store.place : none, job.checkpoint ? "1" : "0");
    if (job.checkpoint)
      return; // which one, the ranks compare by run and step
    given("--init", options.init);
    // A save is told from others by its run and step; other files by themselves.
    std::vector<std::string> weights = options.weights;
    for (std::string &path : weights)
      if (std::error_code error; job.weights && fs::is_directory(path, error))
        path = job.weights->place;
    files("--weights", weights);
    add("seed", core::format("seed {}", job.seed), std::to_string(job.seed));
  }

  void data() {
    std::vector<std::string> paths = options.data;
    std::string renamed;
    for (std::string &given : paths) {
      DataSpec spec = readDataSpec(given);
      renamed += spec.renamings + " ";
      given = spec.path;
    }
    files("--data", paths);
    add("--data", "--data ..." + renamed, renamed);
    std::vector<std::string> single;
    for (const std::string &given : options.inputs) {
      InputSpec spec = readInputSpec(given);
      single.push_back(spec.path);
      add("--input", "--input " + given, spec.input + " " + spec.array);
    }
    files("--input", single);
    for (const std::string &given : options.normalize)
      add("--normalize", "--normalize " + given, given);
    given("--synthetic", options.synthetic);
    files("--text", options.text.empty() ? std::vector<std::string>() : std::vector{options.text});
    TokenSpec tokens = readTokenSpec(options.tokens);
    files("--tokens", tokens.path.empty() ? std::vector<std::string>() : std::vector{tokens.path});
    add("--tokens", "--tokens " + options.tokens, tokens.type);
    uint64_t stride = options.stride.value_or(0);
    add("--stride", stride ? core::format("--stride {}", stride) : "no --stride", std::to_string(stride));
    add("--labels", "--labels " + options.labels, options.labels);
    if (!job.checkpoint && !(goesOn && options.resume == "auto"))
      add("--order", job.shuffled ? "--order shuffled" : "--order sequential", job.shuffled ? "1" : "0");
    DataSpec eval = readEvalSpec(options.evalData, !options.tokens.empty());
    files("--eval-data", eval.path.empty() ? std::vector<std::string>() : std::vector{eval.path});
    add("--eval-data", "--eval-data ..." + eval.renamings, eval.renamings);
  }

  void length() {
    given("--eval", options.eval);
    add("--steps", core::format("{} steps", job.steps), std::to_string(job.steps));
    add("--eval-every", core::format("--eval-every {}", options.evalEvery), std::to_string(options.evalEvery));
    given("--dry-run", options.dryRun);
    given("--shrink", options.shrink.has_value());
    uint64_t mirror = options.mirror.value_or(0);
    add("--mirror", mirror ? core::format("--mirror {}", mirror) : "no --mirror", std::to_string(mirror));
    given("--calibrate", options.calibrate.has_value());
    given("--bench", options.bench.has_value());
    add("--iterations", core::format("{} iterations", options.iterations.value_or(0)),
        std::to_string(options.iterations.value_or(0)));
    add("--duration", core::format("--duration {}", options.duration), json(options.duration).dump());
    add("--warm-up", core::format("--warm-up {}", options.warmUp), std::to_string(options.warmUp));
  }

  /// Files that all ranks write together.
  void results() {
    // Hosts may see one folder under different paths, yet hardly under another last name.
    fs::path save = fs::path(options.save).lexically_normal();
    std::string name = (save.has_filename() ? save.filename() : save.parent_path().filename()).string();
    add("--save", options.save.empty() ? "no --save" : "--save " + options.save, name);
    add("--save-every", core::format("--save-every {}", options.saveEvery), std::to_string(options.saveEvery));
    given("--export", !options.exportTo.empty());
    given("--into", options.exportOnly);
    add("--max-shard", core::format("--max-shard {}", options.maxShard), std::to_string(options.maxShard));
    given("--ema", options.averages);
    std::string onNan = options.onNan.empty() ? "" : core::format("--on-nan {}:{}", options.onNan, options.maxSkips);
    add("--on-nan", onNan.empty() ? "no --on-nan" : onNan, onNan);
    given("--output", !options.output.empty());
    given("--trace", !options.trace.empty());
    given("--check-arena", options.checkArena);
    given("--no-tuning", options.noTuning);
  }

  const Job &job;
  const RunOptions &options;
  bool goesOn; ///< lost ranks were started again
};

} // namespace

void agreeOnFlags(const Job &job, comm::Control &control) {
  json mine = json::array();
  for (const Term &term : Terms(job, control.placing().attempt > 0).all)
    mine.push_back({term.flag, term.said, term.meant});
  auto handler = json::error_handler_t::replace; // paths may be any bytes
  auto all = control.allGather("flags", mine.dump(-1, ' ', false, handler));
  json first = json::parse(all[0]);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    json theirs = json::parse(all[rank]);
    for (size_t i = 0; i < std::max(theirs.size(), first.size()); ++i) {
      json none = {"", "no " + (i < first.size() ? first : theirs)[i][0].get<std::string>(), ""};
      const json &b = i < theirs.size() ? theirs[i] : none, &a = i < first.size() ? first[i] : none;
      if (a[0] != b[0] || a[2] != b[2])
        throw Failure::at(job.name, Message::flagsDiffer, rank, b[1].get<std::string>(), a[1].get<std::string>())
            .exitsWith(exitUsage);
    }
  }
}

} // namespace par::core
