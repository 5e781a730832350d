#include "Evaluation.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <cmath>

namespace par::core {

namespace {

/// `count` rows from a position on, and after them the last one again and again; with no `count` only that one.
class FilledRows : public Dataset {
public:
  FilledRows(const StepRows &from, uint64_t count, uint64_t filler) : from(from), count(count), filler(filler) {}

  uint64_t rows() const override { return from.dataset->rows(); }
  std::string describe() const override { return from.dataset->describe(); }
  bool has(const std::string &input) const override { return from.dataset->has(input); }
  const std::byte *row(const format::Input &input, uint64_t row, std::vector<std::byte> &scratch) const override {
    return from.dataset->row(input, from.order->at(from.position + (row < count ? row : filler)), scratch);
  }
  const std::byte *whole(const format::Input &input) const override { return from.dataset->whole(input); }
  std::string feeds() const override { return from.dataset->feeds(); }
  std::string place() const override { return from.dataset->place(); }
  void checkWhole() const override { from.dataset->checkWhole(); }

private:
  StepRows from;
  uint64_t count, filler;
};

constexpr const char *asked = "asked_to_end";

} // namespace

Evaluation::Evaluation(const Job &job, Session &session, comm::Control &control, Progress &progress, uint64_t afterStep)
    : job(job), session(session), control(control), progress(progress), manifest(job.bundle.manifest),
      afterStep(afterStep), means(manifest) {}

void Evaluation::run(const Dataset *dataset) {
  uint64_t given = job.rowsOf(dataset), batch = manifest.batch, left = given % batch;
  RowOrder order(given, !afterStep && job.shuffled, job.seed);
  for (uint64_t i = 0; i < given / batch; ++i) {
    if (!afterStep && !control.startStep(i + 1))
      return; // the control plane says which signal came
    if (!addBatch({dataset, &order, i * batch}))
      return;
  }
  const format::Output *loss = manifest.findOutput("loss");
  bool fills = left > 0 && loss && addsUp(*loss);
  if (fills && !afterStep && !control.startStep(batches + 1))
    return;
  if (fills && !addFilled({dataset, &order, given - left}, left))
    return;
  report(fills ? given : given - left, given);
}

/// The rows that are left, filled up with the last of them, and then a batch of nothing but that one.
bool Evaluation::addFilled(const StepRows &rows, uint64_t count) {
  uint64_t batch = manifest.batch;
  RowOrder order(batch, false, 0);
  FilledRows filled(rows, count, count - 1), filling(rows, 0, count - 1);
  if (!addBatch({&filled, &order, 0}, 1, false))
    return false;
  --batches; // one batch of the data, for its messages
  bool goesOn =
      addBatch({&filling, &order, 0}, -static_cast<double>(batch - count) / static_cast<double>(batch), false);
  return goesOn;
}

/// False where the job has been asked to end.
bool Evaluation::addBatch(const StepRows &rows, double share, bool whole) {
  ++batches;
  session.run("eval", rows);
  StepReport report;
  report.metrics = session.results();
  // Not 0: this rank has been asked to end. All see the same reports, and so end after the same batch.
  report.metrics[asked] = afterStep && control.stopRequested() ? 1 : 0;
  std::vector<std::string> reports = control.allGather("eval", report.encode());
  std::map<std::string, double> scalars = summarize(manifest, reports).metrics;
  means.add(scalars, share, whole);
  const format::Output *output = manifest.findOutput("loss");
  double loss = scalars["loss"];
  bool counts = output && means.counts(*output, scalars), isBad = counts && !std::isfinite(loss);
  if (isBad && bad++ == 0)
    firstBad = batches;
  if (ignored.empty() && (loss == 0 || !counts || (bad == 1 && isBad)))
    ignored = describeIgnored(manifest, rows, manifest.batch);
  return std::none_of(reports.begin(), reports.end(),
                      [](const std::string &text) { return StepReport::decode(text).metrics[asked] != 0; });
}

/// Which values are means of batches; "" for none.
std::string Evaluation::describeBatches() const {
  std::string names;
  for (const format::Output &output : manifest.outputs)
    if (output.mean.starts_with("batch("))
      names += (names.empty() ? "" : ", ") + output.name;
  return names.empty() || batches < 2 ? "" : names + ": mean of the batches' values, for it is no mean over samples";
}

void Evaluation::report(uint64_t rows, uint64_t given) {
  std::map<std::string, double> values = means.means();
  double loss = values["loss"];
  progress.evaluated(rows, given - rows, values, describeBatches(), afterStep);
  if (!std::isfinite(loss) && !afterStep) {
    auto failure = Failure::at("eval", Message::evalIsNan, std::isnan(loss) ? "NaN" : "infinite", bad ? bad : batches,
                               batches, bad ? firstBad : 1, manifest.batch)
                       .exitsWith(exitNan);
    throw ignored.empty() ? failure : std::move(failure).note(ignored);
  }
  if (!ignored.empty() && control.rank() == 0)
    progress.say("eval: warning: " + ignored);
}

} // namespace par::core
