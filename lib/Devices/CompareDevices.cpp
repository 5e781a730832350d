// Annotations of a file against those of the step that was compiled from them.
#include "DeviceReader.h"

#include "par/Devices/Devices.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using namespace llvm;

namespace par {

namespace {

/// A sharding without the ways to write it: blocks, and the shard of every device, by axis.
struct PlainSharding {
  std::map<int64_t, std::pair<int64_t, std::map<int64_t, int64_t>>> axes;
  std::set<int64_t> devices;
  bool operator==(const PlainSharding &) const = default;
};

} // namespace

/// `rank`: of the tensor, -1 if it is not known.
static PlainSharding plain(const onnx::TensorSharding &said, int64_t rank) {
  PlainSharding result;
  std::vector<int64_t> sizes;
  for (const onnx::ShardedAxis &axis : said.axes) {
    int64_t shards = 1;
    for (const onnx::SimpleSharding &part : axis.parts)
      shards *= part.shards.value_or(1);
    sizes.push_back(shards);
  }
  std::vector<std::vector<int64_t>> holders = said.holders();
  for (const std::vector<int64_t> &shard : holders)
    result.devices.insert(shard.begin(), shard.end());
  int64_t inner = 1;
  for (auto [axis, shards] : reverse(zip(said.axes, sizes))) {
    int64_t at = axis.axis.value_or(0), blocks = 1;
    if (shards == 1)
      continue;
    for (const onnx::SimpleSharding &part : axis.parts) {
      if (part.shards.value_or(1) > 1)
        break;
      blocks *= part.size.value_or(1);
    }
    auto &[itsBlocks, shardOf] = result.axes[at < 0 && rank >= 0 ? at + rank : at];
    itsBlocks = blocks;
    for (auto [shard, devices] : enumerate(holders))
      for (int64_t device : devices)
        shardOf[device] = int64_t(shard) / inner % shards;
    inner *= shards;
  }
  return result;
}

static std::string describe(const onnx::TensorSharding &said) {
  std::vector<std::string> parts;
  for (const onnx::ShardedAxis &axis : said.axes) {
    int64_t shards = 1;
    for (const onnx::SimpleSharding &part : axis.parts)
      shards *= part.shards.value_or(1);
    if (shards > 1)
      parts.push_back("axis " + std::to_string(axis.axis.value_or(0)) + " in " + std::to_string(shards) + " shards");
  }
  return parts.empty() ? "replicated" : llvm::join(parts, " and ");
}

/// Both descriptions, with devices if they are alike without.
static std::pair<std::string, std::string> describe(const onnx::TensorSharding &mine, const onnx::TensorSharding &its) {
  std::pair<std::string, std::string> texts{describe(mine), describe(its)};
  if (texts.first != texts.second)
    return texts;
  auto devices = [](const onnx::TensorSharding &said) {
    std::vector<std::string> shards;
    for (const std::vector<int64_t> &holders : said.holders())
      shards.push_back(llvm::join(map_range(holders, [](int64_t device) { return std::to_string(device); }), "+"));
    shards.resize(std::min<size_t>(shards.size(), 8));
    return " on devices " + llvm::join(shards, ", ");
  };
  return {texts.first + devices(mine), texts.second + devices(its)};
}

static const onnx::NodeDevices *annotationOf(const onnx::Node &node, StringRef configuration) {
  auto found = find_if(node.devices, [&](const auto &each) { return each.configuration == configuration; });
  return found == node.devices.end() ? nullptr : &*found;
}

std::vector<std::string> findOtherDevices(const onnx::Model &model, StringRef configuration, const StepDevices &step) {
  std::vector<std::string> findings;
  std::set<int64_t> stages;
  for (const onnx::Node &node : model.nodes)
    if (const onnx::NodeDevices *said = annotationOf(node, configuration); said && said->stage)
      stages.insert(*said->stage);
  for (size_t index = 0; index < model.nodes.size(); ++index) {
    const onnx::NodeDevices *said = annotationOf(model.nodes[index], configuration);
    if (!said)
      continue;
    const onnx::NodeDevices found = step.nodes[index].value_or(onnx::NodeDevices());
    std::string place = nameOfNode(model, index) + ": ";
    int64_t stage = said->stage ? std::distance(stages.begin(), stages.find(*said->stage)) : 0;
    if (said->stage && step.nodes[index] && stage != found.stage.value_or(0))
      findings.push_back(place + "pipeline_stage is " + std::to_string(*said->stage) +
                         ", and the plan has it on stage " + std::to_string(found.stage.value_or(0)) +
                         ": a plan puts a node on the stage of the last cut that it depends on; say pipeline.cuts in a "
                         "plan, and leave the stages out of the model");
    if (said->stage && step.parted.count(index))
      findings.push_back(place + "pipeline_stage is " + std::to_string(*said->stage) +
                         ", and the plan has its ops on several stages; leave its stage out of the model");
    auto reshaped = step.reshaped.find(index);
    for (const onnx::TensorSharding &mine : said->shardings) {
      if (reshaped != step.reshaped.end() && is_contained(model.nodes[index].outputs, mine.tensor) &&
          describe(mine) != "replicated")
        findings.push_back(
            place + "\"" + mine.tensor + "\" is computed as " + reshaped->second +
            ", not in the shape of the file, and its axes are others; leave its sharding out, and that of "
            "the values around it decides");
      auto its = find_if(found.shardings, [&](const auto &each) { return each.tensor == mine.tensor; });
      if (its == found.shardings.end())
        continue;
      std::optional<int64_t> rank;
      for (const auto *list : {&model.valueInfo, &model.inputs, &model.outputs})
        for (const onnx::ValueInfo &value : *list)
          if (value.name == mine.tensor && value.hasShape)
            rank = value.shape.size();
      for (const onnx::Tensor &tensor : model.initializers)
        if (tensor.name == mine.tensor)
          rank = tensor.dims.size();
      if (plain(mine, rank.value_or(-1)) == plain(*its, rank.value_or(-1)))
        continue;
      auto [here, there] = describe(mine, *its);
      findings.push_back(place + "\"" + mine.tensor + "\" is annotated " + here + ", and in the plan it is " + there +
                         "; leave out the key that changes it, or --onnx-sharding");
    }
  }
  return findings;
}

} // namespace par
