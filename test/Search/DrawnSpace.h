// Random small searches, and every plan of one as it would be written by hand.
#pragma once

#include "TinyModels.h"

#include "par/Search/Candidate.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <random>

namespace par {

/// How a search goes on after its estimates.
enum class SearchPath {
  Each,      ///< each plan is compiled: those of at most 200
  Estimates, ///< of small models: as many as have so many nodes together, and none that is expected to be too slow
  Few,       ///< of larger ones: twenty at most
};

using Axes = std::vector<std::pair<std::string, int64_t>>;

/// A search: a model, a machine and the keys that the user's plan says.
struct DrawnSpace {
  std::shared_ptr<const Model> model;
  std::string text; ///< its draws in words
  std::vector<std::string> settings;
  std::string file; ///< of the machine
  int64_t ranks = 1, batch = 1;
  std::optional<Axes> mesh; ///< that is said, as the keys of the next two lines are
  std::optional<int64_t> zero, microbatches;
  std::optional<std::string> schedule;
  bool trains = true;
  int64_t share = 0; ///< of the free plan's bytes that a rank has, in percent; 0: all
  SearchPath path = SearchPath::Each;
};

/// Draws from fixed lists, alike on all hosts.
class Dice {
public:
  explicit Dice(unsigned seed) : random(seed) {}
  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[random() % choices.size()];
  }
  bool once(unsigned in) { return random() % in == 0; }

private:
  std::mt19937 random;
};

inline std::shared_ptr<const Model> drawModel(Dice &dice, int64_t batch) {
  switch (dice.of({0, 1, 1, 2, 3, 4})) {
  case 0:
    return denseModel(batch, dice.once(2) ? std::vector<int64_t>{32, 48, 64, 10} : std::vector<int64_t>{16, 96, 24, 8});
  case 1: {
    int64_t layers = dice.of<int64_t>({3, 4, 5});
    return stackModel(batch, layers, dice.of<int64_t>({16, 64}));
  }
  case 2: {
    int64_t width = dice.of<int64_t>({8, 16});
    return decoderModel(batch, 2, width, dice.of<int64_t>({16, 128}));
  }
  case 3:
    return expertsModel(batch, 4, dice.of<int64_t>({8, 32}));
  default:
    return tableModel(batch, dice.of<int64_t>({64, 1024}), 16);
  }
}

