// Prints progress lines and the final summary, and writes metrics and the trace. From a step's reports by rank it shows
// the slowest time, the sum of bytes sent and the first owner's metrics.
#include "Progress.h"

#include "par/comm/shared/Output.h"
#include "par/format/Printable.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace par::core {

using nlohmann::ordered_json;

namespace {

__attribute__((format(printf, 1, 2))) std::string print(const char *text, ...) {
  char line[512];
  va_list values;
  va_start(values, text);
  vsnprintf(line, sizeof line, text, values);
  va_end(values);
  return line;
}

int64_t now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

} // namespace

std::string humanBytes(uint64_t bytes) {
  double kib = static_cast<double>(bytes) / 1024;
  return kib < 1024 ? print("%.1f KiB", kib) : print("%.1f MiB", kib / 1024);
}

std::string StepReport::encode() const {
  // Hexadecimal floats: exact, and they know NaN, which JSON does not.
  std::string text = print("%a %llu %llu %d %a %d", ms, static_cast<unsigned long long>(sentBytes),
                           static_cast<unsigned long long>(peakBytes), saving ? 1 : 0, copyMs, mirroring ? 1 : 0);
  for (const auto &[name, value] : metrics)
    text += print(" %a ", value) + name;
  return text;
}

StepReport StepReport::decode(const std::string &text) {
  StepReport report;
  const char *at = text.c_str();
  char *end;
  report.ms = strtod(at, &end);
  report.sentBytes = strtoull(end, &end, 10);
  report.peakBytes = strtoull(end, &end, 10);
  report.saving = strtoull(end, &end, 10) != 0;
  report.copyMs = strtod(end, &end);
  report.mirroring = strtoull(end, &end, 10) != 0;
  while (*end == ' ') {
    double value = strtod(end, &end);
    char *name = end + 1;
    for (end = name; *end && *end != ' ';)
      ++end;
    report.metrics[std::string(name, end)] = value;
  }
  return report;
}

bool skipsNan(const format::Manifest &manifest) {
  const format::Tensor *count = manifest.findTensor("skipped_steps");
  return count && count->kind == format::TensorKind::Counter;
}

StepSummary summarize(const format::Manifest &manifest, const std::vector<std::string> &reports) {
  StepSummary summary;
  std::vector<StepReport> decoded;
  for (const std::string &text : reports)
    decoded.push_back(StepReport::decode(text));
  for (size_t rank = 0; rank < decoded.size(); ++rank) {
    summary.ms = std::max(summary.ms, decoded[rank].ms);
    summary.sentBytes += decoded[rank].sentBytes;
    summary.peakBytes = std::max(summary.peakBytes, decoded[rank].peakBytes);
    summary.saving |= decoded[rank].saving;
    summary.mirroring |= decoded[rank].mirroring;
    summary.copyMs = std::max(summary.copyMs, decoded[rank].copyMs);
    auto loss = decoded[rank].metrics.find("loss");
    if (loss != decoded[rank].metrics.end() && !std::isfinite(loss->second) && summary.badRank < 0)
      summary.badRank = static_cast<int>(rank);
  }
  for (const format::Output &output : manifest.outputs)
    if (!output.ranks.empty())
      if (auto own = decoded[output.ranks.front()].metrics.find(output.name);
          own != decoded[output.ranks.front()].metrics.end())
        summary.metrics.insert(*own);
  auto value = [&](const char *name, double &to) {
    auto found = summary.metrics.find(name);
    if (found != summary.metrics.end())
      to = found->second;
    return found != summary.metrics.end();
  };
  summary.hasLoss = value("loss", summary.loss);
  summary.loss = std::isnan(summary.loss) ? std::nan("") : summary.loss; // "nan", of whichever sign
  summary.hasGradNorm = value("grad_norm", summary.gradNorm);
  summary.hasLossScale = value("loss_scale", summary.lossScale);
  const format::Tensor *scale = manifest.findTensor("loss_scale");
  summary.scales = scale && scale->kind == format::TensorKind::Counter;
  summary.skipsNan = skipsNan(manifest);
  // An infinite norm may only be the overflowed square of a large gradient; with a loss scale the step was skipped.
  bool isBad = std::isnan(summary.gradNorm) || (summary.skipsNan && std::isinf(summary.gradNorm));
  if (summary.badRank < 0 && summary.hasGradNorm && !summary.hasLossScale && isBad)
    summary.badRank = static_cast<int>(manifest.findOutput("grad_norm")->ranks.front());
  return summary;
}

