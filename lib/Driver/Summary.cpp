// Prints the lines of par-compile's summary about model, plan, recipe, padding and stages. Names of modules are
// shortened to the segments that tell them apart.
#include "Summary.h"

#include "par/Base/Provenance.h"
#include "par/Phases/Annotate/GradientFlow.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace par {

/// The last two segments of a name: enough to know a parameter by.
static StringRef lastTwo(StringRef name) {
  SmallVector<StringRef, 8> parts = splitName(name);
  return parts.size() <= 2 ? name : name.substr(parts[parts.size() - 2].data() - name.data());
}

/// Names of a parameter in modules other than its own say that it is tied.
static void addTies(const NameTable::Parameter &parameter, std::vector<std::string> &ties) {
  if (parameter.renamed)
    return;
  StringRef name = lastTwo(parameter.name);
  llvm::SetVector<StringRef> others;
  for (const std::string &alias : parameter.aliases)
    if (lastTwo(alias) != name)
      others.insert(lastTwo(alias));
  for (StringRef other : others)
    ties.push_back((name + " = " + other).str());
}

void printModelLine(const ModelPlan &model, llvm::raw_ostream &os) {
  const NameTable &names = model.names;
  PlanErrors known; // the driver has checked the patterns
  std::vector<bool> trained = resolveTrained(model.plan, names, known);
  int64_t count = 0, elements = 0, kept = 0, unknown = 0;
  std::vector<std::string> ties;
  for (auto [parameter, train] : llvm::zip(names.parameters, trained)) {
    if (!parameter.trainable)
      continue;
    ++count;
    kept += !train;
    unknown += parameter.renamed && parameter.transposed.empty();
    int64_t size = 1;
    for (int64_t dim : parameter.shape)
      size *= dim;
    elements += size;
    addTies(parameter, ties);
  }
  double millions = double(elements) / 1e6;
  os << "model   " << names.model << ": " << names.nodes.size() << " nodes, " << count << " parameters ("
     << llvm::format(millions < 10 ? "%.2f M" : "%.1f M", millions);
  if (model.plan.train && kept == 0)
    os << ", all trained";
  else if (model.plan.train)
    os << ", " << kept << " of them frozen";
  os << ")";
  if (!ties.empty())
    os << ", tied: " << llvm::join(ties, ", ");
  if (unknown)
    os << ", " << unknown << " under names of the exporter (--list=params)";
  os << "\n";
}

/// `a.weight, b.weight and 3 more`
static std::string someOf(ArrayRef<std::string> names, StringRef between = ", ") {
  std::string text = llvm::join(names.take_front(3), between);
  return names.size() <= 3 ? text : text + " and " + std::to_string(names.size() - 3) + " more";
}

void printModuleLine(const ModelPlan &model, llvm::raw_ostream &os) {
  if (!model.plan.train)
    return;
  PlanErrors known; // the driver has checked the patterns
  std::vector<bool> trained = resolveTrained(model.plan, model.names, known);
  std::vector<std::string> frozen, unfrozen, parts;
  for (auto [parameter, train] : llvm::zip(model.names.parameters, trained)) {
    if (parameter.frozen)
      (train ? unfrozen : frozen).push_back(parameter.name);
    if (train && !parameter.gradientNote.empty())
      parts.push_back(parameter.name + " " + parameter.gradientNote);
  }
  if (!unfrozen.empty())
    parts.insert(parts.begin(), someOf(unfrozen) + " frozen, which train.only trains");
  if (!frozen.empty())
    parts.insert(parts.begin(), someOf(frozen) + " frozen");
  if (!parts.empty())
    os << "module  in PyTorch: " << llvm::join(parts, "; ") << "\n";
}

/// The optimizer, and those of groups: "adamw + sgd".
static std::string optimizersOf(const PlanTrain &train) {
  llvm::SetVector<StringRef> kinds;
  kinds.insert(*train.optimizer.kind);
  for (const PlanGroup &group : train.groups)
    if (group.kind)
      kinds.insert(**group.kind);
  return llvm::join(kinds, " + ");
}

