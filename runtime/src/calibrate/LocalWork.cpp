// Times the steps of a program's local work, pass after pass, by the clock on the wall and by the thread's own.
#include "LocalWork.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace par::calibrate {

using format::Op;

std::string entryToMeasure(const format::Program &program) {
  return program.findEntry("train") != format::noIndex ? "train" : program.entries.front().name;
}

LocalWork::LocalWork(Bench &bench)
    : bench(bench), whole(bench.entry(entryToMeasure(bench.program))),
      local(whole, bench.table, bench.scratch(), bench.queue) {}

std::optional<RowKey> LocalWork::keyOf(size_t step) const {
  int64_t source = local.sources[step];
  return source < 0 ? std::nullopt : rowOf(bench.program, *whole.steps[static_cast<size_t>(source)].instruction);
}

/// ns of each step, from its begin to the next one's: issuing it takes the time between.
std::vector<int64_t> LocalWork::playOnce(bool byThread) {
  bench.setting.device.stampThreadTime(byThread);
  bench.play(local.made.expanded());
  bench.setting.device.stampThreadTime(false);
  const std::vector<core::Stamp> &stamps = bench.stamps();
  std::vector<int64_t> times(stamps.size());
  for (size_t i = 0; i < stamps.size(); ++i)
    times[i] = (i + 1 < stamps.size() ? stamps[i + 1].begin : stamps[i].end) - stamps[i].begin;
  return times;
}

namespace {

constexpr size_t minPasses = 3, maxPasses = 25;

double medianOf(const std::vector<std::vector<int64_t>> &passes, size_t step) {
  std::vector<double> times;
  for (const std::vector<int64_t> &pass : passes)
    times.push_back(static_cast<double>(pass[step]));
  return median(times);
}

/// The median pass against the sum of the steps' medians: a step is now and then late and never early, so that the
/// medians add up to less. By the thread's own time, in which no other process takes part.
double skewOf(const std::vector<std::vector<int64_t>> &passes) {
  if (passes.empty())
    return 1;
  std::vector<double> wholes;
  double sum = 0;
  for (const std::vector<int64_t> &pass : passes)
    wholes.push_back(static_cast<double>(std::accumulate(pass.begin(), pass.end(), int64_t(0))));
  for (size_t step = 0; step < passes.front().size(); ++step)
    sum += medianOf(passes, step);
  constexpr double most = 1.25;
  return sum > 0 ? std::clamp(median(wholes) / sum, 1.0, most) : 1;
}

} // namespace

/// At least three times by each clock, and on until the time is over; once before, for pages, caches and code.
std::vector<double> LocalWork::playFor(double seconds) {
  auto began = std::chrono::steady_clock::now();
  auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  playOnce(false);
  std::vector<std::vector<int64_t>> byThread;
  byWall.clear();
  while (byWall.size() < minPasses || (byWall.size() < maxPasses && spent() < seconds)) {
    byWall.push_back(playOnce(false));
    if (bench.hasThreadTime())
      byThread.push_back(playOnce(true));
  }
  passesPlayed = byWall.size() + byThread.size();
  std::vector<double> times;
  double scale = skewOf(byThread);
  for (size_t step = 0; step < local.sources.size(); ++step) {
    double wall = medianOf(byWall, step);
    times.push_back(scale * (byThread.empty() ? wall : bench.undisturbed(wall, medianOf(byThread, step))));
  }
  return times;
}

std::vector<std::pair<int64_t, double>> LocalWork::spread() const {
  std::vector<std::pair<int64_t, double>> rows;
  for (int64_t length = 1 << 14; byWall.size() > 1; length *= 4) {
    std::vector<double> lengths, late;
    std::vector<int64_t> sums(byWall.size());
    for (size_t step = 0; step < local.sources.size(); ++step) {
      for (size_t pass = 0; pass < byWall.size(); ++pass)
        sums[pass] += byWall[pass][step];
      auto one = static_cast<double>(*std::min_element(sums.begin(), sums.end()));
      if (one < static_cast<double>(length) && step + 1 < local.sources.size())
        continue;
      lengths.push_back(one);
      for (size_t pass = 1; pass < sums.size(); ++pass)
        late.push_back(static_cast<double>(std::abs(sums[pass] - sums[pass - 1])) / 2);
      std::fill(sums.begin(), sums.end(), 0);
    }
    rows.emplace_back(static_cast<int64_t>(median(lengths)), median(late));
    if (lengths.size() <= 1)
      break;
  }
  return rows;
}

Pass LocalWork::measure(Rows &rows, double seconds) {
  return bench.bundle.manifest.device == "cpu" ? measureInOrder(rows, seconds) : measureOneByOne(rows, seconds);
}

std::string LocalWork::describe() const {
  if (passesPlayed > 0)
    return core::format("Kernels and matmuls: medians of {} passes over {} in the order of the program.", passesPlayed,
                        whole.name);
  return "Kernels and matmuls: each many times, one after the other.";
}

Pass LocalWork::measureInOrder(Rows &rows, double seconds) {
  std::vector<double> times = playFor(seconds);
  Pass sum;
  for (size_t step = 0; step < local.sources.size(); ++step) {
    std::optional<RowKey> key = keyOf(step);
    if (!key)
      continue;
    rows.add(*key, times[step]);
    (key->list == "matmuls" ? sum.matmul : sum.kernel) += times[step];
  }
  return sum;
}

Pass LocalWork::measureOneByOne(Rows &rows, double seconds) {
  std::map<RowKey, size_t> first;
  for (size_t step = 0; step < local.sources.size(); ++step)
    if (std::optional<RowKey> key = keyOf(step))
      first.try_emplace(*key, static_cast<size_t>(local.sources[step]));
  bench.play(local.made.expanded()); // values as a step leaves them
  for (const auto &[key, source] : first) {
    auto add = [&](MadeEntry &entry) { entry.add(whole.steps[source], whole, bench.queue); };
    rows.add(key, timeOfStep(bench, add, seconds / static_cast<double>(first.size())));
  }
  return {};
}

Pass LocalWork::passes(double seconds) {
  Rows unused;
  return measureInOrder(unused, seconds);
}

} // namespace par::calibrate
