// Names the cause of a loss that is no number.
#include "StepFaults.h"

#include "par/messages/TrainMessages.h"

#include <cmath>

namespace par::core {

/// Says whether no label of the batch counts.
std::string StepFaults::ignoredLabels(const StepRows &rows) const {
  const format::Manifest &manifest = job.bundle.manifest;
  return rows.dataset ? describeIgnored(manifest, rows, manifest.batch) : "";
}

/// Says which file brought a NaN, if one did.
std::string StepFaults::nanInWeights() const {
  const WeightStore *store = job.weights ? &*job.weights : job.checkpoint ? &job.checkpoint->store : nullptr;
  return store ? describeNaN(*store) : "";
}

void StepFaults::warnOfNaN() const {
  if (std::string bad = session.rank() == 0 ? nanInWeights() : ""; !bad.empty())
    fprintf(stderr, "%s: warning: %s\n", format::printable(job.name).c_str(),
            core::format(textOf(Message::weightsAreNaN), bad).c_str());
}

/// Whether a step that is not finite was left out, and is not one too many.
bool StepFaults::goesOn(const StepSummary &summary) {
  skips = summary.isNan() && summary.skipsNan && job.options.onNan != "stop" ? skips + 1 : 0;
  return skips > 0 && skips <= job.options.maxSkips;
}

void StepFaults::check(const StepSummary &summary, const StepRows &rows, RunSaves &saves) {
  if (goesOn(summary))
    return;
  // A scale below 1 is no cure: the gradients themselves overflow.
  bool exhausted = summary.skipped() && summary.hasLossScale && summary.lossScale < 1;
  if (summary.badRank >= 0 || exhausted)
    saves.finish();
  if (summary.badRank >= 0)
    failNonFinite(summary, rows, saves.last(), session.jobControl().allGather("nan", session.firstNonFinite()));
  if (exhausted)
    failLossScale(summary, rows);
  // A loss inside the model is 0, not NaN, for a batch without labels.
  if (summary.loss == 0 && !saidIgnored) {
    std::string ignored = session.rank() == 0 ? ignoredLabels(rows) : "";
    saidIgnored = !ignored.empty();
    if (saidIgnored)
      progress.say(core::format("step {}: warning: {}", summary.step, ignored));
  }
  lastLoss = summary.loss;
}

void StepFaults::failLossScale(const StepSummary &summary, const StepRows &rows) const {
  auto failure = Failure::at("step " + std::to_string(summary.step), Message::lossScaleExhausted, summary.lossScale * 2)
                     .exitsWith(exitNan);
  std::string ignored = ignoredLabels(rows);
  throw ignored.empty() ? failure : std::move(failure).note(ignored);
}

/// Every rank throws the same; the first rank that can name a value is the one that is named.
void StepFaults::failNonFinite(const StepSummary &summary, const StepRows &rows, const std::string &saved,
                               const std::vector<std::string> &firsts) const {
  auto rank = static_cast<uint32_t>(summary.badRank);
  for (uint32_t i = 0; firsts[rank].empty() && i < firsts.size(); ++i)
    rank = firsts[i].empty() ? rank : i;
  std::string note = core::format("the last finite loss was {}", lastLoss);
  if (std::isnan(lastLoss))
    note = "no loss was finite before";
  const format::Manifest &manifest = job.bundle.manifest;
  std::string inRows = rows.dataset ? describeNaN(manifest, rows, manifest.batch) : "";
  for (const std::string &cause : {nanInWeights(), inRows, ignoredLabels(rows)})
    note = (cause.empty() ? "" : cause + "; ") + note;
  note += saved.empty() ? "; nothing was saved: --save DIR --save-every N keeps states to go back to"
                        : "; the last saved state is in " + saved + "; try --resume " + saved;
  std::string coordinates = manifest.mesh.empty() ? "one rank" : coordinatesOf(manifest, rank);
  bool byGradient = std::isfinite(summary.loss) && !std::isfinite(summary.gradNorm);
  const char *what = byGradient ? "the gradient's norm" : "loss";
  const char *value = std::isnan(byGradient ? summary.gradNorm : summary.loss) ? "NaN" : "infinite";
  std::string place = "step " + std::to_string(summary.step);
  std::string first = firsts[rank].empty() ? "memory holds no other value that is not finite"
                                           : "the first value in memory that is not finite is " + firsts[rank];
  auto failure = skips == 0 ? Failure::at(place, Message::lossIsNan, what, value, rank, coordinates, first)
                            : Failure(place, say(TrainSentence::skippedAll, skips, job.options.maxSkips, what, value,
                                                 rank, coordinates, first));
  throw std::move(failure).note(note).exitsWith(exitNan);
}

} // namespace par::core
