#include "Served.h"

#include "api/Facts.h"
#include "par/data/Data.h"
#include "par/files/Rectangles.h"
#include "par/files/Safetensors.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cstring>

namespace par::serve {

using core::Failure;
using core::Message;

/// The entry that answers requests. Throws Failure where there is none.
static Takes takesOf(const format::Bundle &bundle, const std::string &place) {
  const format::Manifest &manifest = bundle.manifest;
  std::map<std::string, api::EntryFacts> entries = api::entriesOf(bundle);
  auto entry = entries.find("predict");
  if (entry == entries.end() || entries.count("train"))
    throw Failure::at(place, Message::flagNeeds, "--serve", "a bundle that predicts, whose plan has no train")
        .exitsWith(core::exitUsage);
  Takes takes;
  takes.manifest = &manifest;
  takes.inputs = entry->second.inputs;
  takes.rows = api::rowsOfCall(manifest);
  for (const format::Output &output : manifest.outputs) // scalars, and what predict fetches
    if (output.metric || entry->second.results.count(output.name)) {
      takes.outputs.push_back(&output);
      takes.gathers &= !output.metric && output.microbatched && output.shape[0] % static_cast<int64_t>(takes.rows) == 0;
    }
  takes.gathers &= std::ranges::all_of(takes.inputs, [&](size_t index) { return manifest.inputs[index].microbatched; });
  return takes;
}

Served::Served(const std::string &bundle, api::Caller &caller)
    : caller(caller), manifest(caller.bundle().manifest), facts(takesOf(caller.bundle(), bundle)),
      batches(facts.inputs.size()) {}

void Served::feed(std::span<const Request *const> requests) {
  for (size_t i = 0; i < facts.inputs.size(); ++i) {
    const format::Input &input = manifest.inputs[facts.inputs[i]];
    std::vector<std::byte> &batch = batches[i];
    batch.clear();
    for (const Request *request : requests)
      batch.insert(batch.end(), request->arrays[i].begin(), request->arrays[i].end());
    size_t all = static_cast<size_t>(core::elementCount(input.shape)) * format::sizeOf(input.type);
    size_t row = all / (input.microbatched ? facts.rows : 1);
    for (size_t have = batch.size(); have < all; have += row) { // the last row again fills the batch
      batch.resize(have + row);
      std::memcpy(&batch[have], &batch[have - row], row);
    }
    caller.feeding().feed(input.name, {input.type, input.shape, batch.data()});
  }
}

ResultArray Served::part(const format::Output &output, uint64_t first, uint64_t rows) const {
  if (output.metric) {
    ResultArray scalar{output.name, format::DType::F32, {}, std::vector<std::byte>(sizeof(float))};
    auto value = static_cast<float>(caller.lastAnswer().scalars.at(0).at(output.name));
    std::memcpy(scalar.bytes.data(), &value, sizeof value);
    return scalar;
  }
  api::ResultView whole = caller.result(output.name);
  ResultArray result{output.name, whole.type, whole.shape, {}};
  size_t width = format::sizeOf(whole.type);
  if (!facts.gathers) {
    result.bytes.assign(whole.data, whole.data + static_cast<size_t>(core::elementCount(whole.shape)) * width);
    return result;
  }
  auto dim = static_cast<size_t>(output.batchDim);
  auto ofRow = static_cast<size_t>(whole.shape[dim]) / facts.rows;
  size_t inner = width * static_cast<size_t>(core::elementCount(std::span(whole.shape).subspan(dim + 1)));
  auto outer = static_cast<size_t>(core::elementCount(std::span(whole.shape).first(dim)));
  size_t stride = inner * ofRow * facts.rows, count = inner * ofRow * rows;
  result.shape[dim] = static_cast<int64_t>(ofRow * rows);
  result.bytes.reserve(outer * count);
  for (size_t i = 0; i < outer; ++i) {
    const std::byte *from = whole.data + i * stride + inner * ofRow * first;
    result.bytes.insert(result.bytes.end(), from, from + count);
  }
  return result;
}

std::vector<std::vector<ResultArray>> Served::predict(std::span<const Request *const> requests) {
  feed(requests);
  caller.run("predict");
  std::vector<std::vector<ResultArray>> answers;
  uint64_t first = 0;
  for (const Request *request : requests) {
    std::vector<ResultArray> &answer = answers.emplace_back();
    for (const format::Output *output : facts.outputs)
      if (request->wanted.empty() || request->wanted.count(output->name))
        answer.push_back(part(*output, first, request->rows));
    first += request->rows;
  }
  return answers;
}

} // namespace par::serve
