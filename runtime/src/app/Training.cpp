// The work of one rank: start, step, save, evaluate, end.
#include "Agreement.h"
#include "Calibration.h"
#include "Progress.h"
#include "Results.h"
#include "RunSaves.h"

#include "par/app/Devices.h"
#include "par/app/LearningRate.h"
#include "par/messages/Failure.h"
#include "par/save/Export.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace par::core {
namespace {

class RankRun {
public:
  RankRun(const Job &job, comm::Control &control)
      : job(job), options(job.options), control(control), manifest(job.bundle.manifest),
        session(job.bundle, job.name, control, deviceNamed(job.device()), sessionOptions(job)), progress(job, control),
        trace(options, control.rank() == 0), saves(job, session, progress) {}

  int run() {
    if (job.alone)
      agreeOnFlags(job, control);
    progress.start();
    progress.remark(session.onDevice().remark());
    progress.remark(job.remark);
    if (options.dryRun) {
      progress.finish();
      return 0;
    }
    giveValues();
    int code = options.eval ? evaluateOnly() : job.predicts() ? predict() : train();
    saves.writes([&] {
      if (interrupted && !options.exportTo.empty())
        progress.notExported(); // an earlier file of that name may be a whole run's
      else if (options.exportTo.ends_with(".onnx"))
        exportModel(session, options.bundle, options.exportTo);
      else if (!options.exportTo.empty())
        exportWeights(session, options.exportTo);
      trace.write(control);
    });
    if (options.checkArena)
      reportArenas();
    if (std::string found = session.onDevice().report(); session.rank() == 0 && !found.empty())
      progress.say(found);
    progress.finish();
    return code;
  }

private:
  static SessionOptions sessionOptions(const Job &job) {
    int threads = job.options.threads ? job.options.threads : static_cast<int>(job.bundle.manifest.threads);
    return {threads, job.options.checkArena, job.world, job.options.comm, tuningOf(job)};
  }

  /// Beside the checkpoints: DIR/tuning.json for DIR/STEP.
  static Tuning tuningOf(const Job &job) {
    namespace fs = std::filesystem;
    auto fileIn = [](const fs::path &folder) { return (folder / "tuning.json").string(); };
    Tuning tuning;
    tuning.times = !job.options.noTuning;
    if (!job.options.save.empty())
      tuning.read = tuning.write = fileIn(job.options.save);
    if (job.checkpoint) {
      fs::path step = job.checkpoint->store.place;
      tuning.read = fileIn((step.has_filename() ? step : step.parent_path()).parent_path());
    }
    return tuning;
  }

  void giveValues() {
    if (job.checkpoint) {
      agreeOnCheckpoint();
      session.restore(job.checkpoint->store);
      position = job.checkpoint->position;
      saves.goOnFrom(job.checkpoint->store.place);
    } else {
      session.initialize(job.weights ? &*job.weights : nullptr, job.seed);
      position = {0, 0, job.seed, job.shuffled};
    }
    position.data = job.dataSample;
    session.setHyper("seed", static_cast<double>(job.seed)); // a checkpoint's, if random ops of the model ask for it
    for (const auto &[key, value] : options.set)
      session.setHyper(key, value);
  }