/// The types of trained parameters in the model's file whose masters are f32: "bf16".
static std::string narrowTypes(const ModelPlan &model) {
  PlanErrors known; // the driver has checked the patterns
  std::vector<bool> trained = resolveTrained(model.plan, model.names, known);
  llvm::SetVector<StringRef> types;
  for (auto [parameter, train] : llvm::zip(model.names.parameters, trained))
    if (train && parameter.hasNarrowType())
      types.insert(parameter.type);
  return llvm::join(types, " and ");
}

/// `: pp 2 x dp 2`
static void printAxes(const PlanMesh &mesh, StringRef before, llvm::raw_ostream &os) {
  for (auto [index, axis] : llvm::enumerate(mesh))
    os << (index ? " x " : before) << axis.first << " " << *axis.second;
}

void printPlanLine(const ModelPlan &model, llvm::raw_ostream &os) {
  const Plan &plan = model.plan;
  os << "plan    " << *plan.ranks << (*plan.ranks == 1 ? " rank" : " ranks");
  printAxes(plan.mesh, ": ", os);
  for (auto [index, mesh] : llvm::enumerate(*plan.pipeline.meshes)) {
    printAxes(mesh, index ? " + " : ": ", os);
    if (mesh.empty())
      os << (index ? " + " : ": ") << "one rank";
  }
  int64_t stages = *plan.pipeline.stages;
  os << "; " << stages << (stages == 1 ? " stage" : " stages");
  if (stages > 1 && plan.train)
    os << ", " << *plan.pipeline.schedule;
  if (plan.calls() > 1)
    os << ", flushed every " << plan.calls() << " batches";
  int64_t microbatches = **plan.batch.microbatches;
  os << ", " << microbatches << (microbatches == 1 ? " microbatch of " : " microbatches of ")
     << **plan.batch.microbatchSize;
  // The first input says what a sample is; a model may have none, and it may be a number.
  if (!model.names.inputs.empty() && !model.names.inputs.front().shape.empty())
    for (StringRef dim : llvm::drop_begin(model.names.inputs.front().shape)) {
      auto bound = llvm::find_if(plan.dims, [&](const auto &entry) { return entry.first == dim; });
      os << " x " << (bound == plan.dims.end() ? dim.str() : std::to_string(*bound->second));
    }
  if (plan.turns() > 1)
    os << ", dealt round robin to " << plan.turns() << " replicas";
  os << "; " << (plan.train ? optimizersOf(*plan.train) : std::string("inference")) << " " << *plan.precision.compute;
  if (std::string types = narrowTypes(model); !types.empty())
    os << ", masters f32 of weights in " << types;
  if (plan.train && *plan.precision.states != "f32")
    os << ", states " << *plan.precision.states;
  if (plan.train && *plan.precision.accumulate != "f32")
    os << ", gradients accumulated in " << *plan.precision.accumulate;
  if (plan.train && *plan.precision.reduce != "f32")
    os << ", reduced in " << *plan.precision.reduce;
  // The rest of what changes the numbers (docs/plan.md 1.4), where it is not the default.
  if (*plan.batchNorm != "microbatch")
    os << "; batch_norm " << *plan.batchNorm;
  if (*plan.seed != 0)
    os << "; seed " << *plan.seed;
  os << "\n";
}

/// layers.*.attn.weight for that of each layer.
static std::string inAnyLayer(StringRef name) {
  SmallVector<StringRef, 8> parts = splitName(name);
  for (StringRef &part : parts)
    part = llvm::all_of(part, llvm::isDigit) ? "*" : part;
  return llvm::join(parts, ".");
}

/// Whether a rule cuts along axes of more than one rank.
static bool cuts(const ResolvedShard &rule, const Plan &plan) {
  return llvm::any_of(rule.dims, [&](const auto &dim) { return plan.maxShards(*dim.second) > 1; });
}

