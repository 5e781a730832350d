// The rules of multi-device annotations, from the comments of onnx.proto and ONNX's page "MultiDevice". Each rule is
// one sentence at its place; what only a backend can know, whether uneven shards are taken, is a note.
#include "par/Onnx/Model.h"
#include "par/format/Printable.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace par::onnx {

std::unordered_map<int64_t, const DeviceGroup *> TensorSharding::groupsByKey() const {
  std::unordered_map<int64_t, const DeviceGroup *> result;
  for (const DeviceGroup &group : groups)
    result.try_emplace(group.key, &group);
  return result;
}

std::vector<std::vector<int64_t>> TensorSharding::holders() const {
  std::vector<std::vector<int64_t>> result;
  std::unordered_map<int64_t, const DeviceGroup *> byKey = groupsByKey();
  for (int64_t device : devices) {
    auto group = byKey.find(device);
    result.push_back(group != byKey.end() ? group->second->devices : std::vector<int64_t>{device});
  }
  return result;
}

namespace {

constexpr int64_t maxShards = int64_t(1) << 31;

std::string number(int64_t value) { return std::to_string(value); }
std::string quoted(const std::string &name) { return "\"" + format::printable(name) + "\""; }
std::string counted(int64_t count, const std::string &word) {
  return number(count) + " " + word + (count == 1 ? "" : "s");
}

/// The dims of the tensors that the file gives a shape. Values inside a body or a function are of another scope.
using Shapes = std::unordered_map<std::string, std::vector<Dim>>;

void addShapes(const std::vector<ValueInfo> &values, Shapes &shapes) {
  for (const ValueInfo &value : values)
    if (value.isTensor && value.hasShape)
      shapes.insert_or_assign(value.name, value.shape);
}

void addShapes(const std::vector<Tensor> &tensors, Shapes &shapes) {
  for (const Tensor &tensor : tensors) {
    std::vector<Dim> dims;
    for (int64_t size : tensor.dims)
      dims.push_back({size, ""});
    shapes.insert_or_assign(tensor.name, std::move(dims));
  }
}

std::string nameOf(const Node &node, size_t index) {
  return "node " + (node.name.empty() ? "number " + number(int64_t(index)) + ", " + node.opType : quoted(node.name));
}

/// Checks all nodes of a model.
class DeviceChecker {
public:
  explicit DeviceChecker(const Model &model) : model(model) {}

  std::vector<DeviceFinding> run();

private:
  void checkConfigurations();
  void checkVersion();
  void checkGraph(const std::vector<Node> &nodes, const Shapes &shapes, const std::string &within);
  void checkNode(const Node &node, const Shapes &shapes);
  void checkSharding(const Node &node, const TensorSharding &sharding, const Shapes &shapes);
  void checkDevices(const TensorSharding &sharding);
  void checkGroups(const TensorSharding &sharding);
  void checkHolders(const TensorSharding &sharding);
  void checkAxes(const TensorSharding &sharding, const Shapes &shapes);
  void checkParts(const ShardedAxis &axis, const Dim *dim);
  void checkPart(const SimpleSharding &part, const Dim *dim, bool isOnly);
  void checkStages(const std::vector<Node> &nodes, const std::string &within);

  void find(const std::string &what) { findings.push_back({place + what, false}); }
  void note(const std::string &what) { findings.push_back({place + what, true}); }

