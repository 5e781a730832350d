#include "api/Facts.h"

#include "api/Exchange.h"
#include "app/Results.h"
#include "par/weights/Weights.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace par::api {

using nlohmann::ordered_json;

std::map<std::string, EntryFacts> entriesOf(const format::Bundle &bundle) {
  const format::Manifest &manifest = bundle.manifest;
  std::map<std::string, EntryFacts> entries;
  for (const format::Program &program : bundle.programs)
    for (const format::Entry &entry : program.entries) {
      std::set<std::string> fed;
      EntryFacts &facts = entries[entry.name];
      for (const format::Run &run : entry.runs)
        for (const format::Instruction &it : program.blocks[run.block].instructions)
          if (it.op == format::Op::Feed)
            fed.insert(it.name);
          else if (const format::Output *output = it.op == format::Op::Fetch ? manifest.findOutput(it.name) : nullptr;
                   output && !output->metric)
            facts.results.insert(it.name);
      for (size_t i = 0; i < manifest.inputs.size(); ++i)
        if (fed.count(manifest.inputs[i].name) && std::ranges::find(facts.inputs, i) == facts.inputs.end())
          facts.inputs.push_back(i);
    }
  return entries;
}

static ordered_json describe(const std::string &name, format::DType type, const std::vector<int64_t> &shape) {
  return {{"name", name}, {"type", format::toString(type)}, {"shape", shape}};
}

static ordered_json describeInputsOf(const format::Manifest &manifest) {
  ordered_json inputs = ordered_json::array();
  for (const format::Input &input : manifest.inputs) {
    std::vector<int64_t> shape = input.shape;
    if (input.microbatched)
      shape[0] = static_cast<int64_t>(rowsOfCall(manifest));
    inputs.push_back(describe(input.name, input.type, shape));
    inputs.back()["batched"] = input.microbatched;
  }
  return inputs;
}

static ordered_json describeOutputs(const format::Manifest &manifest,
                                    const std::map<std::string, EntryFacts> &entries) {
  ordered_json outputs = ordered_json::array();
  for (const format::Output &output : manifest.outputs) {
    outputs.push_back(describe(output.name, output.type, core::resultShape(output, manifest, manifest.batch)));
    outputs.back()["scalar"] = output.metric;
    outputs.back()["mean"] = output.mean;
    outputs.back()["batch_dim"] = output.microbatched ? ordered_json(output.batchDim) : ordered_json();
    ordered_json fetchedBy = ordered_json::array();
    for (const auto &[name, facts] : entries)
      if (facts.results.count(output.name))
        fetchedBy.push_back(name);
    outputs.back()["entries"] = fetchedBy;
  }
  return outputs;
}

std::string describeBundle(const format::Bundle &bundle) {
  const format::Manifest &manifest = bundle.manifest;
  std::map<std::string, EntryFacts> entries = entriesOf(bundle);
  ordered_json facts = {{"ranks", manifest.ranks.size()}, {"batch", rowsOfCall(manifest)}, {"calls", manifest.calls}};
  for (const char *key : {"entries", "tensors", "hypers"})
    facts[key] = ordered_json::array();
  for (const auto &[name, entry] : entries)
    facts["entries"].push_back(name);
  facts["inputs"] = describeInputsOf(manifest);
  facts["outputs"] = describeOutputs(manifest, entries);
  for (const format::Tensor &tensor : manifest.tensors)
    if (core::isSaved(tensor)) {
      facts["tensors"].push_back(describe(tensor.name, tensor.type, tensor.stored));
      facts["tensors"].back()["kind"] = format::toString(tensor.kind);
    }
  for (const format::Hyper &hyper : manifest.hypers)
    facts["hypers"].push_back(hyper.name);
  return facts.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace par::api
