// Annotations as the text of a plan: the mesh from the lists of devices, cuts from stages, a rule for each tensor.
#include "DeviceReader.h"

#include "par/Devices/Devices.h"
#include "par/format/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

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
  Planner(const Model &model, DiagnosticSink sink) : model(model), graph(model.graph), sink(sink) {}

  std::optional<DevicePlan> run(StringRef configuration);

private:
  bool findMesh();
  bool meshOfLists();
  bool addBorders(std::set<int64_t> &borders);
  void nameAxes(ArrayRef<int64_t> borders);
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
  std::optional<std::string> cutOf(size_t stage);
  bool findCuts();
  void writeHead();

  int64_t rankOf(StringRef tensor) const;
  bool error(const Twine &message);
  bool errorAt(size_t node, const Twine &message) { return error(nameOfNode(graph, node) + ": " + message); }

  const Model &model;
  const onnx::Model &graph;
  DiagnosticSink sink;
  ReadDevices read;
  DeviceMesh mesh;
  StringMap<Rule> parameters, values; ///< by tensor
  std::map<size_t, Rule> inputs;      ///< by the input's number
  std::optional<PlanAxes> batchAxes;
  std::vector<std::string> cuts; ///< in quotes, of stages after the first
  std::string head, rules;
};

} // namespace