/// Separates the reports of several calls; no report holds this character.
static constexpr char nextCall = ';';

std::string joinReports(const std::vector<std::string> &calls) {
  std::string text;
  for (const std::string &call : calls)
    text += (text.empty() ? "" : std::string(1, nextCall)) + call;
  return text;
}

std::vector<StepSummary> summarizeCalls(const format::Manifest &manifest, std::vector<std::string> reports) {
  std::vector<StepSummary> summaries;
  for (uint64_t call = 0; call < manifest.calls; ++call) {
    std::vector<std::string> mine;
    for (std::string &report : reports) {
      size_t end = std::min(report.find(nextCall), report.size());
      mine.push_back(report.substr(0, end));
      report.erase(0, end + 1);
    }
    summaries.push_back(summarize(manifest, mine));
  }
  return summaries;
}

Progress::Progress(const Job &job, const comm::Control &control, Printed &printed)
    : job(job), printed(printed), speaks(control.rank() == 0), again(control.placing().attempt > 0),
      hosts(control.placing().hosts),
      bar(speaks && !job.options.quiet && !job.options.json && !job.options.fed && job.trains()) {
  const format::Manifest &manifest = job.bundle.manifest;
  every = job.options.logEvery ? job.options.logEvery : std::max<uint64_t>(1, job.steps / 10);
  firstStep = job.checkpoint ? job.checkpoint->position.step + 1 : 1;
  if (manifest.text)
    if (const format::Input *tokens = manifest.findInput(manifest.text->tokens); tokens && tokens->shape.size() == 2)
      tokensPerRow = static_cast<uint64_t>(tokens->shape[1]);
  if (speaks && !job.options.metrics.empty())
    files.emplace_back(job.options.metrics, std::vector<std::string>());
  if (speaks && !job.options.log.empty())
    files.emplace_back(job.options.log, metricsColumns(manifest));
  for (size_t i = 0; i < files.size() && !again; ++i)
    printed.files[i] = files[i].begin(job.checkpoint.has_value());
  if (printed.began == 0)
    printed.began = now();
}

