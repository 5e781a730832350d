// From ONNX's lists to stages, groups of devices and shards; refuses what no plan says. A plan keeps each value on all
// ranks of its stage, in contiguous shards.
#include "DeviceReader.h"

#include "par/format/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using namespace llvm;

namespace par {

std::string nameOfNode(const onnx::Model &model, size_t node) {
  const onnx::Node &at = model.nodes[node];
  return "node " + (at.name.empty() ? "number " + std::to_string(node) + ", " + at.opType : "\"" + at.name + "\"");
}

static std::string listOf(ArrayRef<int64_t> numbers) {
  std::vector<std::string> words;
  for (int64_t number : numbers.take_front(8))
    words.push_back(std::to_string(number));
  return "[" + llvm::join(words, ", ") + (numbers.size() > 8 ? ", ..." : "") + "]";
}

namespace {

class DeviceReader {
public:
  DeviceReader(const Model &model, DiagnosticSink sink, ReadDevices &read)
      : graph(model.graph), sink(sink), read(read) {}

  bool run(StringRef configuration);

private:
  bool pick(StringRef name);
  bool checkRules();
  void checkInner();
  void readStages();
  void readShardings();
  void readAxes(ReadSharding &sharding);
  void readGroups();
  void groupStages();
  void placeShardings();
  const onnx::NodeDevices *annotationOf(const onnx::Node &node) const {
    auto found =
        find_if(node.devices, [&](const auto &each) { return each.configuration == read.configuration->name; });
    return found == node.devices.end() ? nullptr : &*found;
  }
  bool error(const Twine &message) {
    CompileDiagnostic finding;
    finding.file = graph.path;
    finding.message = message.str();
    sink(finding);
    failed = true;
    return false;
  }
  bool errorAt(size_t node, const Twine &message) { return error(nameOfNode(graph, node) + ": " + message); }

