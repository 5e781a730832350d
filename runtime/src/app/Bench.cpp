// Calls one entry again and again on made-up data. A call takes as long as its slowest rank. Weights are the bundle's,
// for times depend on them: denormals, zeros and NaN are slower or faster than what a model computes with.
#include "Bench.h"

#include "Agreement.h"
#include "CpuTime.h"
#include "Progress.h"
#include "par/app/Devices.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace par::core {
namespace {

using std::chrono::steady_clock;

double millisecondsSince(steady_clock::time_point began) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - began).count();
}

/// The times of one call after another; a call of several ranks has that of the slowest.
class CallTimes {
public:
  explicit CallTimes(std::vector<double> ms) : sorted(std::move(ms)) { std::sort(sorted.begin(), sorted.end()); }
  /// The time within which that share of the calls ended (the nearest rank).
  double percentile(double share) const {
    auto place = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::min(std::max<size_t>(place, 1), sorted.size()) - 1];
  }
  double mean() const { return sum() / static_cast<double>(sorted.size()); }
  double sum() const { return std::accumulate(sorted.begin(), sorted.end(), 0.0); }
  size_t count() const { return sorted.size(); }

private:
  std::vector<double> sorted;
};

class BenchRun {
public:
  BenchRun(const Job &job, comm::Control &control)
      : job(job), control(control), entry(benchedEntry(job)),
        threads(job.options.threads ? job.options.threads : static_cast<int>(job.bundle.manifest.threads)),
        session(job.bundle, job.name, control, deviceNamed(job.device()), sessionOptions()),
        progress(job, control, printed), order(job.rowsOf(job.dataset.get()), /*shuffled=*/false, job.seed) {}

  int run() {
    progress.start();
    session.initialize(job.weights ? &*job.weights : nullptr, job.seed);
    session.setHyper("seed", static_cast<double>(job.seed));
    for (const auto &[key, value] : job.options.set)
      session.setHyper(key, value);
    loadMs = slowest({millisecondsSince(job.began)}).front();
    std::vector<double> first = measure(1), warm = measure(job.options.warmUp);
    double before = cpuMs(CLOCK_PROCESS_CPUTIME_ID);
    std::vector<double> times = first.empty() ? first : measure(callsAfter(first, warm));
    if (times.empty())
      return 0; // the control plane says which signal came
    double processor = (cpuMs(CLOCK_PROCESS_CPUTIME_ID) - before) / static_cast<double>(times.size());
    report(first.front(), slowest({processor}).front(), CallTimes(times));
    progress.finish();
    return 0;
  }

private:
  SessionOptions sessionOptions() const {
    SessionOptions options;
    options.threads = threads;
    options.world = job.world;
    options.comm = job.options.comm;
    options.tuning.times = !job.options.noTuning;
    return options;
  }

  /// Every rank gets the same times, so that all decide alike.
  std::vector<double> slowest(const std::vector<double> &mine) {
    std::vector<double> all(mine.size());
    for (const std::string &text : control.allGather("bench", nlohmann::json(mine).dump())) {
      std::vector<double> theirs = nlohmann::json::parse(text);
      for (size_t i = 0; i < all.size(); ++i)
        all[i] = std::max(all[i], theirs[i]);
    }
    return all;
  }

  /// Milliseconds of each call; none after a signal.
  std::vector<double> measure(uint64_t calls) {
    std::vector<double> times;
    for (uint64_t call = 0; call < calls && !interrupted; ++call) {
      interrupted = !control.startStep(++called);
      if (interrupted)
        break;
      auto began = steady_clock::now();
      session.run(entry, {job.dataset.get(), &order, 0});
      times.push_back(millisecondsSince(began));
    }
    return interrupted ? std::vector<double>() : slowest(times);
  }

  /// As many calls as were asked for, or as fill the time.
  uint64_t callsAfter(const std::vector<double> &first, const std::vector<double> &warm) const {
    constexpr double fewest = 10, most = 100'000;
    if (job.options.iterations)
      return *job.options.iterations;
    double each = CallTimes(warm.empty() ? first : warm).percentile(0.5);
    return static_cast<uint64_t>(std::clamp(job.options.duration * 1000 / each, fewest, most));
  }

  void report(double firstMs, double processor, const CallTimes &times) {
    const format::Manifest &manifest = job.bundle.manifest;
    uint64_t rows = manifest.batch * (entry == "train" ? manifest.calls : 1);
    double calls = static_cast<double>(times.count()) * 1000 / times.sum();
    nlohmann::ordered_json facts = {
        {"bundle", job.name},
        {"entry", entry},
        {"ranks", manifest.ranks.size()},
        {"threads", threads},
        {"rows", rows},
        {"warm_up", job.options.warmUp},
        {"calls", times.count()},
        {"latency_ms",
         {{"p50", times.percentile(0.5)},
          {"p90", times.percentile(0.9)},
          {"p99", times.percentile(0.99)},
          {"mean", times.mean()},
          {"min", times.percentile(0)},
          {"max", times.percentile(1)}}},
        {"cpu_ms", processor},
        {"calls_per_s", calls},
        {"rows_per_s", calls * static_cast<double>(rows)},
        {"first_call_ms", firstMs},
        {"load_ms", loadMs},
    };
    if (control.rank() != 0)
      return;
    progress.say(core::format("bench   {}: {} calls of {} {}, {} {} a rank", entry, times.count(), rows,
                              rows == 1 ? "row" : "rows", threads, threads == 1 ? "thread" : "threads"));
    progress.say(core::format("latency p50 {} ms, p90 {}, p99 {}, mean {}; CPU time {} ms a call",
                              rounded(times.percentile(0.5)), rounded(times.percentile(0.9)),
                              rounded(times.percentile(0.99)), rounded(times.mean()), rounded(processor)));
    progress.say(core::format("rate    {} calls/s, {} rows/s; first call {} ms, load {} ms", rounded(calls),
                              rounded(calls * static_cast<double>(rows)), rounded(firstMs), rounded(loadMs)));
    if (!job.options.bench->empty())
      StreamWriter(*job.options.bench).write(facts.dump(2) + "\n");
  }

  static std::string rounded(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.3f", value);
    return text;
  }

  const Job &job;
  comm::Control &control;
  std::string entry;
  int threads;
  Session session;
  Printed printed;
  Progress progress;
  RowOrder order;
  double loadMs = 0;
  uint64_t called = 0;
  bool interrupted = false;
};

} // namespace

std::string benchedEntry(const Job &job) {
  std::string entry = job.options.eval ? "eval" : job.predicts() ? "predict" : "train";
  if (job.bundle.programs.front().findEntry(entry) == format::noIndex)
    throw Failure::at(job.name, Message::flagNeeds, "--eval", "a bundle that trains; this one predicts")
        .exitsWith(exitUsage);
  return entry;
}

int runBench(const Job &job, comm::Control &control) {
  if (job.alone)
    agreeOnFlags(job, control);
  return BenchRun(job, control).run();
}

} // namespace par::core