void printRecipeLine(const ModelPlan &model, llvm::raw_ostream &os) {
  if (model.plan.recipes.empty())
    return;
  PlanErrors known; // the driver has checked the rules
  llvm::SmallDenseSet<unsigned> cut;
  for (const ResolvedShard &rule : resolveShards(model.plan, model.names, known))
    if (rule.kind == ResolvedShard::Parameter && cuts(rule, model.plan))
      cut.insert(rule.index);
  int64_t all = 0, whole = 0, ofCut = 0;
  llvm::MapVector<std::string, int64_t, llvm::StringMap<unsigned>> left; // name, elements
  for (auto [index, parameter] : llvm::enumerate(model.names.parameters)) {
    if (!parameter.trainable)
      continue;
    int64_t size = llvm::product_of(parameter.shape);
    all += size;
    ofCut += cut.contains(index) ? size : 0;
    if (cut.contains(index) || parameter.shape.size() < 2)
      continue;
    whole += size;
    left[inAnyLayer(parameter.name)] += size;
  }
  auto most = left.takeVector();
  llvm::stable_sort(most, [](const auto &a, const auto &b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (const auto &entry : most)
    names.push_back(entry.first);
  constexpr int64_t few = 20; // embeddings of positions, a router, a small head
  auto recipes = llvm::map_range(model.plan.recipes, [](const UsedRecipe &recipe) { return recipe.name; });
  if (ofCut > 0 && whole * few > all)
    os << "recipe  " << llvm::join(recipes, ", ") << " cuts " << llvm::format("%.0f", 100 * double(ofCut) / double(all))
       << " % of the parameters; no rule for " << someOf(names) << "\n";
}

void printPaddingLine(const ModelPlan &model, llvm::raw_ostream &os) {
  PlanErrors known;                                                            // the driver has checked the rules
  constexpr int64_t few = 10;                                                  // percent
  llvm::MapVector<std::string, std::string, llvm::StringMap<unsigned>> padded; // name, what is kept
  for (const ResolvedShard &rule : resolveShards(model.plan, model.names, known)) {
    if (rule.kind != ResolvedShard::Parameter)
      continue;
    const NameTable::Parameter &parameter = model.names.parameters[rule.index];
    for (const auto &[dim, axes] : rule.dims) {
      int64_t size = parameter.shape[dim < 0 ? dim + int64_t(parameter.shape.size()) : dim];
      int64_t shards = model.plan.maxShards(*axes), kept = llvm::divideCeil(size, shards) * shards;
      if (size > 0 && (kept - size) * 100 > few * size)
        padded[inAnyLayer(parameter.name)] = llvm::formatv("{0} of dim {1} in {2} shards are kept as {3}, {4} % more",
                                                           size, dim, shards, kept, (kept - size) * 100 / size)
                                                 .str();
    }
  }
  std::vector<std::string> names;
  for (const auto &[name, what] : padded.takeVector())
    names.push_back(name + ": " + what);
  if (!names.empty())
    os << "padding " << someOf(names, "; ") << "\n";
}

/// Where modules of a numbered stack lie, `transformer.h` for transformer.h.2.attn; empty where no number is.
static StringRef stackOf(StringRef module) {
  SmallVector<StringRef, 8> parts = splitName(module);
  for (size_t i = 1; i < parts.size(); ++i)
    if (llvm::all_of(parts[i], llvm::isDigit))
      return module.take_front(parts[i - 1].end() - module.begin());
  return "";
}

/// What the names of modules are shortened by.
struct ModuleNames {
  llvm::StringSet<> containers; ///< modules that hold numbered ones: their name says nothing
  llvm::StringSet<> stacks;     ///< stackOf each module

  /// An encoder's and a decoder's layers are `encoder.layers` and `decoder.layers`, the only ones `layers`.
  StringRef shortStack(StringRef stack) const {
    StringRef last = splitName(stack).back();
    bool alone = llvm::count_if(stacks.keys(), [&](StringRef other) { return splitName(other).back() == last; }) == 1;
    return alone ? last : lastTwo(stack);
  }
};

/// What the stages line calls the module of an op: `h.2` for transformer.h.2.attn, `ln_f` for
/// transformer.ln_f.
static std::string unitOf(StringRef module, const ModuleNames &names) {
  if (StringRef stack = stackOf(module); !stack.empty())
    return (names.shortStack(stack) + "." + splitName(module.drop_front(stack.size() + 1)).front()).str();
  SmallVector<StringRef, 8> parts = splitName(module);
  size_t skip = 0;
  for (std::string prefix = parts.empty() ? "" : parts[0].str();
       skip + 1 < parts.size() && names.containers.contains(prefix); prefix += "." + parts[skip].str())
    ++skip;
  return parts.empty() || names.containers.contains(module) ? "" : parts[skip].str();
}

static ModuleNames findModuleNames(StepOp step) {
  ModuleNames names;
  step.walk([&](Operation *op) {
    std::optional<Provenance> from = getProvenance(op->getLoc());
    StringRef stack = from ? stackOf(from->module) : "";
    if (stack.empty() || !names.stacks.insert(stack).second)
      return;
    for (size_t dot = stack.find('.'); dot != StringRef::npos; dot = stack.find('.', dot + 1))
      names.containers.insert(stack.take_front(dot));
  });
  return names;
}

/// The units of each stage, in the order in which they begin.
class StageUnits {
public:
  explicit StageUnits(size_t stages) : shown(stages), seen(stages), begins(stages) {}

  /// Of a unit that a cut goes through it is said where the later part begins: `layers.0 from layers.0.blocks.1`.
  void add(int64_t stage, const std::string &unit, StringRef module, StringRef node) {
    if (begins[stage].empty())
      begins[stage] = "from " + node.str();
    if (unit.empty() || !seen[stage].insert(unit).second)
      return;
    bool isCut =
        llvm::any_of(ArrayRef(seen).take_front(stage), [&](const auto &before) { return before.contains(unit); });
    StringRef part = module.drop_front(std::min(module.find(unit), module.size()));
    shown[stage].push_back(isCut && part.size() > unit.size() ? unit + " from " + part.str() : unit);
  }
  /// Of a file without modules, the node that begins the stage.
  std::string of(size_t stage) const { return shown[stage].empty() ? begins[stage] : llvm::join(shown[stage], ", "); }

private:
  std::vector<std::vector<std::string>> shown;
  std::vector<llvm::StringSet<>> seen;
  std::vector<std::string> begins;
};

void printStagesLine(ModuleOp module, llvm::raw_ostream &os) {
  size_t count = llvm::range_size(module.getOps<StageOp>());
  auto steps = module.getOps<StepOp>();
  if (count < 2 || steps.empty())
    return;
  StepOp step = *steps.begin();
  ModuleNames names = findModuleNames(step);
  StageUnits units(count);
  std::vector<double> work(count, 0);
  GradientFlow flow(step);
  step.walk([&](Operation *op) {
    std::optional<int64_t> stage = getStage(op);
    std::optional<Provenance> from = getProvenance(op->getLoc());
    if (!stage || !from)
      return;
    std::string unit = from->path == "train.loss" ? "loss" : unitOf(from->module, names);
    units.add(*stage, unit, from->module, from->path);
    work[*stage] += double(flopsOf(op)) * double(1 + flow.backward(op));
  });
  double all = 0;
  for (double each : work)
    all += each;
  os << "stages  ";
  for (size_t stage = 0; stage < count; ++stage) {
    os << (stage ? "   " : "") << stage << ": " << units.of(stage) << " ("
       << llvm::format("%.0f", all > 0 ? 100 * work[stage] / all : 0.0) << " %" << (stage ? ")" : " of the work)");
  }
  os << "\n";
}

} // namespace par
