// A session's work on one rank.
#include "api/RankWork.h"

#include "app/Results.h"
#include "app/StartCache.h"
#include "par/app/Devices.h"
#include "par/files/Rectangles.h"
#include "par/save/Export.h"

namespace par::api {

using core::Failure;
using core::Message;

RankWork::RankWork(core::Job &job, comm::Control &control, const Exchange &exchange)
    : job(job), control(control), manifest(job.bundle.manifest), exchange(exchange),
      session(job.bundle, job.name, control, core::deviceNamed(job.device()), core::sessionOptions(job)),
      progress(job, control, printed), trace(job, control.rank() == 0), saves(job, session, progress),
      steps(job, session, progress, trace, saves, position),
      batches{ArrivingBatch(manifest, exchange), ArrivingBatch(manifest, exchange)},
      order(rowsOfCall(manifest), false, 0), folders(session),
      parts(exchange, control, job.alone && control.world() > 1) {
  job.listener = [this](const std::string &line) { events.push_back(line); };
  session.onResult([this](const format::Output &output, int64_t microbatch, std::span<const std::byte> from) {
    take(output, microbatch, from);
  });
  giveValues();
  if (control.rank() == 0)
    for (const std::string &line : {session.onDevice().remark(), job.remark})
      if (!line.empty())
        progress.say(line);
}

void RankWork::giveValues() {
  if (job.checkpoint) {
    session.restore(job.checkpoint->store);
    position = job.checkpoint->position;
    saves.goOnFrom(job.checkpoint->store.place);
  } else if (job.start && job.start->isFilled()) {
    job.start->give(session, job.seed);
    position = {0, 0, job.seed, false};
  } else {
    session.initialize(job.weights ? &*job.weights : nullptr, job.seed);
    position = {0, 0, job.seed, false}; // rows come in the caller's order
  }
  position.data.clear(); // rows come from the caller
  session.setHyper("seed", static_cast<double>(job.seed));
  for (const auto &[name, value] : job.options.set)
    session.setHyper(name, value);
}

Answer RankWork::answer(const std::string &text) {
  Answer answer;
  answer.text = text;
  answer.position = position;
  answer.rate = steps.rateOf(position.step - position.skipped);
  answer.events.swap(events);
  return answer;
}

void RankWork::prepare(const Command &command) {
  switch (command.verb) {
  case Verb::Load: {
    core::RunOptions options = job.options;
    options.init = false;
    options.weights.clear();
    for (const std::string &path : command.paths)
      options.weights.push_back(core::findWeights(path));
    std::string remark;
    weights = core::openWeights(options, manifest, job.name, remark);
    if (control.rank() == 0 && !remark.empty())
      progress.say(remark);
    return;
  }
  case Verb::Resume:
    opened = core::openSave(command.name);
    core::beginAnew(manifest, opened->store);
    core::checkState(manifest, opened->store);
    return;
  case Verb::Save:
  case Verb::OpenFolder:
    if (command.name.empty() && job.options.save.empty())
      throw Failure::at("", Message::noSaveFolder).exitsWith(core::exitUsage);
    if (!command.name.empty() && command.name != job.options.save)
      folders.open(command.name, command.keep, saves.last());
    return;
  case Verb::Export:
    job.options.exportTo = command.name;
    core::checkExport(job, control.rank() == 0);
    return;
  default:
    return;
  }
}

Answer RankWork::perform(const Command &command) {
  if (job.start && changesState(command.verb))
    job.start->stateChanged();
  switch (command.verb) {
  case Verb::Train:
    return train(command);
  case Verb::Infer:
    return infer(command);
  case Verb::Set:
    set(command.name, command.value);
    break;
  case Verb::Read:
    read(command);
    break;
  case Verb::Write:
    write(command);
    break;
  case Verb::Load:
    session.assign(*weights);
    weights.reset();
    break;
  case Verb::Resume:
    goOnFrom(std::move(*opened));
    opened.reset();
    break;
  case Verb::Save:
    return answer(save(command));
  case Verb::OpenFolder: // prepared
    break;
  case Verb::Export:
    exportTo(command.name);
    break;
  case Verb::End:
    saves.finish();
    break;
  }
  return answer();
}

/// The rows of the command's run and of the next one. The session knows rows again by their StepRows.
std::array<core::StepRows, 2> RankWork::rowsOf(const Command &command) {
  const Ahead &ahead = command.ahead;
  ArrivingBatch &now = batches[ahead.place], &next = batches[1 - ahead.place];
  now.expect(manifest, command.fed, 0);
  next.expect(manifest, ahead.fed, ahead.number);
  return {core::StepRows{&now, &order, 0}, ahead.fed.empty() ? core::StepRows() : core::StepRows{&next, &order, 0}};
}

Answer RankWork::train(const Command &command) {
  auto [now, next] = rowsOf(command);
  std::vector<core::StepSummary> summaries = steps.make(now, next);
  Answer done = answer();
  for (core::StepSummary &summary : summaries) {
    summary.metrics["lr"] = summary.lr;
    done.scalars.push_back(std::move(summary.metrics));
  }
  return done;
}

/// An entry without an update, on one batch, whose scalars are exchanged as those of a step are.
Answer RankWork::infer(const Command &command) {
  auto [now, next] = rowsOf(command);
  session.run(command.name, now, next);
  parts.share();
  if (job.start)
    job.start->keep(session, job, [this](const std::string &line) { progress.say(line); });
  core::StepReport report;
  report.metrics = session.results();
  core::StepSummary summary = core::summarize(manifest, control.allGather(command.name, report.encode()));
  Answer done = answer();
  done.scalars = {std::move(summary.metrics)};
  return done;
}

/// Each rank writes what it is the first to hold.
void RankWork::take(const format::Output &output, int64_t microbatch, std::span<const std::byte> from) {
  if (output.metric)
    return;
  auto index = static_cast<size_t>(&output - manifest.outputs.data());
  uint64_t call = static_cast<uint64_t>(microbatch) / manifest.microbatches;
  if (call > 0) // of several optimizer steps the first one's
    return;
  std::vector<int64_t> shape = core::resultShape(output, manifest, manifest.batch);
  core::forEachResultPart(
      manifest, output, {shape, session.rank(), 0, microbatch}, from,
      [&](uint64_t byte, std::span<const std::byte> part) { parts.put(exchange.output(index) + byte, part); });
}

void RankWork::set(const std::string &name, double value) {
  job.options.set[name] = value; // where the rate of a step is looked for
  session.setHyper(name, value);
}

void RankWork::read(const Command &command) {
  const format::Tensor &tensor = *manifest.findTensor(command.name);
  const format::Rectangle *part = core::ownedPart(tensor, session.rank());
  if (!part)
    return parts.share();
  std::vector<int64_t> origin(part->start.size(), 0);
  core::HostBytes local = session.tensor(tensor.name);
  uint64_t bytes = format::sizeOf(tensor.type);
  core::forEachRun(tensor.layout.shape, part->start, tensor.layout.local, origin, part->size,
                   [&](int64_t to, int64_t from, int64_t n) {
                     parts.put(command.to + static_cast<uint64_t>(to) * bytes,
                               local.subspan(static_cast<uint64_t>(from) * bytes, static_cast<uint64_t>(n) * bytes));
                   });
  parts.share();
}

void RankWork::write(const Command &command) {
  const format::Tensor &tensor = *manifest.findTensor(command.name);
  core::StoredArray array;
  array.type = command.tensor.type;
  array.shape = tensor.layout.shape;
  array.pieces.push_back({std::vector<int64_t>(array.shape.size(), 0), array.shape, command.tensor.data});
  core::WeightStore store;
  store.place = "the caller's array";
  store.arrays[tensor.name] = std::move(array);
  session.assign(store);
}

void RankWork::goOnFrom(core::Checkpoint &&checkpoint) {
  session.restore(checkpoint.store);
  position = checkpoint.position;
  position.data.clear();
  session.setHyper("seed", static_cast<double>(position.seed));
  saves.goOnFrom(checkpoint.store.place);
}

std::string RankWork::save(const Command &command) {
  std::string path = folders.has(command.name) ? folders.save(command.name, position) : saves.save(position);
  saves.goOnFrom(path);
  return path;
}

void RankWork::exportTo(const std::string &path) {
  if (path.ends_with(".onnx"))
    core::exportModel(session, job.options.bundle, path, false);
  else
    core::exportWeights(session, path, job.options.maxShard, false);
}

} // namespace par::api
