// Figures of a model and its plan: parameters counted by the plan's marks on them, rules resolved against the names.
#include "par/Inspect/Plan.h"
#include "LayerNames.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace par {

/// The last two segments of a name.
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

/// Whether each parameter is trained. Planning has checked the patterns.
static std::vector<bool> trainedOf(const ModelPlan &model) {
  PlanErrors known;
  return resolveTrained(model.plan, model.names, known);
}

ModelFacts describeModel(const ModelPlan &model) {
  ModelFacts facts;
  facts.name = model.names.model;
  facts.nodes = model.names.nodes.size();
  for (auto [parameter, train] : llvm::zip(model.names.parameters, trainedOf(model))) {
    if (!parameter.trainable)
      continue;
    ++facts.parameters;
    facts.frozen += !train;
    facts.unnamed += parameter.renamed && parameter.transposed.empty();
    facts.elements += llvm::product_of(parameter.shape);
    addTies(parameter, facts.ties);
  }
  return facts;
}

ModuleFacts describeModule(const ModelPlan &model) {
  ModuleFacts facts;
  if (!model.plan.train)
    return facts;
  for (auto [parameter, train] : llvm::zip(model.names.parameters, trainedOf(model))) {
    if (parameter.frozen)
      (train ? facts.unfrozen : facts.frozen).push_back(parameter.name);
    if (train && !parameter.gradientNote.empty())
      facts.notes.push_back(parameter.name + " " + parameter.gradientNote);
  }
  return facts;
}

/// The optimizer, and those of groups.
static std::vector<std::string> optimizersOf(const PlanTrain &train) {
  llvm::SetVector<StringRef> kinds;
  kinds.insert(*train.optimizer.kind);
  for (const PlanGroup &group : train.groups)
    if (group.kind)
      kinds.insert(**group.kind);
  return std::vector<std::string>(kinds.begin(), kinds.end());
}

static std::vector<std::string> masterTypesOf(const ModelPlan &model) {
  llvm::SetVector<StringRef> types;
  for (auto [parameter, train] : llvm::zip(model.names.parameters, trainedOf(model)))
    if (train && parameter.hasNarrowType())
      types.insert(parameter.type);
  return std::vector<std::string>(types.begin(), types.end());
}

static AxisSizes axesOf(const PlanMesh &mesh) {
  AxisSizes axes;
  for (const auto &[name, size] : mesh)
    axes.emplace_back(name, *size);
  return axes;
}

/// Sizes of the first input's dims after the batch: what a sample is. A model may have no input, and it may be a
/// number.
static std::vector<std::string> sampleDimsOf(const ModelPlan &model) {
  std::vector<std::string> dims;
  if (model.names.inputs.empty() || model.names.inputs.front().shape.empty())
    return dims;
  for (StringRef dim : llvm::drop_begin(model.names.inputs.front().shape)) {
    auto bound = llvm::find_if(model.plan.dims, [&](const auto &entry) { return entry.first == dim; });
    dims.push_back(bound == model.plan.dims.end() ? dim.str() : std::to_string(*bound->second));
  }
  return dims;
}

PlanFacts describePlan(const ModelPlan &model) {
  const Plan &plan = model.plan;
  PlanFacts facts;
  facts.ranks = *plan.ranks;
  for (const PlanMesh &mesh : *plan.pipeline.meshes)
    facts.meshes.push_back(axesOf(mesh));
  facts.meshEachStage = !facts.meshes.empty();
  if (!facts.meshEachStage)
    facts.meshes.push_back(axesOf(plan.mesh));
  facts.stages = *plan.pipeline.stages;
  facts.schedule = *plan.pipeline.schedule;
  facts.flushEvery = plan.calls();
  facts.microbatches = **plan.batch.microbatches;
  facts.microbatchSize = **plan.batch.microbatchSize;
  facts.sampleDims = sampleDimsOf(model);
  facts.replicas = plan.turns();
  facts.trains = plan.train.has_value();
  if (plan.train)
    facts.optimizers = optimizersOf(*plan.train);
  facts.compute = *plan.precision.compute;
  facts.states = *plan.precision.states;
  facts.accumulate = *plan.precision.accumulate;
  facts.reduce = *plan.precision.reduce;
  facts.masterTypes = masterTypesOf(model);
  facts.batchNorm = *plan.batchNorm;
  facts.seed = *plan.seed;
  return facts;
}

/// Whether a rule cuts along axes of more than one rank.
static bool cuts(const ResolvedShard &rule, const Plan &plan) {
  return llvm::any_of(rule.dims, [&](const auto &dim) { return plan.maxShards(*dim.second) > 1; });
}

/// The rules on parameters. Planning has checked them.
static std::vector<ResolvedShard> parameterRules(const ModelPlan &model) {
  PlanErrors known;
  std::vector<ResolvedShard> rules = resolveShards(model.plan, model.names, known);
  llvm::erase_if(rules, [](const ResolvedShard &rule) { return rule.kind != ResolvedShard::Parameter; });
  return rules;
}

std::optional<RecipeFacts> describeRecipes(const ModelPlan &model) {
  if (model.plan.recipes.empty())
    return std::nullopt;
  llvm::SmallDenseSet<unsigned> cut;
  for (const ResolvedShard &rule : parameterRules(model))
    if (cuts(rule, model.plan))
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
  constexpr int64_t few = 20; // embeddings of positions, a router, a small head
  if (ofCut == 0 || whole * few <= all)
    return std::nullopt;
  auto most = left.takeVector();
  llvm::stable_sort(most, [](const auto &a, const auto &b) { return a.second > b.second; });
  RecipeFacts facts;
  for (const UsedRecipe &recipe : model.plan.recipes)
    facts.recipes.push_back(recipe.name);
  facts.cutPercent = 100 * double(ofCut) / double(all);
  for (const auto &entry : most)
    facts.whole.push_back(entry.first);
  return facts;
}

std::vector<PaddedDim> findPaddedDims(const ModelPlan &model) {
  constexpr int64_t few = 10;                                                // percent
  llvm::MapVector<std::string, PaddedDim, llvm::StringMap<unsigned>> padded; // the last dim of each name
  for (const ResolvedShard &rule : parameterRules(model)) {
    const NameTable::Parameter &parameter = model.names.parameters[rule.index];
    for (const auto &[dim, axes] : rule.dims) {
      int64_t size = parameter.shape[dim < 0 ? dim + int64_t(parameter.shape.size()) : dim];
      int64_t shards = model.plan.maxShards(*axes), kept = llvm::divideCeil(size, shards) * shards;
      std::string name = inAnyLayer(parameter.name);
      if (size > 0 && (kept - size) * 100 > few * size)
        padded[name] = {name, dim, size, shards, kept};
    }
  }
  std::vector<PaddedDim> dims;
  for (auto &[name, dim] : padded.takeVector())
    dims.push_back(std::move(dim));
  return dims;
}

} // namespace par
