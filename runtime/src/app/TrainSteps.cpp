// One call of `train`: rates, run, reports of all ranks, and what is said where a number is not finite.
#include "TrainSteps.h"

#include "par/app/LearningRate.h"

namespace par::core {

std::string nanInWeights(const Job &job) {
  const WeightStore *store = job.weights ? &*job.weights : job.checkpoint ? &job.checkpoint->store : nullptr;
  return store ? describeNaN(*store) : "";
}

/// A scale below 1 is no cure: the gradients themselves overflow.
static bool lossScaleExhausted(const StepSummary &summary) {
  return summary.skipped() && summary.hasLossScale && summary.lossScale < 1;
}

std::vector<StepSummary> TrainSteps::make(const StepRows &now, const StepRows &next) {
  std::vector<StepSummary> summaries = step(now, next);
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
  return summaries;
}

double TrainSteps::rateOf(uint64_t step) const {
  if (auto set = job.options.set.find("lr"); set != job.options.set.end())
    return set->second;
  if (manifest.lr)
    return learningRate(*manifest.lr, step);
  for (const format::Hyper &hyper : manifest.hypers)
    if (hyper.name == "lr")
      return hyper.value;
  return 0;
}

std::vector<StepSummary> TrainSteps::step(const StepRows &now, const StepRows &next) {
  std::vector<double> rates;
  for (uint64_t call = 0; call < manifest.calls; ++call)
    rates.push_back(rateOf(position.step - position.skipped + call));
  session.setHypers("lr", rates);
  auto began = std::chrono::steady_clock::now();
  uint64_t sentBefore = session.sentBytes();
  trace.prepare(session, position.step + 1);
  run(now, next);
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
uint64_t TrainSteps::peakBytes() {
  if (stepsSeen++ < 2 || position.step + manifest.calls == job.steps)
    resident = session.residentArena();
  return resident;
}

/// One call of `train`; an error says in which step, and from which save to go on.
void TrainSteps::run(const StepRows &now, const StepRows &next) {
  rows = now;
  try {
    session.run("train", now, next);
  } catch (Failure &failure) {
    throw std::move(failure).note(core::format("in step {}; {}", position.step + 1, saves.whereToGoOn()));
  }
}

/// The rows of a step of the last call.
StepRows TrainSteps::rowsOf(uint64_t step) const {
  StepRows own = rows;
  own.position += (step + manifest.calls - position.step - 1) * manifest.batch;
  return own;
}

/// Says whether no label of the batch of a step of the last call counts.
std::string TrainSteps::ignoredLabels(uint64_t step) const {
  return rows.dataset ? describeIgnored(manifest, rowsOf(step), manifest.batch) : "";
}

void TrainSteps::sayIgnored(uint64_t step) {
  std::string ignored = control.rank() == 0 ? ignoredLabels(step) : "";
  saidIgnored = !ignored.empty();
  if (saidIgnored)
    progress.say(core::format("step {}: warning: {}", step, ignored));
}

void TrainSteps::failLossScale(const StepSummary &summary) const {
  auto failure = Failure::at("step " + std::to_string(summary.step), Message::lossScaleExhausted, summary.lossScale * 2)
                     .exitsWith(exitNan);
  std::string ignored = ignoredLabels(summary.step);
  throw ignored.empty() ? failure : std::move(failure).note(ignored);
}

/// Every rank throws the same; the first rank that can name a value is the one that is named.
void TrainSteps::failNonFinite(const StepSummary &summary, const std::vector<std::string> &firsts) const {
  auto rank = static_cast<uint32_t>(summary.badRank);
  for (uint32_t i = 0; firsts[rank].empty() && i < firsts.size(); ++i)
    rank = firsts[i].empty() ? rank : i;
  std::string note = core::format("the last finite loss was {}", lastLoss);
  if (std::isnan(lastLoss))
    note = "no loss was finite before";
  if (std::string bad = nanInWeights(job); !bad.empty())
    note = bad + "; " + note;
  if (std::string bad = rows.dataset ? describeNaN(manifest, rowsOf(summary.step), manifest.batch) : ""; !bad.empty())
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

} // namespace par::core