/// One line; what is no UTF-8 has a sign in its place.
static std::string jsonLine(const ordered_json &values) {
  return values.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void Progress::goOn(uint64_t step, const std::string &how) {
  if (speaks && !how.empty())
    say("restart: the state after step " + std::to_string(step) + " is back" + how);
  for (size_t i = 0; i < files.size(); ++i)
    files[i].goOn(printed.files[i], step);
}

void Progress::say(const std::string &line) {
  if (job.listener)
    return job.listener(line);
  put(job.options.json ? jsonLine(ordered_json{{"said", line}}) : line);
}

void Progress::put(const std::string &line) {
  bar.clear();
  // A reader that has gone is a signal too; one that does not read was waited for until the job was asked to end.
  // Names of files and folders come from outside.
  if (!comm::writeOutput(STDOUT_FILENO, format::printable(line, "\n") + "\n") && errno != EPIPE && errno != ETIMEDOUT &&
      unprinted.empty())
    unprinted = std::strerror(errno);
}

void Progress::finish() {
  bar.clear();
  if (!unprinted.empty())
    throw Failure::at("standard output", Message::cannotWrite, unprinted);
}

void Progress::start() {
  const format::Manifest &manifest = job.bundle.manifest;
  size_t ranks = manifest.ranks.size();
  std::string plan = manifest.planHash.substr(0, 6), many = std::to_string(ranks);
  std::string line = job.name + ": " + many + (ranks == 1 ? " rank" : " ranks");
  if (ranks > 1)
    line += job.world                      ? ", sim"
            : job.options.comm == "inproc" ? ", inproc"
            : manifest.device == "cuda"    ? ", nccl"
                                           : ", shm";
  line += hosts.empty() ? "" : ", " + hosts;
  line += ", plan " + plan + (ranks > 1 ? " (" + many + " of " + many + " agree)" : "");
  if (job.dataset)
    line += ", data " + job.dataset->describe();
  if (speaks && !job.options.quiet)
    say(line);
}

void Progress::remark(const std::string &line) {
  if (speaks && !job.options.quiet && !line.empty())
    say(line);
}

std::string Progress::rate(double ms) const {
  double rows = static_cast<double>(job.bundle.manifest.batch) * 1000 / ms;
  if (tokensPerRow == 0)
    return print("%5.0f samples/s", rows);
  double tokens = rows * static_cast<double>(tokensPerRow);
  return tokens >= 10000 ? print("%3.0f k tok/s", tokens / 1000) : print("%5.0f tok/s", tokens);
}

/// Whether a scalar is one that the model returns beside its loss.
static bool isOfModel(const std::string &name) { return name != "loss" && name != "grad_norm" && name != "loss_scale"; }

/// "  accuracy 0.8125", of the scalars beside the loss.
static std::string others(const std::map<std::string, double> &scalars) {
  std::string text;
  for (const auto &[name, value] : scalars)
    if (isOfModel(name))
      text += "  " + name + print(" %.4f", value);
  return text;
}

/// The object of a step in metrics.
static ordered_json valuesOf(const StepSummary &s, uint64_t tokens) {
  ordered_json line = {{"step", s.step}, {"loss", s.loss}, {"lr", s.lr}};
  if (s.hasGradNorm)
    line["grad_norm"] = s.gradNorm;
  if (s.hasLossScale)
    line["loss_scale"] = s.lossScale;
  if (s.skipsNan)
    line["skipped"] = s.skipped() ? 1 : 0;
  for (const auto &[name, value] : s.metrics)
    if (isOfModel(name))
      line[name] = value;
  line["ms"] = s.ms;
  line["tokens"] = tokens;
  line["sent_bytes"] = s.sentBytes;
  line["peak_bytes"] = s.peakBytes;
  return line;
}

void Progress::step(const StepSummary &s, const SaidOfSaves &saves) {
  if (!speaks)
    return;
  constexpr size_t keptTimes = 1 << 14; // a run may have any number of steps
  if (times.size() < keptTimes)
    times.push_back(s.ms);
  else
    times[s.step % keptTimes] = s.ms;
  printed.peak = std::max(printed.peak, s.peakBytes);
  if (!saves.saved.empty())
    lastSave = saves.saved;
  const ordered_json values = valuesOf(s, job.bundle.manifest.batch * std::max<uint64_t>(1, tokensPerRow));
  for (MetricsFile &file : files)
    file.write(values, s.step > printed.step);
  if (s.step <= printed.step)
    return;
  if (isShown(s, saves))
    job.options.json ? put(jsonLine(values)) : say(lineOf(s, saves));
  if (bar.isShown()) {
    if (s.step == firstStep)
      sayStart(s.ms);
    bar.draw(s.step, job.steps, format::printable(print("  loss %.4f", s.loss) + others(s.metrics)));
  }
  printed.step = s.step;
}

/// On a terminal, where one waits: how long it took until the second step.
void Progress::sayStart(double firstMs) {
  double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - job.began).count();
  say(print("start   %.1f s to load, %.1f s the first step", std::max(0.0, all - firstMs / 1000), firstMs / 1000));
}

/// A line every so many steps, and more where there is something to say.
bool Progress::isShown(const StepSummary &s, const SaidOfSaves &saves) const {
  // The bar says the rest, unless lines were asked for or go to a file.
  bool sparse = bar.isShown() && job.options.logEvery == 0 && isatty(STDOUT_FILENO);
  bool due = (s.step % every == 0 && !sparse) || s.step == firstStep || s.step == job.steps;
  return !job.options.quiet && (due || s.skipped() || !saves.saved.empty() || !saves.saving.empty());
}

static std::string textOf(const SaidOfSaves &saves) {
  return (saves.saved.empty() ? "" : "   saved " + saves.saved) +
         (saves.saving.empty() ? "" : "   saving " + saves.saving);
}

std::string Progress::lineOf(const StepSummary &s, const SaidOfSaves &saves) const {
  std::string line = print("step %4llu/%llu  loss %.4f", static_cast<unsigned long long>(s.step),
                           static_cast<unsigned long long>(job.steps), s.loss);
  line += others(s.metrics) + print("  lr %.1e", s.lr);
  if (s.hasGradNorm && !s.skipped())
    line += print("  |g| %.2f", s.gradNorm);
  if (s.skipped())
    line += !s.isNan()               ? "  skipped: gradients overflow"
            : !std::isfinite(s.loss) ? "  skipped: the loss is not finite"
                                     : "  skipped: a gradient is not finite";
  if (s.hasLossScale)
    line += print(s.skipped() ? ", loss scale %g" : "  loss scale %g", s.lossScale);
  return line + print("  %4.0f ms  ", s.ms) + rate(s.ms) + textOf(saves);
}

