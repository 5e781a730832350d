#include "JobRemarks.h"

#include "files/ContentSample.h"
#include "par/messages/Failure.h"

#include <algorithm>

namespace par::core {
namespace {

/// Identifies the data: samples of its files, in their order, and what makes rows of them.
std::string sampleOfData(const RunOptions &options) {
  std::string samples;
  for (const std::string &spec : options.data)
    samples += (samples.empty() ? "" : " ") + sampleOf(readDataSpec(spec).path);
  for (const std::string &spec : options.inputs)
    samples += (samples.empty() ? "" : " ") + sampleOf(readInputSpec(spec).path);
  std::string stride = options.stride ? format(" stride {}", *options.stride) : "";
  if (!options.tokens.empty()) {
    TokenSpec tokens = readTokenSpec(options.tokens);
    return sampleOf(tokens.path) + (tokens.type.empty() ? "" : " " + tokens.type) + stride;
  }
  return options.text.empty() ? samples : sampleOf(options.text) + stride;
}

/// A job goes on with the row after the last one of its save: in other data that is another row.
void compareData(Job &job) {
  job.dataSample = sampleOfData(job.options);
  std::string saved = job.checkpoint ? job.checkpoint->position.data : "";
  if (job.dataset && !saved.empty() && saved != job.dataSample)
    job.tell(job.checkpoint->store.place + format(": warning: was trained on other data; training goes on after the "
                                                  "{} rows that it took, in an order of these {}",
                                                  job.checkpoint->position.rows, job.rowsOf(job.dataset.get())));
}

/// The last batch is filled up with the first samples: a result of a whole batch includes them.
void remarkOnLastBatch(Job &job) {
  const format::Manifest &manifest = job.bundle.manifest;
  uint64_t rows = job.dataset && job.isSampled() ? job.rowsOf(job.dataset.get()) : 0, left = rows % manifest.batch;
  auto whole = std::find_if(manifest.outputs.begin(), manifest.outputs.end(),
                            [](const format::Output &output) { return !output.microbatched; });
  if (job.predicts() && left != 0 && whole != manifest.outputs.end())
    job.tell(job.name + format(": warning: \"{}\" is of a batch, and the last one is {} of the {} samples with {} of "
                               "the first ones, which "
                               "fill it up",
                               format::printable(whole->name), left, rows, manifest.batch - left));
}

std::string decayText(const format::LrSchedule &plan) {
  if (plan.decay == format::LrSchedule::OneCycle)
    return format("cycle of {} steps", plan.steps);
  if (plan.decay == format::LrSchedule::Step)
    return format("fall by {} ", plan.gamma) +
           (plan.stepSize ? format("every {} steps", plan.stepSize) : format("at {} steps", plan.milestones.size()));
  return format("{} to {} at step {}", format::toString(plan.decay), plan.floor, plan.steps);
}

/// A rate that is set is that of every step.
void remarkOnRate(Job &job) {
  const auto &plan = job.bundle.manifest.lr;
  if (!job.trains() || !job.options.set.count("lr") || !plan ||
      (plan->warmup == 0 && plan->decay == format::LrSchedule::Constant))
    return;
  std::string lost = plan->warmup ? format("{} steps of warm-up", plan->warmup) : "";
  if (plan->decay != format::LrSchedule::Constant)
    lost += (lost.empty() ? "" : " and ") + decayText(*plan);
  job.tell(job.name + ": warning: --set lr is the rate of every step, without the plan's " + lost);
}

/// An array under another name than its input's is not fed.
void remarkOnArrays(Job &job, const Dataset *dataset, const char *flag) {
  if (std::string unused = dataset ? dataset->unused() : ""; !unused.empty())
    job.tell(job.name + format(": note: {} holds arrays that no input takes: {}; F:input=array renames", flag,
                               format::printable(unused)));
  if (std::string rounded = dataset ? dataset->rounded() : ""; !rounded.empty())
    job.tell(job.name + format(": note: {} is rounded: {}", flag, rounded));
}

} // namespace

void remarkOnJob(Job &job) {
  remarkOnArrays(job, job.dataset.get(), "--data");
  remarkOnArrays(job, job.evalDataset.get(), "--eval-data");
  if (job.trains())
    compareData(job);
  remarkOnRate(job);
  remarkOnLastBatch(job);
}

} // namespace par::core