  /// Ranks that a launcher started look for the newest checkpoint each by itself.
  void agreeOnCheckpoint() {
    std::string mine = core::format("step {} of run {}", job.checkpoint->position.step, job.checkpoint->run);
    auto all = control.allGather("resume", mine);
    for (size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw Failure::at(job.checkpoint->store.place, Message::checkpointDiffers, rank, all[rank], all[0]);
  }

  /// The rate of the step after `step` updates.
  double rateOf(uint64_t step) const {
    if (auto set = options.set.find("lr"); set != options.set.end())
      return set->second;
    if (manifest.lr)
      return learningRate(*manifest.lr, step);
    for (const format::Hyper &hyper : manifest.hypers)
      if (hyper.name == "lr")
        return hyper.value;
    return 0;
  }

  int train() {
    RowOrder order(job.rowsOf(job.dataset.get()), job.shuffled, job.seed);
    while (position.step < job.steps) {
      if (!control.startStep(position.step + 1)) {
        interrupted = true;
        break;
      }
      std::vector<StepSummary> summaries = step(order);
      for (const StepSummary &summary : summaries) {
        if (summary.badRank >= 0 || lossScaleExhausted(summary))
          saves.finish();
        if (summary.badRank >= 0)
          failNonFinite(summary, control.allGather("nan", session.firstNonFinite()));
        if (lossScaleExhausted(summary))
          failLossScale(summary);
        // A loss inside the model is 0, not NaN, for a batch without labels.
        if (summary.loss == 0 && !saidIgnored)
          sayIgnored(summary.step);
        lastLoss = summary.loss;
      }
      SaidOfSaves said = saves.afterStep(position, summaries.back().saving);
      for (const StepSummary &summary : summaries)
        saves.writes([&] { progress.step(summary, summary.step == position.step ? said : SaidOfSaves()); });
      if (saves.passed(position, options.evalEvery))
        evaluate(job.evalDataset.get(), position.step);
    }
    if (interrupted && !options.save.empty() && position.step > 0)
      progress.interrupted(saves.save(position));
    uint64_t bound = 0; // of the role that takes most, as the peak is of the rank that took most
    for (const format::Program &program : job.bundle.programs)
      bound = std::max(bound, program.arena.deviceBytes());
    progress.done(bound, session.scratchBytes());
    return 0; // after a signal the control plane sets the exit code
  }

  /// A scale below 1 is no cure: the gradients themselves overflow.
  static bool lossScaleExhausted(const StepSummary &summary) {
    return summary.skipped() && summary.hasLossScale && summary.lossScale < 1;
  }

  [[noreturn]] void failLossScale(const StepSummary &summary) const {
    auto failure =
        Failure::at("step " + std::to_string(summary.step), Message::lossScaleExhausted, summary.lossScale * 2)
            .exitsWith(exitNan);
    std::string ignored = ignoredLabels(summary.step);
    throw ignored.empty() ? failure : std::move(failure).note(ignored);
  }

  /// The optimizer steps of one call of `train`; every rank gets the same summaries.
  std::vector<StepSummary> step(const RowOrder &order) {
    std::vector<double> rates;
    for (uint64_t call = 0; call < manifest.calls; ++call)
      rates.push_back(rateOf(position.step - position.skipped + call));
    session.setHypers("lr", rates);
    auto began = std::chrono::steady_clock::now();
    uint64_t sentBefore = session.sentBytes();
    trace.prepare(session, position.step + 1);
    runTrain(order);
    StepReport report;
    report.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count() /
                static_cast<double>(manifest.calls);
    report.sentBytes = (session.sentBytes() - sentBefore) / manifest.calls;
    report.peakBytes = peakBytes();
    report.saving = saves.busy();
    std::vector<std::string> texts;
    for (uint64_t call = 0; call < manifest.calls; ++call) {
      report.metrics = session.results(call);
      texts.push_back(report.encode());
    }
    std::vector<StepSummary> summaries = summarizeCalls(manifest, control.allGather("step", joinReports(texts)));
    for (auto [call, summary] = std::pair(size_t(0), summaries.begin()); summary != summaries.end(); ++summary) {
      summary->step = ++position.step;
      summary->lr = rates[call++];
      position.skipped += summary->skipped();
      position.rows += manifest.batch;
    }
    trace.add(session, position.step, job.bundle.programs[manifest.ranks[session.rank()].role]);
    return summaries;
  }

  /// Resident bytes of the arena, asked for only in the first two steps and the last: asking visits every page.
  uint64_t peakBytes() {
    if (stepsSeen++ < 2 || position.step + manifest.calls >= job.steps)
      resident = session.residentArena();
    return resident;
  }

  /// One call of `train`; an error says in which step, and from which save to go on.
  void runTrain(const RowOrder &order) {
    try {
      StepRows now{job.dataset.get(), &order, position.rows}, next;
      if (position.step + manifest.calls < job.steps) {
        next = now;
        next.position += manifest.batch * manifest.calls;
      }
      session.run("train", now, next);
    } catch (Failure &failure) {
      throw std::move(failure).note(core::format("in step {}; {}", position.step + 1, saves.whereToGoOn()));
    }
  }

  /// Says which file brought a NaN, if one did.
  std::string nanInWeights() const {
    const WeightStore *store = job.weights ? &*job.weights : job.checkpoint ? &job.checkpoint->store : nullptr;
    return store ? describeNaN(*store) : "";
  }

  /// Says which row of the data of a step among the last ones brought a NaN, if one did.
  std::string nanInData(uint64_t step) const {
    if (!job.dataset)
      return "";
    RowOrder order(job.rowsOf(job.dataset.get()), job.shuffled, job.seed);
    uint64_t behind = (position.step - step + 1) * manifest.batch;
    return describeNaN(manifest, {job.dataset.get(), &order, position.rows - behind}, manifest.batch);
  }

  /// Says whether no label of the batch of a step among the last ones counts.
  std::string ignoredLabels(uint64_t step) const {
    if (!job.dataset)
      return "";
    RowOrder order(job.rowsOf(job.dataset.get()), job.shuffled, job.seed);
    uint64_t behind = (position.step - step + 1) * manifest.batch;
    return describeIgnored(manifest, {job.dataset.get(), &order, position.rows - behind}, manifest.batch);
  }

  void sayIgnored(uint64_t step) {
    std::string ignored = control.rank() == 0 ? ignoredLabels(step) : "";
    saidIgnored = !ignored.empty();
    if (saidIgnored)
      progress.say(core::format("step {}: warning: {}", step, ignored));
  }

  /// Evaluation and prediction show no loss per step: NaN weights are announced first.
  void warnOfNaN() const {
    if (std::string bad = control.rank() == 0 ? nanInWeights() : ""; !bad.empty())
      fprintf(stderr, "%s: warning: %s\n", format::printable(job.name).c_str(),
              core::format(textOf(Message::weightsAreNaN), bad).c_str());
  }

  /// Every rank throws the same; the first rank that can name a value is the one that is named.
  [[noreturn]] void failNonFinite(const StepSummary &summary, const std::vector<std::string> &firsts) {
    auto rank = static_cast<uint32_t>(summary.badRank);
    for (uint32_t i = 0; firsts[rank].empty() && i < firsts.size(); ++i)
      rank = firsts[i].empty() ? rank : i;
    std::string note = core::format("the last finite loss was {}", lastLoss);
    if (std::isnan(lastLoss))
      note = "no loss was finite before";
    if (std::string bad = nanInWeights(); !bad.empty())
      note = bad + "; " + note;
    if (std::string bad = nanInData(summary.step); !bad.empty())
      note = bad + "; " + note;
    if (std::string ignored = ignoredLabels(summary.step); !ignored.empty())
      note = ignored + "; " + note;
    const std::string &saved = saves.last();
    note += saved.empty() ? "; nothing was saved: --save DIR --save-every N keeps states to go back to"
                          : "; the last saved state is in " + saved + "; try --resume " + saved;
    std::string coordinates = manifest.mesh.empty() ? "one rank" : coordinatesOf(manifest, rank);
    bool byGradient = std::isfinite(summary.loss) && std::isnan(summary.gradNorm);
    throw Failure::at("step " + std::to_string(summary.step), Message::lossIsNan,
                      byGradient ? "the gradient's norm" : "loss",
                      byGradient || std::isnan(summary.loss) ? "NaN" : "infinite", rank, coordinates,
                      firsts[rank].empty() ? "memory holds no other value that is not finite"
                                           : "the first value in memory that is not finite is " + firsts[rank])
        .note(note)
        .exitsWith(exitNan);
  }

  int evaluateOnly() {
    warnOfNaN();
    evaluate(job.dataset.get(), 0);
    return 0;
  }

  /// Mean loss over whole batches, in order. Under --eval (afterStep is 0) one that is not finite ends the job.
  void evaluate(const Dataset *dataset, uint64_t afterStep) {
    uint64_t given = job.rowsOf(dataset), batches = given / manifest.batch;
    RowOrder order(given, !afterStep && job.shuffled, job.seed);
    double sum = 0;
    uint64_t bad = 0, firstBad = 0;
    std::string ignored; // of the first batch without a label that counts
    for (uint64_t i = 0; i < batches; ++i) {
      if (!afterStep && !control.startStep(i + 1))
        return; // the control plane says which signal came
      session.run("eval", {dataset, &order, i * manifest.batch});
      StepReport report;
      report.metrics = session.results();
      // Not 0: this rank has been asked to end. All see the same reports, and so end after the same batch.
      report.metrics[asked] = afterStep && control.stopRequested() ? 1 : 0;
      std::vector<std::string> reports = control.allGather("eval", report.encode());
      double loss = summarize(manifest, reports).loss;
      sum += loss;
      if (!std::isfinite(loss) && bad++ == 0)
        firstBad = i + 1;
      if (loss == 0 || (bad == 1 && firstBad == i + 1))
        ignored = ignored.empty() ? describeIgnored(manifest, {dataset, &order, i * manifest.batch}, manifest.batch)
                                  : ignored;
      if (std::any_of(reports.begin(), reports.end(),
                      [](const std::string &text) { return StepReport::decode(text).metrics[asked] != 0; }))
        return;
    }
    uint64_t rows = batches * manifest.batch;
    progress.evaluated(rows, given - rows, sum / static_cast<double>(batches), afterStep);
    if (bad > 0 && !afterStep) {
      auto failure = Failure::at("eval", Message::evalIsNan, std::isnan(sum) ? "NaN" : "infinite", bad, batches,
                                 firstBad, manifest.batch)
                         .exitsWith(exitNan);
      throw ignored.empty() ? failure : std::move(failure).note(ignored);
    }
    if (!ignored.empty() && control.rank() == 0)
      progress.say("eval: warning: " + ignored);
  }

  /// Every sample once, in order; samples from the front fill up the last batch.
  int predict() {
    warnOfNaN();
    uint64_t rows = job.rowsOf(job.dataset.get()); // a model whose inputs have no batch is called once
    uint64_t batches = (rows + manifest.batch - 1) / manifest.batch, batch = 0;
    RowOrder order(rows, job.shuffled, job.seed);
    std::optional<ResultWriter> writer;
    if (!options.output.empty())
      writer.emplace(manifest, options.output, rows, control);
    session.onResult([&](const format::Output &output, int64_t microbatch, std::span<const std::byte> from) {
      if (writer)
        writer->take(output, batch, microbatch, from);
    });
    auto began = std::chrono::steady_clock::now();
    for (; batch < batches; ++batch) {
      if (!control.startStep(batch + 1))
        return 0; // as in train(); the file of the results has not got its name yet
      trace.prepare(session, batch + 1);
      session.run("predict", {job.dataset.get(), &order, batch * manifest.batch});
      trace.add(session, batch + 1, job.bundle.programs[manifest.ranks[session.rank()].role]);
    }
    session.onResult({});
    if (writer)
      writer->finish();
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    progress.predicted(rows, took.count());
    return 0;
  }

  /// --check-arena: bytes that each rank touched, beside the prediction.
  void reportArenas() {
    ArenaUse use = session.arenaUse();
    auto all = control.gather("arena", core::format("rank {}: touched {} of {} bytes", session.rank(),
                                                    grouped(use.touched), grouped(use.bound)));
    for (const std::string &line : all)
      progress.say("arena   " + line);
  }

  static constexpr const char *asked = "asked_to_end";

  const Job &job;
  const RunOptions &options;
  comm::Control &control;
  const format::Manifest &manifest;
  Session session;
  Progress progress;
  Trace trace;
  RunSaves saves;
  RunPosition position;
  uint64_t stepsSeen = 0, resident = 0;
  double lastLoss = std::nan("");
  bool interrupted = false; ///< before the last step
  bool saidIgnored = false; ///< that no label of a batch counts
};

} // namespace

int runRank(const Job &job, comm::Control &control) {
  if (job.options.calibrate)
    return runCalibration(job, control, calibrate::largestFor(job.device()));
  return RankRun(job, control).run();
}

} // namespace par::core
