// Lists the candidates of a space in a fixed order, and writes one as settings of the plan and as words.
#include "par/Search/Candidate.h"

#include "par/Solver/Schedules/Schedules.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace llvm;

namespace par {

static constexpr int64_t maxSamples = 16, maxChunks = 2;

static std::vector<int64_t> divisorsOf(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0)
      divisors.push_back(divisor);
  return divisors;
}

/// The samples of a microbatch on one rank: powers of two, and those of few microbatches.
static std::vector<int64_t> samplesOf(const Space &space, int64_t data) {
  if (!space.open.microbatches) {
    const Candidate &fixed = space.fixed;
    int64_t size = fixed.samples ? fixed.samples : space.batch / std::max<int64_t>(1, data * fixed.microbatches);
    return {std::max<int64_t>(1, size)};
  }
  constexpr int64_t few = 4, maxOfFew = 64;
  std::set<int64_t> samples; // ascending
  for (int64_t size = 1; size <= maxSamples; size *= 2)
    if (space.batch % (data * size) == 0)
      samples.insert(size);
  for (int64_t count = 1; count <= few; ++count)
    if (space.batch % (data * count) == 0 && space.batch / (data * count) <= maxOfFew)
      samples.insert(space.batch / (data * count));
  return {samples.begin(), samples.end()};
}

static std::vector<int64_t> levelsOf(const Space &space, const Candidate &shape) {
  if (!space.open.zero)
    return {space.fixed.zero};
  if (!space.trains || shape.data == 1)
    return {0};
  return {0, 1, 2, 3};
}

/// Each schedule with the stages of a rank.
static std::vector<std::pair<std::string, int64_t>> schedulesOf(const Space &space, const Candidate &shape) {
  if (shape.stages == 1)
    return {{"", 1}};
  int64_t chunks = space.stages / shape.stages; // 0: open
  if (!space.trains)
    return {{"", std::max<int64_t>(1, chunks)}};
  if (!space.open.schedule) {
    const Schedule *schedule = findSchedule(space.fixed.schedule); // none: a table
    return {{space.fixed.schedule, chunks > 0 ? chunks : schedule ? schedule->minChunks : 1}};
  }
  if (chunks > 1)
    return {{"interleaved", chunks}};
  std::vector<std::pair<std::string, int64_t>> schedules{{"1f1b", 1}, {"zb-h1", 1}};
  if (chunks == 0 && shape.stages * maxChunks <= space.maxStages())
    schedules.push_back({"interleaved", maxChunks});
  return schedules;
}

/// Adds all choices of microbatches, schedule and zero for a mesh.
static void addSplits(const Space &space, Candidate shape, std::vector<Candidate> &out) {
  for (int64_t samples : samplesOf(space, shape.data)) {
    if (space.batch % (shape.data * samples) != 0)
      continue;
    shape.samples = samples;
    shape.microbatches = space.batch / (shape.data * samples);
    if (!space.open.microbatches && space.fixed.microbatches && shape.microbatches != space.fixed.microbatches)
      continue;
    for (const auto &[schedule, chunks] : schedulesOf(space, shape))
      for (int64_t zero : levelsOf(space, shape)) {
        Candidate candidate = shape;
        candidate.schedule = schedule;
        candidate.chunks = chunks;
        candidate.zero = zero;
        out.push_back(candidate);
      }
  }
}

/// Adds all choices of the tensor axis's rules, microbatches, schedule and zero for a mesh.
static void addShardings(const Space &space, Candidate shape, std::vector<Candidate> &out) {
  if (shape.tensor == 1 || !space.open.recipe) {
    addSplits(space, shape, out);
    return;
  }
  auto found = space.shardings.find(shape.tensor);
  if (found == space.shardings.end())
    return;
  for (const Sharding &sharding : found->second) {
    shape.sequence = sharding.sequence;
    shape.lean = sharding.lean;
    addSplits(space, shape, out);
  }
}

int64_t Space::collectivesOf(int64_t elementBytes, int64_t tensor) const {
  int64_t alone = 0, together = 0;
  for (int64_t elements : weights) {
    int64_t bytes = elements * elementBytes / tensor;
    if (bytes > bucket)
      ++alone;
    else
      together += bytes;
  }
  return std::max<int64_t>(1, alone + together / std::max<int64_t>(1, bucket));
}

double Space::shares(int64_t ranks) const {
  auto whole = static_cast<double>(smallElements), shared = static_cast<double>(sum_of(weights, int64_t(0)));
  return shared > 0 ? (whole + shared) / (whole + shared / static_cast<double>(ranks)) : 1;
}

