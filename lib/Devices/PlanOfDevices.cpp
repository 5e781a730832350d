// Annotations as the text of a plan: the mesh from the lists of devices, cuts from stages, a rule for each tensor.
#include "PlanParts.h"

#include "par/Devices/Devices.h"
#include "par/format/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <set>

using namespace llvm;

namespace par {
namespace {

/// A rule of `shard`, or what a sharding says of an input's batch.
struct Rule {
  size_t node; ///< where it was said
  std::vector<std::pair<int64_t, PlanAxes>> dims;
  int64_t blocks = 1;

  bool sameAs(const Rule &other) const { return dims == other.dims && blocks == other.blocks; }
};

class Planner {
public:
  Planner(const Model &model, DiagnosticSink sink) : model(model), graph(model.graph), refusals{graph, sink} {}

  std::optional<DevicePlan> run(StringRef configuration);

private:
  bool checkUsed();
  bool collectRules();
  std::optional<Rule> ruleOf(const ReadSharding &sharding);
  bool addRule(const ReadSharding &sharding, Rule rule);
  bool addInput(const ReadSharding &sharding, Rule rule, size_t input);
  bool checkOutputs();
  bool keep(StringMap<Rule> &rules, StringRef tensor, Rule rule);
  std::string textOf(const Rule &rule) const;
  bool writeRules();
  bool writeRule(size_t node, const std::string &pattern, const Rule &rule,
                 llvm::function_ref<bool(const PatternMatches &)> isMeant);
  void writeHead();

  int64_t rankOf(StringRef tensor) const;
  bool error(const Twine &message) { return refusals.error(message); }
  bool errorAt(size_t node, const Twine &message) { return refusals.errorAt(node, message); }

