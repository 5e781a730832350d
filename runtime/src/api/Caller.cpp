// Checks the calls of a session, has its ranks do them, and tells the facts of its bundle.
#include "api/Caller.h"

#include "app/Results.h"
#include "par/files/Convert.h"
#include "par/format/NearestWord.h"
#include "par/weights/Weights.h"

#include <algorithm>

namespace par::api {

using core::Failure;
using core::Message;

Caller::Caller(std::unique_ptr<Ranks> given)
    : ranks(std::move(given)), manifest(ranks->bundle().manifest), fed(manifest), entries(entriesOf(ranks->bundle())) {
  for (const format::Hyper &hyper : manifest.hypers)
    hypers[hyper.name] = hyper.value;
  take(ranks->start());
  last.scalars.clear();
}

void Caller::take(Answer answer) {
  events.insert(events.end(), answer.events.begin(), answer.events.end());
  if (!answer.error.empty()) {
    last.position = answer.position;
    throw Failure::verbatim(answer.error, answer.code);
  }
  if (answer.scalars.empty())
    answer.scalars.swap(last.scalars);
  last = std::move(answer);
}

const Answer &Caller::perform(const Command &command) {
  take(ranks->perform(command));
  return last;
}

const EntryFacts &Caller::entryOf(const std::string &name) const {
  if (auto found = entries.find(name); found != entries.end())
    return found->second;
  core::NameList names;
  for (const auto &[known, facts] : entries)
    names.add("\"" + known + "\"");
  throw Failure::at("", Message::noEntry, name, names.str()).exitsWith(core::exitUsage);
}

void Caller::run(const std::string &entry) {
  lastEntry.clear();
  last.scalars.clear();
  Command command;
  command.verb = entry == "train" ? Verb::Train : Verb::Infer;
  command.name = entry;
  try {
    fed.moveTo(command, entryOf(entry).inputs);
    perform(command);
  } catch (...) {
    fed.forget();
    throw;
  }
  fed.goOn(command);
  lastEntry = entry;
}

ResultView Caller::result(const std::string &name) const {
  if (lastEntry.empty())
    throw Failure::at("", Message::noCallYet, "\"" + name + "\"").exitsWith(core::exitUsage);
  const std::set<std::string> &known = entryOf(lastEntry).results;
  if (!known.count(name)) {
    core::NameList names;
    for (const std::string &one : known)
      names.add("\"" + one + "\"");
    throw Failure::at("", Message::noResult, lastEntry, name, names.empty() ? "none" : names.str())
        .exitsWith(core::exitUsage);
  }
  const format::Output &output = *manifest.findOutput(name);
  auto index = static_cast<size_t>(&output - manifest.outputs.data());
  return {output.type, core::resultShape(output, manifest, manifest.batch), ranks->exchange().output(index)};
}

void Caller::set(const std::string &name, double value) {
  if (name == "seed")
    throw Failure::at("seed", Message::seedIsFixed, static_cast<uint64_t>(std::max(0.0, value)))
        .exitsWith(core::exitUsage);
  core::checkHypers(manifest, name, {{name, value}});
  Command command;
  command.verb = Verb::Set;
  command.name = name;
  command.value = value;
  perform(command);
  hypers[name] = value;
}

double Caller::get(const std::string &name) const {
  auto found = hypers.find(name);
  if (found == hypers.end())
    core::checkHypers(manifest, name, {{name, 1}});
  return name == "lr" ? last.rate : found->second;
}

const format::Tensor &Caller::tensorOf(const std::string &name) const {
  const format::Tensor *tensor = manifest.findTensor(name);
  if (tensor && core::isSaved(*tensor))
    return *tensor;
  std::vector<std::string_view> names;
  for (const format::Tensor &one : manifest.tensors)
    if (core::isSaved(one))
      names.push_back(one.name);
  throw Failure::at("", Message::noTensor, name, format::didYouMean(name, names)).exitsWith(core::exitUsage);
}

void Caller::read(const std::string &name, std::span<std::byte> to) {
  const format::Tensor &tensor = tensorOf(name);
  uint64_t bytes = static_cast<uint64_t>(core::elementCount(tensor.stored)) * format::sizeOf(tensor.type);
  if (to.size() != bytes || (bytes && !to.data()))
    throw Failure::at(name, Message::tensorRoom, name, bytes, to.size()).exitsWith(core::exitUsage);
  Command command;
  command.verb = Verb::Read;
  command.name = name;
  command.to = to.data();
  command.bytes = to.size();
  perform(command);
}

void Caller::write(const std::string &name, core::FedArray array) {
  const format::Tensor &tensor = tensorOf(name);
  bool fits = array.type == tensor.type || core::isConvertible(array.type, tensor.type);
  if (!fits || array.shape != tensor.stored)
    throw Failure::at(name, Message::tensorShape, name, core::describeArray(array.type, array.shape),
                      core::describeArray(tensor.type, tensor.stored));
  if (!array.data && core::elementCount(array.shape) > 0)
    throw Failure::at(name, Message::fedNull, name).exitsWith(core::exitUsage);
  Command command;
  command.verb = Verb::Write;
  command.name = name;
  command.tensor = std::move(array);
  perform(command);
}

void Caller::load(std::vector<std::string> paths) {
  Command command;
  command.verb = Verb::Load;
  command.paths = std::move(paths);
  perform(command);
}

void Caller::resume(const std::string &path) {
  Command command;
  command.verb = Verb::Resume;
  command.name = path;
  perform(command);
}

std::string Caller::save(const std::string &folder, uint64_t keep, bool onlyOpens) {
  Command command;
  command.verb = onlyOpens ? Verb::OpenFolder : Verb::Save;
  command.name = folder;
  command.keep = keep;
  return perform(command).text;
}

void Caller::exportTo(const std::string &path) {
  if (!path.ends_with(".safetensors") && !path.ends_with(".onnx"))
    throw Failure::at("", Message::exportKind, path).exitsWith(core::exitUsage);
  Command command;
  command.verb = Verb::Export;
  command.name = path;
  perform(command);
}

std::optional<std::string> Caller::nextEvent() {
  if (events.empty())
    return std::nullopt;
  std::string line = std::move(events.front());
  events.pop_front();
  return line;
}

} // namespace par::api