bool Planner::error(const Twine &message) {
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

/// The places within a group between which some sharding changes.
bool Planner::addBorders(std::set<int64_t> &borders) {
  for (const ReadSharding &sharding : read.shardings)
    for (const ShardOfPlace &shards : shardsOf(sharding, read.groups[sharding.group])) {
      std::optional<std::vector<int64_t>> found = bordersOf(shards);
      if (!found)
        return errorAt(sharding.node, "the list of devices of \"" + Twine(sharding.said->tensor) +
                                          "\" is of no mesh: shards go over ranks in even steps there");
      borders.insert(found->begin(), found->end());
      int64_t last = 1;
      for (int64_t border : borders) {
        if (border % last)
          return errorAt(sharding.node, "the list of devices of \"" + Twine(sharding.said->tensor) +
                                            "\" parts them in steps of " + Twine(border) + ", others in steps of " +
                                            Twine(last) + "; the axes of a mesh divide each other");
        last = border;
      }
    }
  return true;
}

/// Axes between the borders, the innermost first here; those of the batch are `dp`, others `tp`.
void Planner::nameAxes(ArrayRef<int64_t> borders) {
  std::vector<std::pair<int64_t, int64_t>> found; // stride, size
  for (size_t i = 1; i < borders.size(); ++i)
    found.push_back({borders[i - 1], borders[i] / borders[i - 1]});
  auto isOfBatch = [&](int64_t stride) {
    return any_of(read.shardings, [&](const ReadSharding &sharding) {
      bool isInput =
          any_of(graph.inputs, [&](const onnx::ValueInfo &input) { return input.name == sharding.said->tensor; });
      if (!isInput || sharding.axes.empty() || sharding.axes.front().axis != 0)
        return false;
      return shardsOf(sharding, read.groups[sharding.group]).front()[stride] != 0;
    });
  };
  size_t ofBatch = count_if(found, [&](auto &each) { return isOfBatch(each.first); });
  size_t batch = 0, other = 0;
  for (auto [stride, size] : reverse(found)) {
    bool isBatch = isOfBatch(stride);
    std::string name = isBatch ? "dp" : "tp";
    if ((isBatch ? ofBatch : found.size() - ofBatch) > 1)
      name += std::to_string(isBatch ? batch++ : other++);
    mesh.axes.push_back({name, size});
  }
}

/// A mesh of devices that have no names of coordinates.
bool Planner::meshOfLists() {
  std::set<int64_t> borders{1, int64_t(read.groups.front().size())};
  std::optional<GroupStride> stride = strideOf(read.groups);
  if (!stride)
    return error("stages of \"" + Twine(read.configuration->name) +
                 "\" have devices that no axis of a mesh parts; number them stage by stage, or in turn");
  if (stride->stride < int64_t(read.groups.front().size()))
    borders.insert(stride->stride);
  if (!addBorders(borders))
    return false;
  nameAxes(to_vector(borders));
  mesh.members = read.groups;
  if (read.groups.size() == 1)
    return true;
  mesh.pipeline = "pp";
  int64_t inner = read.groups.front().size();
  for (mesh.pipelineAt = 0; mesh.pipelineAt < mesh.axes.size() && inner > stride->stride; ++mesh.pipelineAt)
    inner /= mesh.axes[mesh.pipelineAt].second;
  return true;
}

bool Planner::findMesh() {
  if (std::optional<DeviceMesh> named = meshOfNames(*read.configuration, read.groups)) {
    mesh = std::move(*named);
    return true;
  }
  return meshOfLists();
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

/// A pattern in double quotes, in which YAML reads backslashes. A pattern has no quotes.
static std::string inQuotes(StringRef pattern) {
  std::string text = "\"";
  for (char c : pattern)
    text += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return text + "\"";
}

/// Whether a pattern means what it should and nothing else; else why not. Names come from the file, and hold anything.
static bool means(StringRef pattern, const NameTable &names, llvm::function_ref<bool(const PatternMatches &)> isMeant,
                  std::string &why) {
  why = "it holds characters that a plan cannot";
  if (!json::isUTF8(pattern) || format::printable(pattern.str()) != pattern)
    return false;
  why = "it means other names of the model, too";
  std::optional<NamePattern> parsed = NamePattern::parse(pattern, why);
  return parsed && isMeant(matchPattern(*parsed, names));
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

/// The first node of a stage that inputs flow into: others are where their users are.
static std::optional<size_t> firstNodeOf(const onnx::Model &graph, const ReadDevices &read, size_t stage) {
  llvm::StringSet<> active; // tensors
  for (const onnx::ValueInfo &input : graph.inputs)
    active.insert(input.name);
  for (auto [index, node] : enumerate(graph.nodes)) {
    bool isActive = any_of(node.inputs, [&](const std::string &input) { return active.contains(input); });
    if (isActive && read.stageOf[index] == stage)
      return index;
    for (const std::string &output : node.outputs)
      if (isActive && !output.empty())
        active.insert(output);
  }
  return std::nullopt;
}

/// Whether all nodes of a module that say a stage are on this stage or later.
static bool startsAt(const onnx::Model &graph, const ReadDevices &read, StringRef module, size_t stage) {
  return all_of(enumerate(graph.nodes), [&](const auto &each) {
    StringRef path = each.value().modulePath;
    bool inside = path == module || (path.starts_with(module) && path[module.size()] == '.');
    return !inside || read.stageOf[each.index()].value_or(stage) >= stage;
  });
}

/// The pattern of the module or node that starts a stage: the outermost module with its first node that starts there,
/// else the node; of these the first one that a pattern can mean.
std::optional<std::string> Planner::cutOf(size_t stage) {
  std::optional<size_t> first = firstNodeOf(graph, read, stage);
  if (!first) {
    error("stage " + Twine(read.stages[stage]) + " of \"" + read.configuration->name +
          "\" has no node that an input of the model flows into; a plan's cut names such a node");
    return std::nullopt;
  }
  std::string why;
  StringRef path = graph.nodes[*first].modulePath;
  for (size_t dot = path.find('.'); !path.empty(); dot = path.find('.', dot + 1)) {
    StringRef module = path.take_front(dot);
    std::string pattern = ("^" + module).str();
    auto isMeant = [&](const PatternMatches &found) {
      return found.modules.size() == 1 && model.names.modules[found.modules.front()] == module;
    };
    if (startsAt(graph, read, module, stage) && means(pattern, model.names, isMeant, why))
      return pattern;
    if (dot == StringRef::npos)
      break;
  }
  std::string pattern = "^" + model.names.nodes[*first].name;
  auto isMeant = [&](const PatternMatches &found) {
    return found.modules.empty() && found.nodes.size() == 1 && found.nodes.front() == *first;
  };
  if (means(pattern, model.names, isMeant, why))
    return pattern;
  errorAt(*first, "a cut of a plan cannot be at \"" + Twine(pattern) + "\": " + why + "; rename it in the model");
  return std::nullopt;
}

bool Planner::findCuts() {
  bool right = true;
  for (size_t stage = 1; stage < read.groupOf.size(); ++stage)
    if (std::optional<std::string> cut = cutOf(stage))
      cuts.push_back(inQuotes(*cut));
    else
      right = false;
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
  if (!readDevices(model, configuration, sink, read) || !findMesh() || !collectRules() || !checkUsed() ||
      !writeRules() || !findCuts())
    return std::nullopt;
  writeHead();
  return DevicePlan{graph.path + " (" + read.configuration->name + ")",
                    head + (rules.empty() ? "" : "shard:\n" + rules), read.configuration->name};
}

std::optional<DevicePlan> planOfDevices(const Model &model, StringRef configuration, DiagnosticSink sink) {
  return Planner(model, sink).run(configuration);
}

} // namespace par