int64_t Space::maxStages() const { return 2 * layers + 2; }

int64_t Space::maxMessage() const {
  constexpr int64_t widest = sizeof(double);
  int64_t bytes = std::max<int64_t>(1, bucket);
  for (int64_t elements : weights)
    bytes = std::max(bytes, elements * widest);
  return bytes;
}

/// Whether the user's stages can be dealt to so many ranks.
static bool mayHave(const Space &space, int64_t stages) {
  return space.stages == 0 || (space.stages % stages == 0 && (stages > 1) == (space.stages > 1));
}

std::vector<Candidate> Space::candidates() const {
  std::vector<Candidate> out;
  if (!open.mesh) {
    addShardings(*this, fixed, out);
    return out;
  }
  for (int64_t tensor : divisorsOf(ranks)) {
    if (tensor > 1 && hostRanks > 0 && tensor > hostRanks)
      continue;
    for (int64_t stages : divisorsOf(ranks / tensor)) {
      if (stages > maxStages() || !mayHave(*this, stages))
        continue;
      Candidate shape = fixed;
      shape.tensor = tensor;
      shape.stages = stages;
      shape.data = ranks / tensor / stages;
      addShardings(*this, shape, out);
    }
  }
  return out;
}

std::string Space::shardingOf(const Candidate &candidate) const {
  auto found = shardings.find(candidate.tensor);
  if (found == shardings.end())
    return "";
  auto isIts = [&](const Sharding &sharding) {
    return sharding.sequence == candidate.sequence && sharding.lean == candidate.lean;
  };
  auto own = find_if(found->second, isIts);
  return own->setting;
}

std::vector<std::pair<std::string, int64_t>> axesOf(const Candidate &candidate) {
  std::vector<std::pair<std::string, int64_t>> axes{{"pp", candidate.stages}, {"dp", candidate.data}};
  if (candidate.dataOutside)
    std::swap(axes.front(), axes.back());
  axes.push_back({"tp", candidate.tensor});
  return axes;
}

std::vector<std::string> Space::settingsOf(const Candidate &candidate) const {
  std::vector<std::string> settings;
  auto set = [&](const Twine &text) { settings.push_back(text.str()); };
  if (open.mesh) {
    // Rules of the user's may name any axis, and zero needs one of replicas.
    bool namesAll = namesAxes || !open.recipe, saysZero = !open.zero && fixed.zero > 0;
    std::vector<std::string> axes;
    for (const auto &[name, size] : axesOf(candidate))
      if (size > 1 || namesAll || (saysZero && name == "dp"))
        axes.push_back((name + Twine(": ") + Twine(size)).str());
    set("mesh={" + join(axes, ", ") + "}");
  }
  if (open.recipe && candidate.tensor > 1)
    set(shardingOf(candidate));
  if (open.microbatches)
    set("batch.microbatches=" + Twine(candidate.microbatches));
  if (open.zero && candidate.zero > 0)
    set("zero.level=" + Twine(candidate.zero));
  if (candidate.offloads)
    set("offload=[states]");
  if (candidate.stages > 1 && trains)
    set("pipeline.stages=" + Twine(candidate.stages * candidate.chunks));
  if (candidate.stages > 1 && trains && open.schedule)
    set("pipeline.schedule=" + candidate.schedule);
  return settings;
}

std::string describeMesh(const Candidate &candidate) {
  std::vector<std::string> axes;
  for (const auto &[name, size] : axesOf(candidate))
    if (size > 1)
      axes.push_back((name + Twine(" ") + Twine(size)).str());
  return axes.empty() ? "1 rank" : join(axes, " x ");
}

std::string describeCandidate(const Candidate &candidate) {
  std::string text = describeMesh(candidate);
  if (candidate.sequence)
    text += " with its sequence";
  if (candidate.lean)
    text += " for memory";
  if (candidate.zero > 0)
    text += ", zero " + std::to_string(candidate.zero);
  if (candidate.offloads)
    text += ", states offloaded";
  if (candidate.stages > 1 && !candidate.schedule.empty())
    text += ", " + candidate.schedule;
  if (candidate.chunks > 1)
    text += " of " + std::to_string(candidate.chunks * candidate.stages) + " stages";
  text +=
      ", " + std::to_string(candidate.microbatches) + (candidate.microbatches == 1 ? " microbatch" : " microbatches");
  return text + " of " + std::to_string(candidate.samples);
}

} // namespace par