  const onnx::Model &graph;
  DiagnosticSink sink;
  ReadDevices &read;
  bool failed = false;
};

} // namespace

bool DeviceReader::pick(StringRef name) {
  std::vector<std::string> known;
  for (const onnx::DeviceConfiguration &each : graph.configurations) {
    known.push_back(each.name);
    if (each.name == name || (name.empty() && graph.configurations.size() == 1))
      read.configuration = &each;
  }
  if (read.configuration)
    return true;
  if (known.empty())
    return error("has no multi-device annotations, which --onnx-sharding would read; leave it out");
  return error((name.empty() ? "has several configurations of devices" : "has no configuration \"" + name + "\"") +
               Twine("; --onnx-sharding=NAME takes one of ") + llvm::join(known, ", "));
}

bool DeviceReader::checkRules() {
  for (const onnx::DeviceFinding &finding : onnx::checkDevices(graph))
    if (!finding.isNote)
      error(finding.message);
  return !failed;
}

/// A plan speaks of the nodes of the main graph.
void DeviceReader::checkInner() {
  auto isAnnotated = [&](const onnx::Node &node) { return annotationOf(node) != nullptr; };
  for (size_t node = 0; node < graph.nodes.size(); ++node)
    for (const onnx::Attribute &attribute : graph.nodes[node].attributes)
      if (attribute.graph && any_of(attribute.graph->nodes, isAnnotated))
        errorAt(node, "its body has annotated nodes, of which a plan has no names; annotate the node around them");
  for (const onnx::Function &function : graph.functions)
    if (any_of(function.nodes, isAnnotated))
      error("function \"" + Twine(function.name) +
            "\" has annotated nodes, of which a plan has no names; annotate the nodes that call it");
}

void DeviceReader::readStages() {
  std::set<int64_t> numbers;
  for (const onnx::Node &node : graph.nodes)
    if (const onnx::NodeDevices *said = annotationOf(node); said && said->stage)
      numbers.insert(*said->stage);
  read.stages.assign(numbers.begin(), numbers.end());
  for (const onnx::Node &node : graph.nodes) {
    const onnx::NodeDevices *said = annotationOf(node);
    std::optional<size_t> &stage = read.stageOf.emplace_back();
    if (said && said->stage)
      stage = std::distance(numbers.begin(), numbers.find(*said->stage));
  }
}

/// Parts of an axis: one of them is sharded, and those before it count blocks.
void DeviceReader::readAxes(ReadSharding &sharding) {
  for (const onnx::ShardedAxis &said : sharding.said->axes) {
    ReadAxis axis{*said.axis, 1, 1};
    for (const onnx::SimpleSharding &part : said.parts) {
      if (*part.shards > 1 && axis.shards > 1) {
        errorAt(sharding.node, "axis " + Twine(*said.axis) + " of \"" + sharding.said->tensor +
                                   "\" has two parts in shards; a plan shards one of them, contiguously or in blocks");
        return;
      }
      if (*part.shards == 1 && axis.shards == 1 && said.parts.size() > 1) {
        if (!part.size) {
          errorAt(sharding.node, "axis " + Twine(*said.axis) + " of \"" + sharding.said->tensor +
                                     "\" has a part before the sharded one without its dim_value, which says how many "
                                     "blocks there are");
          return;
        }
        axis.blocks *= *part.size;
      }
      axis.shards *= *part.shards;
    }
    if (axis.shards > 1)
      sharding.axes.push_back(axis);
  }
}

void DeviceReader::readShardings() {
  for (size_t node = 0; node < graph.nodes.size(); ++node)
    if (const onnx::NodeDevices *said = annotationOf(graph.nodes[node]))
      for (const onnx::TensorSharding &tensor : said->shardings) {
        read.shardings.push_back({node, &tensor, {}});
        readAxes(read.shardings.back());
      }
}

static std::vector<int64_t> devicesOf(const onnx::TensorSharding &said) {
  std::set<int64_t> devices;
  for (const std::vector<int64_t> &holders : said.holders())
    devices.insert(holders.begin(), holders.end());
  return {devices.begin(), devices.end()};
}

/// The devices of each stage, and stages that have the same ones.
void DeviceReader::readGroups() {
  size_t stages = std::max<size_t>(1, read.stages.size());
  std::vector<std::vector<int64_t>> devices(stages);
  for (const ReadSharding &sharding : read.shardings) {
    if (stages > 1 && !read.stageOf[sharding.node])
      continue;
    std::vector<int64_t> &known = devices[stages > 1 ? *read.stageOf[sharding.node] : 0];
    std::vector<int64_t> mine = devicesOf(*sharding.said);
    if (known.empty())
      known = mine;
    else if (known != mine)
      errorAt(sharding.node, "\"" + Twine(sharding.said->tensor) + "\" is on devices " + listOf(mine) +
                                 ", and other tensors of its stage are on " + listOf(known) +
                                 "; a plan has each on all of them, replicated where it is not sharded");
  }
  int64_t all = *read.configuration->devices;
  bool unsaid = all_of(devices, [](const auto &list) { return list.empty(); });
  for (size_t stage = 0; stage < stages; ++stage) {
    if (unsaid && int64_t(stages) == all)
      devices[stage] = {int64_t(stage)}; // one device a stage
    if (devices[stage].empty()) {
      error("no sharding names the devices of stage " + Twine(read.stages.empty() ? 0 : read.stages[stage]) + " in \"" +
            read.configuration->name + "\"; one tensor with its list of devices is enough");
      return;
    }
    auto known = find(read.groups, devices[stage]);
    read.groupOf.push_back(known - read.groups.begin());
    if (known == read.groups.end())
      read.groups.push_back(devices[stage]);
  }
}

/// Groups are of one size, disjoint and make up all devices; stages go round them.
void DeviceReader::groupStages() {
  std::set<int64_t> seen;
  size_t count = 0;
  for (const std::vector<int64_t> &group : read.groups) {
    seen.insert(group.begin(), group.end());
    count += group.size();
    if (group.size() != read.groups.front().size()) {
      error("stages of \"" + Twine(read.configuration->name) + "\" have " + Twine(read.groups.front().size()) +
            " and " + Twine(group.size()) + " devices, which is a mesh for each; say pipeline.meshes in a plan");
      return;
    }
  }
  int64_t all = *read.configuration->devices;
  if (count != seen.size())
    error("stages of \"" + Twine(read.configuration->name) +
          "\" share some devices and not all; a plan gives stages the same ranks or others");
  else if (int64_t(seen.size()) != all)
    error("tensors of \"" + Twine(read.configuration->name) + "\" are on " + Twine(seen.size()) + " of " + Twine(all) +
          " devices; the ranks of a plan all hold something");
  size_t groups = read.groups.size(), stages = read.groupOf.size();
  auto follows = [&](auto groupAt) {
    return all_of(seq<size_t>(stages), [&](size_t stage) { return read.groupOf[stage] == groupAt(stage); });
  };
  bool isRound = follows([&](size_t stage) { return stage % groups; });
  bool isV =
      stages == 2 * groups && follows([&](size_t stage) { return stage < groups ? stage : 2 * groups - 1 - stage; });
  if (!failed && !isRound && !isV)
    error("stages of \"" + Twine(read.configuration->name) +
          "\" go over their devices in an order that no plan has; round robin and there-and-back are known");
}

void DeviceReader::placeShardings() {
  for (ReadSharding &sharding : read.shardings) {
    std::vector<int64_t> mine = devicesOf(*sharding.said);
    auto known = find(read.groups, mine);
    if (known == read.groups.end())
      errorAt(sharding.node, "\"" + Twine(sharding.said->tensor) + "\" is on devices " + listOf(mine) +
                                 ", which are those of no stage; a plan has each on all ranks of a stage");
    else
      sharding.group = known - read.groups.begin();
  }
}

bool DeviceReader::run(StringRef configuration) {
  if (!pick(configuration) || !checkRules())
    return false;
  checkInner();
  readStages();
  readShardings();
  if (!failed)
    readGroups();
  if (!failed)
    groupStages();
  if (!failed)
    placeShardings();
  return !failed;
}

bool readDevices(const Model &model, StringRef configuration, DiagnosticSink sink, ReadDevices &read) {
  return DeviceReader(model, sink, read).run(configuration);
}

std::vector<ShardOfPlace> shardsOf(const ReadSharding &sharding, ArrayRef<int64_t> members) {
  std::map<int64_t, int64_t> shardOf;
  std::vector<std::vector<int64_t>> holders = sharding.said->holders();
  bool isWhole = sharding.axes.empty();
  for (auto [shard, devices] : enumerate(holders))
    for (int64_t device : devices)
      shardOf[device] = isWhole ? 0 : int64_t(shard);
  std::vector<ShardOfPlace> result;
  int64_t inner = 1;
  for (const ReadAxis &axis : sharding.axes)
    inner *= axis.shards;
  for (const ReadAxis &axis : sharding.axes) {
    inner /= axis.shards;
    ShardOfPlace &shards = result.emplace_back();
    for (int64_t device : members)
      shards.push_back(shardOf[device] / inner % axis.shards);
  }
  return result;
}

} // namespace par
