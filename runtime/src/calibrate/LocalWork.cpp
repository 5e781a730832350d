#include "LocalWork.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <chrono>

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

} // namespace

/// At least three times by each clock, and on until the time is over; once before, for pages, caches and code.
std::vector<double> LocalWork::playFor(double seconds) {
  auto began = std::chrono::steady_clock::now();
  auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  playOnce(false);
  std::vector<std::vector<int64_t>> byWall, byThread;
  while (byWall.size() < minPasses || (byWall.size() < maxPasses && spent() < seconds)) {
    byWall.push_back(playOnce(false));
    if (bench.hasThreadTime())
      byThread.push_back(playOnce(true));
  }
  passesPlayed = byWall.size() + byThread.size();
  std::vector<double> times;
  for (size_t step = 0; step < local.sources.size(); ++step) {
    double wall = medianOf(byWall, step);
    times.push_back(byThread.empty() ? wall : bench.undisturbed(wall, medianOf(byThread, step)));
  }
  return times;
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
