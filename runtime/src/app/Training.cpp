// The work of one rank: start, step, save, evaluate, end.
#include "Agreement.h"
#include "Bench.h"
#include "Calibration.h"
#include "Evaluation.h"
#include "Generate.h"
#include "GoingOn.h"
#include "Results.h"
#include "SessionOptions.h"
#include "TrainSteps.h"

#include "par/app/Devices.h"
#include "par/messages/Failure.h"
#include "par/save/Export.h"

#include <algorithm>

namespace par::core {
namespace {

/// --check-arena: bytes that each rank touched, beside the prediction.
void reportArenas(Session &session, Progress &progress) {
  ArenaUse use = session.arenaUse();
  auto all = session.jobControl().gather("arena", core::format("rank {}: touched {} of {} bytes", session.rank(),
                                                               grouped(use.touched), grouped(use.bound)));
  for (const std::string &line : all)
    progress.say("arena   " + line);
}

class RankRun {
public:
  RankRun(const Job &job, comm::Control &control)
      : job(job), options(job.options), control(control), manifest(job.bundle.manifest),
        session(job.bundle, job.name, control, deviceNamed(job.device()), sessionOptions(job)), goingOn(job, session),
        progress(job, control, goingOn.printed()), trace(job, control.rank() == 0), saves(job, session, progress),
        steps(job, session, progress, trace, saves, position) {}

  int run() {
    if (job.alone)
      agreeOnFlags(job, control);
    if (!goingOn.again()) {
      progress.start();
      progress.remark(session.onDevice().remark());
      progress.remark(job.remark);
    }
    if (options.dryRun) {
      progress.finish();
      return 0;
    }
    giveValues();
    int code = options.exportOnly ? 0 : options.eval ? evaluateOnly() : job.predicts() ? predict() : train();
    saves.writes([&] {
      if (interrupted && !options.exportTo.empty())
        progress.notExported(); // an earlier file of that name may be a whole run's
      else if (options.exportTo.ends_with(".onnx"))
        exportModel(session, options.bundle, options.exportTo, exportsAverages());
      else if (!options.exportTo.empty())
        exportWeights(session, options.exportTo, options.maxShard, exportsAverages());
      if (options.exportOnly)
        progress.remark("wrote   " + options.exportTo);
      trace.write(control);
    });
    if (options.checkArena)
      reportArenas(session, progress);
    if (std::string found = session.onDevice().report(); session.rank() == 0 && !found.empty())
      progress.say(found);
    progress.finish();
    return code;
  }

private:
  /// Weights that were only read are averages already.
  bool exportsAverages() const { return options.averages && job.trains() && !options.exportOnly; }

  void giveValues() {
    // Values that a copy of the state is to overwrite are neither computed nor read.
    bool held = goingOn.again() && job.trains() && goingOn.holdsAll();
    PickTensor rest = [](const format::Tensor &tensor) { return !changesInTraining(tensor); };
    if (job.checkpoint) {
      if (!goingOn.again())
        agreeOnCheckpoint();
      session.restore(job.checkpoint->store, held ? rest : nullptr);
      position = job.checkpoint->position;
      saves.goOnFrom(job.checkpoint->store.place);
    } else {
      session.initialize(job.weights ? &*job.weights : nullptr, job.seed, held ? rest : nullptr);
      position = {0, 0, job.seed, job.shuffled};
    }
    firstStep = position.step + 1;
    if (goingOn.again())
      goOn();
    position.data = job.dataSample;
    session.setHyper("seed", static_cast<double>(job.seed)); // a checkpoint's, if random ops of the model ask for it
    for (const auto &[key, value] : options.set)
      session.setHyper(key, value);
  }

  /// Lost ranks were started again: the run is at a boundary that all ranks hold, or at its begin.
  void goOn() {
    if (auto boundary = job.trains() ? goingOn.restore(saves.takeUp()) : std::nullopt)
      steps.goOnFrom(*boundary);
    else if (!options.resume.empty())
      agreeOnCheckpoint();
    progress.goOn(position.step, goingOn.remark());
    if (job.trains() && position.step >= firstStep)
      saves.makeAgain(position);
  }

  /// Ranks that a launcher started look for the newest checkpoint each by itself.
  void agreeOnCheckpoint() {
    std::string mine = "no save", place = job.name;
    if (job.checkpoint) {
      mine = core::format("step {} of run {}", job.checkpoint->position.step, job.checkpoint->run);
      place = job.checkpoint->store.place;
    }
    auto all = control.allGather("resume", mine);
    for (size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw Failure::at(place, Message::checkpointDiffers, rank, all[rank], all[0]);
  }

  void makeSteps() {
    RowOrder order(job.rowsOf(job.dataset.get()), job.shuffled, job.seed);
    while (position.step < job.steps) {
      if (!control.startStep(position.step + 1)) {
        interrupted = true;
        break;
      }
      StepRows now{job.dataset.get(), &order, position.rows}, next;
      if (position.step + manifest.calls < job.steps) {
        next = now;
        next.position += manifest.batch * manifest.calls;
      }
      std::vector<StepSummary> summaries = steps.make(now, next);
      if (saves.passed(position, options.evalEvery))
        Evaluation(job, session, control, progress, position.step).run(job.evalDataset.get());
      progress.remark(goingOn.afterStep(steps.boundary(), summaries.back(), steps.saidOfSaves(), saves.pending()));
      steps.tellCopy(goingOn.copyMs());
      // A save that is being written would not be made again after a later boundary.
      if (position.step < job.steps && !saves.pending())
        goingOn.growIfPossible(steps.boundary());
    }
  }

  int train() {
    steps.tellMirror([this] { return goingOn.mirrors(); });
    try {
      makeSteps();
    } catch (...) {
      goingOn.keepSettled();
      throw;
    }
    if (interrupted && !options.save.empty() && position.step > 0)
      progress.interrupted(saves.save(position));
    progress.remark(goingOn.costOfMirrors());
    uint64_t bound = 0; // of the role that takes most, as the peak is of the rank that took most
    for (const format::Program &program : job.bundle.programs)
      bound = std::max(bound, program.arena.deviceBytes());
    progress.done(bound, session.scratchBytes(), position.step + 1 - firstStep);
    return 0; // after a signal the control plane sets the exit code
  }

  int evaluateOnly() {
    steps.warnOfNaN();
    Evaluation(job, session, control, progress, 0).run(job.dataset.get());
    return 0;
  }

  /// Every sample once, in order; samples from the front fill up the last batch.
  int predict() {
    steps.warnOfNaN();
    if (!options.generate.empty())
      return generate(job, session);
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

  const Job &job;
  const RunOptions &options;
  comm::Control &control;
  const format::Manifest &manifest;
  Session session;
  GoingOn goingOn;
  Progress progress;
  Trace trace;
  RunSaves saves;
  RunPosition position;
  TrainSteps steps;
  uint64_t firstStep = 1;
  bool interrupted = false; ///< before the last step
};

} // namespace

int runRank(const Job &job, comm::Control &control) {
  if (job.options.calibrate)
    return runCalibration(job, control, calibrate::largestFor(job.device()));
  if (job.options.bench)
    return runBench(job, control);
  return RankRun(job, control).run();
}

} // namespace par::core