  const Model &model;
  std::vector<DeviceFinding> findings;
  std::string place;                            ///< begin of every message
  const DeviceConfiguration *current = nullptr; ///< that of the annotations being checked; null: unknown
  bool annotated = false;
};

void DeviceChecker::checkConfigurations() {
  std::set<std::string> known;
  for (size_t i = 0; i < model.configurations.size(); ++i) {
    const DeviceConfiguration &configuration = model.configurations[i];
    annotated = true;
    place =
        "configuration " + (configuration.name.empty() ? "number " + number(int64_t(i)) : quoted(configuration.name));
    place += ": ";
    if (configuration.name.empty())
      find("it has no name, by which nodes would speak of it");
    else if (!known.insert(configuration.name).second)
      find("another one before it has this name");
    if (!configuration.devices)
      find("num_devices is missing");
    else if (*configuration.devices < 1)
      find("num_devices is " + number(*configuration.devices) + ", at least 1 is expected");
    else if (int64_t names = int64_t(configuration.names.size()); names && names != *configuration.devices)
      find("it names " + counted(names, "device") + ", num_devices is " + number(*configuration.devices) +
           "; name all or none");
  }
}

void DeviceChecker::checkVersion() {
  place = "";
  if (annotated && model.irVersion < firstIrOfDevices)
    find("has multi-device annotations, which are of IR version " + number(firstIrOfDevices) + "; the file says " +
         number(model.irVersion));
}

void DeviceChecker::checkGroups(const TensorSharding &sharding) {
  std::set<int64_t> keys, listed(sharding.devices.begin(), sharding.devices.end());
  for (const DeviceGroup &group : sharding.groups) {
    std::string name = "group " + number(group.key);
    if (!keys.insert(group.key).second)
      find(name + " stands twice in index_to_device_group_map");
    if (group.devices.empty())
      find(name + " has no devices");
    if (!listed.count(group.key))
      find(name + " holds nothing: it is not in the list of devices");
    std::set<int64_t> members;
    for (int64_t device : group.devices)
      if (!members.insert(device).second)
        find(name + " has device " + number(device) + " twice");
  }
}

/// Every number is a group or a device of the configuration, and no device holds two shards.
void DeviceChecker::checkHolders(const TensorSharding &sharding) {
  std::map<int64_t, size_t> shardOf;
  std::unordered_map<int64_t, const DeviceGroup *> byKey = sharding.groupsByKey();
  for (size_t shard = 0; shard < sharding.devices.size(); ++shard) {
    auto found = byKey.find(sharding.devices[shard]);
    const DeviceGroup *group = found == byKey.end() ? nullptr : found->second;
    std::vector<int64_t> holders = group ? group->devices : std::vector<int64_t>{sharding.devices[shard]};
    for (int64_t device : holders) {
      std::string name = "device " + number(device) + (group ? " of group " + number(group->key) : "");
      bool isKnown = device >= 0 && (!current || !current->devices || device < *current->devices);
      if (!isKnown && device < 0 && !group)
        find(name + " is a group that index_to_device_group_map does not have");
      else if (!isKnown)
        find(name + " is none of the " +
             (current && current->devices ? counted(*current->devices, "device") + " of " + quoted(current->name)
                                          : "devices, which count from 0"));
      auto [known, isNew] = shardOf.try_emplace(device, shard);
      if (!isNew && known->second != shard)
        find(name + " holds shard " + number(int64_t(known->second)) + " already, shard " + number(int64_t(shard)) +
             " is another one");
    }
  }
}

/// One entry of the list for every shard.
void DeviceChecker::checkDevices(const TensorSharding &sharding) {
  checkGroups(sharding);
  checkHolders(sharding);
  int64_t shards = 1;
  for (const ShardedAxis &axis : sharding.axes)
    for (const SimpleSharding &part : axis.parts)
      shards = std::min(maxShards, shards * std::clamp<int64_t>(part.shards.value_or(1), 1, maxShards));
  int64_t entries = int64_t(sharding.devices.size());
  if (entries == 0)
    find("it names no device");
  else if (shards != 1 && shards != entries) // one shard may be on all devices of the list
    find("its axes make " + number(shards) + " shards, the list of devices has " +
         (entries == 1 ? "1 entry" : number(entries) + " entries"));
}

void DeviceChecker::checkPart(const SimpleSharding &part, const Dim *dim, bool isOnly) {
  if (!part.shards)
    find("num_shards is missing");
  else if (*part.shards < 1)
    find("num_shards is " + number(*part.shards) + ", at least 1 is expected");
  if (part.symbol && part.symbol->empty())
    find("dim_param is empty");
  if (part.size && *part.size < 1)
    return find("dim_value is " + number(*part.size) + ", at least 1 is expected");
  if (isOnly && dim && part.size && dim->size >= 0 && *part.size != dim->size)
    return find("dim_value is " + number(*part.size) + ", the tensor has " + number(dim->size) + " there");
  if (isOnly && dim && part.symbol && !part.symbol->empty() && dim->size >= 0)
    find("dim_param is " + quoted(*part.symbol) + ", the tensor has " + number(dim->size) + " there");
  int64_t size = part.size ? *part.size : isOnly && dim ? dim->size : -1;
  if (size < 0 || !part.shards || *part.shards < 1)
    return;
  if (*part.shards > size)
    find(counted(*part.shards, "shard") + " of a dim of " + number(size) + ": some would be empty");
  else if (size % *part.shards)
    note(number(size) + " in " + counted(*part.shards, "shard") +
         " is not even; ONNX leaves it to a backend what the shards are, Par's have " +
         number((size - 1) / *part.shards + 1) + " each and the last ones less");
}

/// `dim`: null if the file does not have the tensor's shape.
void DeviceChecker::checkParts(const ShardedAxis &axis, const Dim *dim) {
  if (axis.parts.empty())
    return find("it says no simple_sharding");
  bool isOnly = axis.parts.size() == 1;
  bool sized = true, fits = true;
  int64_t product = 1;
  for (const SimpleSharding &part : axis.parts) {
    checkPart(part, dim, isOnly);
    bool isSized = part.size && *part.size > 0;
    sized = sized && isSized;
    fits = fits && !(isSized && __builtin_mul_overflow(product, *part.size, &product));
  }
  if (!fits)
    return find("its parts make a dim beyond 64 bits; dim_value is the size of one part");
  if (!isOnly && sized && dim && dim->size >= 0 && product != dim->size)
    find("its parts make a dim of " + number(product) + ", the tensor has " + number(dim->size) + " there");
}

void DeviceChecker::checkAxes(const TensorSharding &sharding, const Shapes &shapes) {
  auto shape = shapes.find(sharding.tensor);
  bool isRanked = shape != shapes.end();
  int64_t rank = isRanked ? int64_t(shape->second.size()) : 0;
  std::map<int64_t, int64_t> seen; // by the axis from the first, as it was said
  std::string outer = place;
  for (const ShardedAxis &axis : sharding.axes) {
    place = outer;
    if (!axis.axis) {
      find("a sharded_dim has no axis");
      continue;
    }
    int64_t said = *axis.axis, counted = said < 0 && isRanked ? said + rank : said;
    if (isRanked && (counted < 0 || counted >= rank)) {
      std::string range =
          rank == 0 ? ", which has no axis" : ", whose axes are " + number(-rank) + " to " + number(rank - 1);
      find("axis " + number(said) + " of a tensor of rank " + number(rank) + range);
      continue;
    }
    auto [before, isNew] = seen.try_emplace(counted, said);
    if (!isNew)
      find("axis " + number(said) + " is sharded twice" +
           (before->second != said ? ", also as " + number(before->second) : "") +
           "; say its parts in one sharded_dim");
    place = outer + "axis " + number(said) + ": ";
    checkParts(axis, isRanked ? &shape->second[counted] : nullptr);
  }
  place = outer;
}

void DeviceChecker::checkSharding(const Node &node, const TensorSharding &sharding, const Shapes &shapes) {
  std::string outer = place;
  if (sharding.tensor.empty())
    return find("a sharding_spec has no tensor_name");
  place += "sharding of " + quoted(sharding.tensor) + ": ";
  auto has = [&](const std::vector<std::string> &names) {
    return std::find(names.begin(), names.end(), sharding.tensor) != names.end();
  };
  if (!has(node.inputs) && !has(node.outputs))
    find("it is neither an input nor an output of the node");
  checkAxes(sharding, shapes);
  checkDevices(sharding);
  place = outer;
}

void DeviceChecker::checkNode(const Node &node, const Shapes &shapes) {
  std::set<std::string> configurations;
  std::string outer = place;
  for (const NodeDevices &devices : node.devices) {
    annotated = true;
    place = outer;
    if (devices.configuration.empty()) {
      find("its annotation has no configuration_id");
      continue;
    }
    auto known = std::find_if(model.configurations.begin(), model.configurations.end(),
                              [&](const auto &each) { return each.name == devices.configuration; });
    current = known == model.configurations.end() ? nullptr : &*known;
    if (!current)
      find("configuration_id " + quoted(devices.configuration) + " is no configuration of the model");
    if (!configurations.insert(devices.configuration).second)
      find("it has two annotations for configuration " + quoted(devices.configuration));
    place = outer + "in " + quoted(devices.configuration) + ": ";
    if (devices.stage && *devices.stage < 0)
      find("pipeline_stage is " + number(*devices.stage) + ", at least 0 is expected");
    std::set<std::string> tensors;
    for (const TensorSharding &sharding : devices.shardings) {
      if (!sharding.tensor.empty() && !tensors.insert(sharding.tensor).second)
        find("it has two shardings of " + quoted(sharding.tensor));
      checkSharding(node, sharding, shapes);
    }
  }
  current = nullptr;
}

/// Stages go up along values. A node between two that says none passes on the stage before it.
void DeviceChecker::checkStages(const std::vector<Node> &nodes, const std::string &within) {
  struct Source {
    int64_t stage;
    const Node *node;
    size_t index;
  };
  std::set<std::string> configurations;
  for (const Node &node : nodes)
    for (const NodeDevices &devices : node.devices)
      if (devices.stage)
        configurations.insert(devices.configuration);
  for (const std::string &name : configurations) {
    std::unordered_map<std::string, Source> sources;
    for (size_t index = 0; index < nodes.size(); ++index) {
      const Node &node = nodes[index];
      auto said = std::find_if(node.devices.begin(), node.devices.end(),
                               [&](const NodeDevices &each) { return each.configuration == name && each.stage; });
      Source here{said == node.devices.end() ? -1 : *said->stage, &node, index}, latest{-1, nullptr, 0};
      std::string through;
      for (const std::string &input : node.inputs)
        if (auto source = sources.find(input); source != sources.end() && source->second.stage > latest.stage) {
          latest = source->second;
          through = input;
        }
      place = within + nameOf(node, index) + ": in " + quoted(name) + ": ";
      if (here.stage >= 0 && latest.stage > here.stage)
        find("pipeline_stage is " + number(here.stage) + ", and " + quoted(through) +
             ", which it reads, comes from stage " + number(latest.stage) + " (" + nameOf(*latest.node, latest.index) +
             "); stages go up along values");
      for (const std::string &output : node.outputs)
        if (!output.empty())
          sources.insert_or_assign(output, here.stage >= 0 ? here : latest);
    }
  }
}

void DeviceChecker::checkGraph(const std::vector<Node> &nodes, const Shapes &shapes, const std::string &within) {
  for (size_t index = 0; index < nodes.size(); ++index) {
    const Node &node = nodes[index];
    place = within + nameOf(node, index) + ": ";
    checkNode(node, shapes);
    for (const Attribute &attribute : node.attributes)
      if (attribute.graph) {
        Shapes inner = shapes;
        addShapes(attribute.graph->initializers, inner);
        addShapes(attribute.graph->inputs, inner);
        addShapes(attribute.graph->outputs, inner);
        checkGraph(attribute.graph->nodes, inner, within + nameOf(node, index) + ": ");
      }
  }
  checkStages(nodes, within);
}

std::vector<DeviceFinding> DeviceChecker::run() {
  checkConfigurations();
  Shapes shapes;
  addShapes(model.valueInfo, shapes);
  addShapes(model.outputs, shapes);
  addShapes(model.initialized, shapes);
  addShapes(model.inputs, shapes);
  addShapes(model.initializers, shapes);
  checkGraph(model.nodes, shapes, "");
  for (const Function &function : model.functions)
    checkGraph(function.nodes, {}, "function " + quoted(function.name) + ": ");
  checkVersion();
  return std::move(findings);
}

} // namespace

std::vector<DeviceFinding> checkDevices(const Model &model) { return DeviceChecker(model).run(); }

DeviceCounts countDevices(const Model &model, const std::string &configuration) {
  DeviceCounts counts;
  std::set<int64_t> stages;
  for (const Node &node : model.nodes)
    for (const NodeDevices &devices : node.devices)
      if (devices.configuration == configuration) {
        ++counts.nodes;
        counts.shardings += int64_t(devices.shardings.size());
        if (devices.stage)
          stages.insert(*devices.stage);
      }
  counts.stages = int64_t(stages.size());
  return counts;
}

} // namespace par::onnx
