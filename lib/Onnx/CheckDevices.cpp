// The rules of multi-device annotations, from the comments of onnx.proto and ONNX's page "MultiDevice". Each rule is
// one sentence at its place; what only a backend can know, whether uneven shards are taken, is a note.
#include "CheckSharding.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace par::onnx {
namespace {

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
  void checkStages(const std::vector<Node> &nodes, const std::string &within);

  void find(const std::string &what) { findings.push_back({place + what, false}); }

  const Model &model;
  std::vector<DeviceFinding> findings;
  std::string place; ///< begin of every message
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
    const DeviceConfiguration *current = known == model.configurations.end() ? nullptr : &*known;
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
      checkSharding({node, sharding, shapes, current, place}, findings);
    }
  }
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
