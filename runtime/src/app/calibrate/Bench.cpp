#include "Bench.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace par::core {

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Random numbers lie wherever a program may read what no other rank has sent, and in the scratch memory.
Bench::Bench(Session &session, const format::Bundle &bundle, uint64_t scratchBytes)
    : session(session), bundle(bundle), program(bundle.programs[bundle.manifest.ranks[session.rank()].role]),
      table(comm::tableOf(bundle)), queue(computeQueue(program)), rows(bundle.manifest.batch * bundle.manifest.calls),
      order(rows.rows(), false, 0) {
  std::byte *from = session.onDevice().arenas().dev + program.arena.state;
  uint64_t left = program.arena.pool + scratchBytes, at = 0;
  std::vector<std::byte> block(std::min<uint64_t>(left, 4 << 20));
  fillRandomly(block, 1);
  for (; at < left; at += block.size())
    session.onDevice().write(from + at, std::span(block).first(std::min<uint64_t>(block.size(), left - at)));
}

std::byte *Bench::scratch(uint64_t at) const {
  return session.onDevice().arenas().dev + program.arena.deviceBytes() + at;
}

MadeEntry &Bench::newEntry() {
  return made.emplace_back("calibrate", std::span(program.entries.front().runs).first(1));
}

double Bench::play(const ExpandedEntry &entry) {
  auto began = std::chrono::steady_clock::now();
  session.play(entry, {&rows, &order, 0});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

namespace {

constexpr int repetitions = 5;
constexpr double mostSteps = 500;

/// Of the shorter run: each repetition plays one and three times as many.
uint64_t stepsFor(double seconds, double secondsOfOne) {
  double fit = seconds / (repetitions * 4 * std::max(secondsOfOne, 1e-8));
  return static_cast<uint64_t>(std::clamp(fit, 1.0, mostSteps));
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
    const std::vector<Stamp> &stamps = bench.stamps();
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
  const ExpandedEntry &one = entryOf(bench, add, 1).expanded();
  bench.play(one);
  uint64_t count = stepsFor(seconds, bench.play(one));
  const ExpandedEntry &few = entryOf(bench, add, count).expanded(), &many = entryOf(bench, add, 3 * count).expanded();
  for (const ExpandedEntry *entry : {&few, &many, &few, &many}) // a GPU captures a graph in the second run
    bench.play(*entry);
  Difference difference(bench, 2 * count);
  for (int i = 0; i < repetitions; ++i) {
    double shorter = bench.play(few);
    difference.add(shorter, bench.play(many));
  }
  return difference.ns();
}

double timeOfSharedStep(Bench &bench, const std::function<void(MadeEntry &)> &add, bool takesPart, double seconds) {
  comm::Control &control = bench.session.jobControl();
  auto together = [&](const ExpandedEntry *entry) {
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
  const ExpandedEntry *one = entry(1);
  together(one);
  uint64_t count = stepsFor(seconds, agreed(together(one)));
  const ExpandedEntry *few = entry(count), *many = entry(3 * count);
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

} // namespace par::core
