// Fills a rank's memory, plays entries, and times steps: from stamp to stamp where a device has them for nothing, else
// by the difference of two runs. Numbers of steps are chosen by the time of one, and are the same on all ranks that
// take part.
#include "Bench.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace par::calibrate {

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Bench::Bench(const Setting &setting, uint64_t scratchBytes)
    : setting(setting), bundle(setting.bundle), rank(setting.control.rank()),
      program(bundle.programs[bundle.manifest.ranks[rank].role]), table(comm::tableOf(bundle)),
      queue(computeQueue(program)), loaded(bundle, setting.folder, rank, setting.device.arenas()) {
  fillMemory(scratchBytes);
  writeHypers();
  if (hasThreadTime())
    clockNs = timeOfNothing(true) - timeOfNothing(false);
}

/// ns of a step without work, by one of the clocks.
double Bench::timeOfNothing(bool byThread) {
  MadeEntry &entry = newEntry();
  for (int i = 0; i < 1000; ++i)
    entry.copy(scratch(), scratch(), 0, queue);
  setting.device.stampThreadTime(byThread);
  play(entry.expanded());
  play(entry.expanded());
  setting.device.stampThreadTime(false);
  std::vector<double> steps;
  for (size_t i = 1; i < stamps().size(); ++i)
    steps.push_back(static_cast<double>(stamps()[i].begin - stamps()[i - 1].begin));
  return median(steps);
}

double Bench::undisturbed(double wallNs, double threadNs) const {
  return wallNs < longStepNs ? wallNs : std::min(wallNs, std::max(longStepNs, threadNs - clockNs));
}

/// Random numbers lie wherever a program may read a value that no other rank has sent, and in the scratch memory.
void Bench::fillMemory(uint64_t scratchBytes) {
  std::byte *from = setting.device.arenas().dev + program.arena.state;
  uint64_t left = program.arena.pool + scratchBytes;
  std::vector<std::byte> block(std::min<uint64_t>(left, 4 << 20));
  std::mt19937_64 random(1);
  fillRandomly(block, random);
  for (uint64_t at = 0; at < left; at += block.size())
    setting.device.write(from + at, std::span(block).first(std::min<uint64_t>(block.size(), left - at)));
}

/// Their defaults, once: nothing else writes them.
void Bench::writeHypers() {
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const format::Buffer &buffer = program.buffers[i];
    auto hyper = std::find_if(bundle.manifest.hypers.begin(), bundle.manifest.hypers.end(),
                              [&](const format::Hyper &hyper) { return hyper.name == buffer.tensor; });
    bool isScalar = buffer.kind == format::BufferKind::Hyper && buffer.bytes() == sizeof(float);
    if (!isScalar || hyper == bundle.manifest.hypers.end())
      continue;
    auto value = static_cast<float>(hyper->value);
    for (uint32_t slot = 0; slot < format::depthOf(program, i); ++slot)
      setting.device.write(loaded.address(i, slot), std::as_bytes(std::span(&value, 1)));
  }
}

std::byte *Bench::scratch(uint64_t at) const { return setting.device.arenas().dev + program.arena.deviceBytes() + at; }

MadeEntry &Bench::newEntry() {
  return made.emplace_back("calibrate", std::span(program.entries.front().runs).first(1));
}

double Bench::play(const core::ExpandedEntry &entry) {
  auto began = std::chrono::steady_clock::now();
  setting.device.run(entry, {}, host);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

namespace {

constexpr int repetitions = 5;
constexpr double maxSteps = 500;

/// Steps of the shorter run: each repetition plays one and three times as many.
uint64_t stepsFor(double seconds, double secondsOfOne) {
  double fit = seconds / (repetitions * 4 * std::max(secondsOfOne, 1e-8));
  return static_cast<uint64_t>(std::clamp(fit, 1.0, maxSteps));
}

MadeEntry &entryOf(Bench &bench, const std::function<void(MadeEntry &)> &add, uint64_t count) {
  MadeEntry &entry = bench.newEntry();
  for (uint64_t i = 0; i < count; ++i)
    add(entry);
  return entry;
}

/// Two runs of one entry, the second of which has `more` steps.
class Difference {
public:
  Difference(Bench &bench, uint64_t more) : bench(bench), more(static_cast<double>(more)) {}

  void add(double shorter, double longer) {
    times.push_back((longer - shorter) * 1e9 / more);
    if (!bench.hasStamps())
      return;
    const std::vector<core::Stamp> &stamps = bench.stamps();
    for (size_t i = 1; i < stamps.size(); ++i)
      steps.push_back(static_cast<double>(stamps[i].begin - stamps[i - 1].begin));
  }

  double ns() const { return std::max(0.0, median(steps.empty() ? times : steps)); }

private:
  Bench &bench;
  double more;
  std::vector<double> times, steps;
};

} // namespace

double timeOfStep(Bench &bench, const std::function<void(MadeEntry &)> &add, double seconds) {
  const core::ExpandedEntry &one = entryOf(bench, add, 1).expanded();
  bench.play(one);
  uint64_t count = stepsFor(seconds, bench.play(one));
  const core::ExpandedEntry &few = entryOf(bench, add, count).expanded(),
                            &many = entryOf(bench, add, 3 * count).expanded();
  for (const core::ExpandedEntry *entry : {&few, &many, &few, &many}) // a GPU captures a graph in the second run
    bench.play(*entry);
  auto repeat = [&] {
    Difference difference(bench, 2 * count);
    for (int i = 0; i < repetitions; ++i) {
      double shorter = bench.play(few);
      difference.add(shorter, bench.play(many));
    }
    return difference.ns();
  };
  double wall = repeat();
  if (!bench.hasThreadTime() || wall < Bench::longStepNs)
    return wall;
  bench.setting.device.stampThreadTime(true);
  double thread = repeat();
  bench.setting.device.stampThreadTime(false);
  return bench.undisturbed(wall, thread);
}

double timeOfSharedStep(Bench &bench, const std::function<void(MadeEntry &)> &add, bool takesPart, double seconds) {
  comm::Control &control = bench.setting.control;
  auto together = [&](const core::ExpandedEntry *entry) {
    control.barrier("calibrate");
    return takesPart ? bench.play(*entry) : 0;
  };
  auto agreed = [&](double mine) {
    double most = 0;
    for (const std::string &text : control.allGather("calibrate", core::format("{}", mine)))
      most = std::max(most, std::stod(text));
    return most;
  };
  auto entry = [&](uint64_t count) { return takesPart ? &entryOf(bench, add, count).expanded() : nullptr; };
  const core::ExpandedEntry *one = entry(1);
  together(one);
  uint64_t count = stepsFor(seconds, agreed(together(one)));
  const core::ExpandedEntry *few = entry(count), *many = entry(3 * count);
  together(few);
  together(many);
  Difference difference(bench, 2 * count);
  for (int i = 0; i < repetitions; ++i) {
    double shorter = together(few), longer = together(many);
    if (takesPart)
      difference.add(shorter, longer);
  }
  return agreed(difference.ns());
}

} // namespace par::calibrate