/// The file of a machine of two levels, of which the first may have one rank, or all.
inline std::string drawMachine(Dice &dice) {
  const char *text = "name: drawn\npeak: {{f32: {0}, f64: {0}, bf16: {1}}\nmemory: {2}\nlaunch: {3}\noverlap: {4}\n"
                     "kernels: {{flops: {0}, overhead: 0}\nlevels:\n"
                     "  - {{name: node, ranks: {5}, link: {6}, latency: {7}, share: {8}}\n"
                     "  - {{name: fabric, link: {9}, latency: {10}}\n";
  int fd;
  llvm::SmallString<64> path;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("drawn", "yaml", fd, path));
  llvm::raw_fd_ostream file(fd, /*shouldClose=*/true);
  int peak = dice.of({100'000, 1'000'000, 10'000'000}), memory = dice.of({10'000, 100'000, 1'000'000});
  int launch = dice.of({0, 500, 5000}), ranks = dice.of({1, 2, 4, 8}), link = dice.of({1000, 10'000, 100'000});
  int latency = dice.of({0, 1000, 20'000}), share = dice.of({0, 100, 300}), slow = dice.of({100, 1000, 10'000});
  int late = dice.of({1000, 50'000});
  file << llvm::formatv(text, peak, 4 * peak, memory, launch, dice.once(4) ? "false" : "true", ranks, link, latency,
                        share, slow, late);
  return path.str().str();
}

inline std::string meshSetting(const Axes &axes) {
  std::vector<std::string> words;
  for (const auto &[name, size] : axes)
    words.push_back(name + ": " + std::to_string(size));
  return "mesh={" + llvm::join(words, ", ") + "}";
}

/// Keys that the user's plan says.
inline void drawKeys(Dice &dice, DrawnSpace &space) {
  auto say = [&](const std::string &setting) { space.settings.push_back(setting); };
  space.trains = !dice.once(10);
  if (space.trains)
    say("train={}");
  if (dice.once(6)) {
    int64_t stages = dice.of<int64_t>({1, 2}), data = space.ranks / stages;
    space.mesh = dice.once(2) ? Axes{{"pp", stages}, {"dp", data}} : Axes{{"dp", data}, {"tp", stages}};
    say(meshSetting(*space.mesh));
  }
  if (space.trains && dice.once(5))
    say("zero=" + std::to_string(*(space.zero = dice.of<int64_t>({0, 1, 2, 3}))));
  bool isLarge = space.ranks * space.batch > 16 && !space.zero; // it has more plans than the others
  if (!space.mesh && dice.once(isLarge ? 1 : 6))
    say("batch.microbatches=" + std::to_string(*(space.microbatches = dice.of<int64_t>({1, 2}))));
  if (space.trains && !space.mesh && dice.once(8))
    say("pipeline.schedule=" + *(space.schedule = dice.of<std::string>({"1f1b", "zb-h1", "interleaved"})));
  if (space.trains && dice.once(6))
    say(dice.of<std::string>({"recompute=none", "recompute=full"}));
  if (dice.once(3))
    say("precision=bf16");
  if (dice.once(4))
    say("collectives.overlap=false");
  if (dice.once(3))
    say("collectives.bucket=2048");
}

inline DrawnSpace drawSpace(unsigned seed) {
  Dice dice(seed);
  DrawnSpace space;
  space.ranks = dice.of<int64_t>({2, 2, 2, 4, 4, 8});
  space.batch = space.ranks == 8 ? 8 : dice.of<int64_t>({4, 4, 8, 16});
  space.model = drawModel(dice, space.batch);
  space.file = drawMachine(dice);
  drawKeys(dice, space);
  space.settings.push_back("target=" + space.file);
  space.share = dice.of<int64_t>({0, 0, 0, 0, 95, 85, 70, 50});
  space.path = dice.of({SearchPath::Each, SearchPath::Estimates, SearchPath::Estimates, SearchPath::Few});
  const char *paths[] = {"each", "estimates", "few"};
  space.text = llvm::formatv("seed {0}, {1}, {2} of {3} samples, {4} ranks: {5}", seed,
                             paths[static_cast<int>(space.path)], space.model->graph.path, space.batch, space.ranks,
                             llvm::join(llvm::ArrayRef(space.settings).drop_back(), ", "));
  return space;
}

/// Settings of the stages of a plan: each schedule with one stage a rank or two.
inline std::vector<std::vector<std::string>> pipelinesOf(const DrawnSpace &space, int64_t stages) {
  if (stages == 1 || !space.trains)
    return {{}};
  std::vector<std::vector<std::string>> all;
  for (const std::string schedule : {"1f1b", "zb-h1", "interleaved"})
    if (space.schedule.value_or(schedule) == schedule)
      all.push_back({"pipeline.schedule=" + schedule,
                     "pipeline.stages=" + std::to_string(stages * (schedule == "interleaved" ? 2 : 1))});
  return all;
}

/// Adds a mesh with all samples of a microbatch, levels of zero and schedules.
inline void addSplits(const DrawnSpace &space, const std::vector<std::string> &mesh, int64_t data, int64_t stages,
                      std::vector<std::vector<std::string>> &plans) {
  for (int64_t samples = 1; samples <= 16; samples *= 2) {
    int64_t count = space.batch / (data * samples);
    if (space.batch % (data * samples) || space.microbatches.value_or(count) != count)
      continue;
    for (int64_t zero : {0, 1, 2, 3}) {
      bool changesNothing = zero > 0 && (data == 1 || !space.trains);
      if (space.zero ? *space.zero != zero : changesNothing)
        continue;
      for (const std::vector<std::string> &pipeline : pipelinesOf(space, stages)) {
        std::vector<std::string> plan = mesh;
        plan.push_back("batch.microbatches=" + std::to_string(count));
        plan.push_back("zero.level=" + std::to_string(zero));
        llvm::append_range(plan, pipeline);
        plans.push_back(std::move(plan));
      }
    }
  }
}

/// Every plan of the space as settings, with these rules of the tensor axis.
inline std::vector<std::vector<std::string>> plansOf(const DrawnSpace &space,
                                                     const std::map<int64_t, std::vector<Sharding>> &shardings) {
  std::vector<std::vector<std::string>> plans;
  for (int64_t tensor = 1; tensor <= space.ranks; tensor *= 2)
    for (int64_t stages = 1; stages * tensor <= space.ranks; stages *= 2) {
      Axes axes{{"pp", stages}, {"dp", space.ranks / tensor / stages}, {"tp", tensor}};
      auto isOther = [&](const std::pair<std::string, int64_t> &axis) {
        return axis.second > 1 && !(space.mesh && llvm::is_contained(*space.mesh, axis));
      };
      if (space.mesh && llvm::any_of(axes, isOther))
        continue;
      std::string mesh = meshSetting(space.mesh ? *space.mesh : axes);
      if (tensor == 1)
        addSplits(space, {mesh}, axes[1].second, stages, plans);
      else if (auto found = shardings.find(tensor); found != shardings.end())
        for (const Sharding &sharding : found->second)
          addSplits(space, {mesh, sharding.setting}, axes[1].second, stages, plans);
    }
  return plans;
}

} // namespace par