void Progress::evaluated(uint64_t rows, uint64_t leftOut, const std::map<std::string, double> &means,
                         const std::string &note, uint64_t afterStep) {
  if (!speaks)
    return;
  bool isNew = printed.evaluated <= afterStep;
  double loss = means.at("loss");
  ordered_json values = {{"step", afterStep}, {"eval_loss", loss}};
  for (const auto &[name, value] : means)
    values["eval_" + name] = value;
  values["samples"] = rows;
  values["left_out"] = leftOut;
  for (MetricsFile &file : files)
    file.write(values, isNew);
  if (!isNew)
    return;
  printed.evaluated = afterStep + 1;
  if (job.options.json)
    return put(jsonLine(values));
  loss = std::isnan(loss) ? std::nan("") : loss; // "nan", of whichever sign
  std::string what = tokensPerRow ? "windows" : "samples";
  std::string line = print("eval    %llu %s  loss %.4f", static_cast<unsigned long long>(rows), what.c_str(), loss);
  if (tokensPerRow)
    line += print("  perplexity %.2f", std::exp(loss));
  line += others(means);
  if (afterStep)
    line += "  after step " + std::to_string(afterStep);
  if (leftOut)
    line += core::format("   {} of {} {} left out: they fill no batch of {}", leftOut, rows + leftOut, what,
                         job.bundle.manifest.batch);
  if (!note.empty())
    line += "   " + note;
  say(line);
}

void Progress::interrupted(const std::string &saved) {
  lastSave = saved;
  if (speaks && !job.options.quiet)
    say("interrupted; saved " + saved);
}

void Progress::notExported() {
  if (speaks && !job.options.quiet)
    say("interrupted; " + job.options.exportTo + " is not written: it is for the weights of the last step");
}

void Progress::predicted(uint64_t rows, double seconds) {
  if (!speaks || job.options.quiet)
    return;
  std::string line = print("predict %llu %s in %.1f s", static_cast<unsigned long long>(rows),
                           tokensPerRow ? "windows" : "samples", seconds);
  say(line + (job.options.output.empty() ? "   (--output F.safetensors keeps the results)"
                                         : "   wrote " + job.options.output));
}

/// " (predicted 118, +0.3 %)". The prediction counts only the work, not starting a step and waking ranks. A percentage
/// is left out for steps that are hardly longer than these, or many times the prediction.
static std::string besides(double predicted, double median) {
  if (predicted <= 0)
    return "";
  if (predicted < 0.1)
    return print(" (predicted %.0f µs)", std::max(1.0, predicted * 1000));
  if (predicted < 10)
    return print(" (predicted %.1f ms)", predicted);
  if (median > 10 * predicted)
    return print(" (predicted %.0f)", predicted);
  return print(" (predicted %.0f, %+.1f %%)", predicted, (median / predicted - 1) * 100);
}

void Progress::done(uint64_t bound, uint64_t scratch, uint64_t steps) {
  if (!speaks || job.options.quiet || printed.done)
    return;
  printed.done = true;
  if (steps == 0) {
    if (firstStep > job.steps)
      say(print("done    nothing to do: %s is at step %llu of %llu", job.checkpoint->store.place.c_str(),
                static_cast<unsigned long long>(firstStep - 1), static_cast<unsigned long long>(job.steps)));
    return;
  }
  double seconds = static_cast<double>(now() - printed.began) / 1e9;
  std::string line = print("done    %llu steps in %.1f s", static_cast<unsigned long long>(steps), seconds);
  if (!times.empty()) { // of those since the last start
    std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
    double median = times[times.size() / 2];
    line += print("; median %.1f ms", median);
    line += besides(static_cast<double>(job.bundle.manifest.predictedNs) / 1e6, median);
  }
  line += "; peak " + humanBytes(printed.peak) + " (bound " + humanBytes(bound) + ")";
  if (scratch)
    line += ", and " + humanBytes(scratch) + " of libraries' scratch";
  if (!lastSave.empty())
    line += "; next: par-run " + job.name + " --eval --weights " + lastSave +
            (job.options.text.empty() ? " --data FILE" : " --text FILE");
  say(line);
}

} // namespace par::core