  const Model &model;
  const onnx::Model &graph;
  Refusals refusals;
  ReadDevices read;
  DeviceMesh mesh;
  StringMap<Rule> parameters, values; ///< by tensor
  std::map<size_t, Rule> inputs;      ///< by the input's number
  std::optional<PlanAxes> batchAxes;
  std::vector<std::string> cuts; ///< in quotes, of stages after the first
  std::string head, rules;
};

} // namespace

bool Refusals::error(const Twine &message) const {
  CompileDiagnostic finding;
  finding.file = graph.path;
  finding.message = message.str();
  sink(finding);
  return false;
}

int64_t Planner::rankOf(StringRef tensor) const {
  for (const onnx::Tensor &each : graph.initializers)
    if (each.name == tensor)
      return each.dims.size();
  for (const auto *list : {&graph.inputs, &graph.outputs, &graph.valueInfo})
    for (const onnx::ValueInfo &each : *list)
      if (each.name == tensor && each.hasShape)
        return each.shape.size();
  return -1;
}

/// An axis that shards nothing has ranks that repeat each other, which a plan refuses.
bool Planner::checkUsed() {
  std::set<std::string> used;
  auto add = [&](const Rule &rule) {
    for (const auto &[dim, axes] : rule.dims)
      used.insert(axes.begin(), axes.end());
  };
  for (const auto *list : {&parameters, &values})
    for (const auto &entry : *list)
      add(entry.second);
  for (const auto &[input, rule] : inputs)
    add(rule);
  if (batchAxes)
    used.insert(batchAxes->begin(), batchAxes->end());
  for (const auto &[axis, size] : mesh.axes)
    if (!used.count(axis))
      return error("no sharding of \"" + Twine(read.configuration->name) + "\" parts its devices along \"" + axis +
                   "\" (" + Twine(size) + "): they hold the same of every tensor, which no rank of a plan repeats");
  return true;
}

std::optional<Rule> Planner::ruleOf(const ReadSharding &sharding) {
  Rule rule{sharding.node, {}, 1};
  int64_t rank = rankOf(sharding.said->tensor);
  std::vector<ShardOfPlace> shards = shardsOf(sharding, mesh.members[sharding.group]);
  for (auto [axis, shardOf] : zip(sharding.axes, shards)) {
    std::optional<PlanAxes> axes = mesh.axesOf(shardOf, axis.shards);
    if (!axes) {
      errorAt(sharding.node, "axis " + Twine(axis.axis) + " of \"" + sharding.said->tensor + "\" is in " +
                                 Twine(axis.shards) +
                                 " shards, which are not those of whole axes of the mesh; a plan's rules name whole "
                                 "axes: leave this one out, and propagation finds a sharding");
      return std::nullopt;
    }
    rule.dims.push_back({axis.axis < 0 && rank >= 0 ? axis.axis + rank : axis.axis, *axes});
    if (axis.blocks > 1 && rule.blocks > 1) {
      errorAt(sharding.node, "two axes of \"" + Twine(sharding.said->tensor) + "\" are in blocks; a plan has one");
      return std::nullopt;
    }
    rule.blocks = std::max(rule.blocks, axis.blocks);
  }
  sort(rule.dims);
  return rule;
}

bool Planner::keep(StringMap<Rule> &list, StringRef tensor, Rule rule) {
  auto [known, isNew] = list.try_emplace(tensor, rule);
  if (isNew || known->second.sameAs(rule))
    return true;
  return errorAt(rule.node, "\"" + tensor + "\" is " + textOf(rule) + " here and " + textOf(known->second) + " at " +
                                nameOfNode(graph, known->second.node) +
                                "; a plan shards a value once: annotate it alike, or put an Identity between");
}

/// The batch of all inputs lies over the same axes; other dims of an input have rules.
bool Planner::addInput(const ReadSharding &sharding, Rule rule, size_t input) {
  const onnx::ValueInfo &value = graph.inputs[input];
  auto isBatch = [&](const onnx::ValueInfo &other) {
    const onnx::ValueInfo &first = graph.inputs.front();
    return !other.shape.empty() && !first.shape.empty() && other.shape[0].symbol == first.shape[0].symbol &&
           other.shape[0].size == first.shape[0].size;
  };
  if (rule.blocks > 1)
    return errorAt(rule.node, "\"" + Twine(value.name) + "\" is in blocks; a plan shards parameters so, and no inputs");
  if (isBatch(value)) {
    PlanAxes axes;
    if (!rule.dims.empty() && rule.dims.front().first == 0) {
      axes = rule.dims.front().second;
      rule.dims.erase(rule.dims.begin());
    }
    if (batchAxes && *batchAxes != axes)
      return errorAt(rule.node, "the batch of \"" + Twine(value.name) + "\" is over " +
                                    (axes.empty() ? "no axis" : llvm::join(axes, " and ")) +
                                    ", and that of another input over " +
                                    (batchAxes->empty() ? "no axis" : llvm::join(*batchAxes, " and ")) +
                                    "; a plan has one batch.over for all");
    batchAxes = axes;
  }
  auto [known, isNew] = inputs.try_emplace(input, rule);
  if (isNew || known->second.sameAs(rule))
    return true;
  return errorAt(rule.node, "\"" + Twine(sharding.said->tensor) + "\" is " + textOf(rule) + " here and " +
                                textOf(known->second) + " at " + nameOfNode(graph, known->second.node) +
                                "; a plan shards a value once: annotate it alike, or put an Identity between");
}

bool Planner::addRule(const ReadSharding &sharding, Rule rule) {
  StringRef tensor = sharding.said->tensor;
  auto named = [&](const auto &each) { return each.name == tensor; };
  if (any_of(graph.initializers, named))
    return keep(parameters, tensor, std::move(rule));
  if (auto input = find_if(graph.inputs, named); input != graph.inputs.end())
    return addInput(sharding, std::move(rule), input - graph.inputs.begin());
  if (rule.blocks > 1)
    return errorAt(rule.node, "\"" + tensor + "\" is in blocks; a plan shards parameters so, and no values");
  if (!rule.dims.empty() && rankOf(tensor) < 0)
    return errorAt(rule.node, "the file has no shape of \"" + tensor +
                                  "\", by which its axes are known; add shapes (onnx.shape_inference), or leave its "
                                  "sharding out");
  return keep(values, tensor, std::move(rule));
}

bool Planner::collectRules() {
  bool right = true;
  for (const ReadSharding &sharding : read.shardings)
    if (std::optional<Rule> rule = ruleOf(sharding))
      right &= addRule(sharding, std::move(*rule));
    else
      right = false;
  return right;
}

/// `{0: dp, 1: [a, b], closed: true}`, or `replicated`.
std::string Planner::textOf(const Rule &rule) const {
  if (rule.dims.empty())
    return "replicated";
  std::string text = "{";
  for (const auto &[dim, axes] : rule.dims)
    text += std::to_string(dim) + ": " + (axes.size() == 1 ? axes.front() : "[" + llvm::join(axes, ", ") + "]") + ", ";
  if (rule.blocks > 1)
    text += "blocks: " + std::to_string(rule.blocks) + ", ";
  return text + "closed: true}";
}

/// Adds a rule whose pattern means one name.
bool Planner::writeRule(size_t node, const std::string &pattern, const Rule &rule,
                        llvm::function_ref<bool(const PatternMatches &)> isMeant) {
  std::string why;
  if (!means(pattern, model.names, isMeant, why))
    return errorAt(node,
                   "a rule of a plan cannot be for \"" + Twine(pattern) + "\": " + why + "; rename it in the model");
  rules += "  " + inQuotes(pattern) + ": " + textOf(rule) + "\n";
  return true;
}

static bool isOne(const PatternMatches &matches, ArrayRef<unsigned> list, size_t index) {
  size_t all = matches.parameters.size() + matches.modules.size() + matches.nodes.size() + matches.inputs.size() +
               matches.outputs.size();
  return all == 1 && list.size() == 1 && list.front() == index;
}

bool Planner::writeRules() {
  bool right = true;
  for (auto [index, tensor] : enumerate(graph.initializers))
    if (auto rule = parameters.find(tensor.name); rule != parameters.end())
      right &= writeRule(rule->second.node, "^" + tensor.name, rule->second,
                         [&](const PatternMatches &found) { return isOne(found, found.parameters, index); });
  for (auto &[index, rule] : inputs)
    if (!rule.dims.empty())
      right &= writeRule(rule.node, "^" + graph.inputs[index].name, rule,
                         [&](const PatternMatches &found) { return isOne(found, found.inputs, index); });
  for (auto [index, node] : enumerate(graph.nodes)) {
    std::vector<const Rule *> said;
    size_t outputs = 0;
    for (const std::string &output : node.outputs) {
      outputs += !output.empty();
      if (auto rule = values.find(output); rule != values.end())
        said.push_back(&rule->second);
    }
    if (said.empty())
      continue;
    bool alike = said.size() == outputs && all_of(said, [&](const Rule *rule) { return rule->sameAs(*said.front()); });
    if (!alike) {
      right = errorAt(said.front()->node, "the node that gives the tensor has " + Twine(outputs) +
                                              " outputs, which a plan shards alike; annotate all of them so, or none");
      continue;
    }
    const NameTable::Node &named = model.names.nodes[index];
    right &= writeRule(index, "out(^" + named.name + ")", *said.front(),
                       [&, at = index](const PatternMatches &found) { return isOne(found, found.nodes, at); });
  }
  return right;
}

void Planner::writeHead() {
  head = formatv("# \"{0}\" of {1}, from its multi-device annotations (par-compile --onnx-sharding).\n",
                 format::printable(read.configuration->name), format::printable(graph.path));
  std::vector<std::string> axes;
  for (size_t at = 0; at <= mesh.axes.size(); ++at) {
    if (at == mesh.pipelineAt && !mesh.pipeline.empty())
      axes.push_back(mesh.pipeline + ": " + std::to_string(read.groups.size()));
    if (at < mesh.axes.size())
      axes.push_back(mesh.axes[at].first + ": " + std::to_string(mesh.axes[at].second));
  }
  if (!axes.empty())
    head += "mesh: {" + llvm::join(axes, ", ") + "}\n";
  if (!mesh.order.empty())
    head += "mesh_order: [" + llvm::join(mesh.order, ", ") + "]\n";
  if (batchAxes && !batchAxes->empty()) // none is what a plan without `dp` has; with one, the check of the step says so
    head += "batch: {over: [" + llvm::join(*batchAxes, ", ") + "]}\n";
  if (read.groupOf.size() < 2)
    return;
  std::vector<std::string> parts;
  if (!mesh.pipeline.empty() && mesh.pipeline != "pp")
    parts.push_back("over: " + mesh.pipeline);
  if (read.groupOf.size() != read.groups.size())
    parts.push_back("stages: " + std::to_string(read.groupOf.size()));
  if (read.groupOf.size() > read.groups.size() && read.groupOf.back() == 0 && read.groups.size() > 1)
    parts.push_back("schedule: zb-v");
  parts.push_back("cuts: [" + llvm::join(cuts, ", ") + "]");
  head += "pipeline: {" + llvm::join(parts, ", ") + "}\n";
}

std::optional<DevicePlan> Planner::run(StringRef configuration) {
  if (!readDevices(model, configuration, refusals.sink, read))
    return std::nullopt;
  std::optional<DeviceMesh> found = findMesh(read, refusals);
  if (!found)
    return std::nullopt;
  mesh = std::move(*found);
  if (!collectRules() || !checkUsed() || !writeRules())
    return std::nullopt;
  std::optional<std::vector<std::string>> starts = findCuts(model, read, refusals);
  if (!starts)
    return std::nullopt;
  cuts = std::move(*starts);
  writeHead();
  return DevicePlan{graph.path + " (" + read.configuration->name + ")",
                    head + (rules.empty() ? "" : "shard:\n" + rules), read.configuration->name};
}

std::optional<DevicePlan> planOfDevices(const Model &model, StringRef configuration, DiagnosticSink sink) {
  return Planner(model, sink).run(configuration);
}

} // namespace par
