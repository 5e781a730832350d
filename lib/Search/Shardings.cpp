// Imports the model, chooses the classes of dims that the axis shards for each degree, and writes them as rules over
// names: one for all layers, of which a number in the name is a "*".
#include "Shardings.h"
#include "ShardGraph.h"

#include "par/Compiler/Compiler.h"
#include "par/Phases/Import/Names.h"
#include "par/Search/Layers.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace llvm;

namespace par {

namespace {

/// The model, imported with two of its equal layers if that says all of the others, and what each op counts then.
class ImportedModel {
public:
  ImportedModel(const std::shared_ptr<const Model> &model, const PlanText &single, bool thin)
      : whole(model), model(model) {
    if (thin && (stack = LayerStack::find(model->graph)) && stack->size() > 2) {
      onnx::Model graph = stack->keep(model->graph, 2);
      NameTable names = collectNames(graph);
      this->model = std::make_shared<const Model>(Model{std::move(graph), std::move(names)});
    }
    std::optional<PlannedModel> planned = planModel(this->model, single, {}, [](const CompileDiagnostic &) {});
    if (!planned)
      return;
    CompileObserver silent;
    CompilerOptions options;
    options.until = "import";
    compiled.emplace(compile(std::move(*planned), options, silent));
  }

  /// Null where the model cannot be imported.
  StepOp step() {
    if (!compiled || compiled->failed)
      return {};
    auto steps = compiled->module->getOps<StepOp>();
    return steps.empty() ? StepOp() : *steps.begin();
  }
  /// Twice as often as the model has it.
  int64_t repeats(StringRef module) const {
    if (!isThin() || !module.consume_front(stack->module() + "."))
      return 2;
    return !module.empty() && isDigit(module.front()) ? stack->size() : 2;
  }
  bool isThin() const { return model != whole; }
  const NameTable &wholeNames() const { return whole->names; }
  const NameTable &names() const { return model->names; }

private:
  std::shared_ptr<const Model> whole, model;
  std::optional<LayerStack> stack;
  std::optional<Compiled> compiled;
};

/// Writes the rules of one choice.
class RuleWriter {
public:
  RuleWriter(const ShardGraph &graph, const ShardChoice &choice, const ImportedModel &imported)
      : graph(graph), choice(choice), imported(imported) {}

  /// Nothing where layers that the import left out need rules of their own.
  std::optional<std::vector<std::string>> parameters() const;
  std::vector<std::string> sequences() const;

private:
  bool meansAll(const std::string &general, const std::set<ParameterDim> &dims) const;

  const ShardGraph &graph;
  const ShardChoice &choice;
  const ImportedModel &imported;
};

} // namespace

static std::string ruleOf(const std::string &pattern, int64_t dim) {
  return "\"" + pattern + "\": {" + std::to_string(dim) + ": tp}";
}

/// Whether a pattern with "*" for the numbers means these parameters, with one dim, and those of layers that the import
/// left out, and no others.
bool RuleWriter::meansAll(const std::string &general, const std::set<ParameterDim> &dims) const {
  std::string why;
  std::optional<NamePattern> pattern = NamePattern::parse("^" + general, why);
  if (!pattern)
    return false;
  const NameTable &names = imported.names(), &all = imported.wholeNames();
  return all_of(dims, [&](const ParameterDim &dim) { return dim.dim == dims.begin()->dim; }) &&
         all_of(matchPattern(*pattern, names).parameters,
                [&](unsigned index) { return dims.count({names.parameters[index].name, dims.begin()->dim}); }) &&
         all_of(matchPattern(*pattern, all).parameters,
                [&](unsigned index) { return generalName(all.parameters[index].name) == general; });
}

std::optional<std::vector<std::string>> RuleWriter::parameters() const {
  std::map<std::string, std::set<ParameterDim>> groups; // by the name without numbers
  for (auto [dims, sharded] : zip(graph.classes, choice.sharded))
    if (sharded)
      for (const ParameterDim &dim : dims)
        groups[generalName(dim.parameter)].insert(dim);
  std::vector<std::string> rules;
  for (const auto &[general, dims] : groups) {
    if (meansAll(general, dims)) {
      rules.push_back(ruleOf("^" + general, dims.begin()->dim));
      continue;
    }
    if (imported.isThin())
      return std::nullopt;
    for (const ParameterDim &dim : dims) // profiles of a few layers lack some
      rules.push_back(ruleOf("^" + dim.parameter + "?", dim.dim));
  }
  return rules;
}

std::vector<std::string> RuleWriter::sequences() const {
  std::set<std::string> rules;
  for (const ColumnInput &input : graph.inputs) {
    auto [module, node] = StringRef(input.node).split('/');
    if (any_of(input.members, [&](size_t member) { return choice.sharded[member]; }))
      rules.insert(ruleOf("out(^" + generalName(module) + (node.empty() ? "" : "/" + node.str()) + ")", input.dim));
  }
  return {rules.begin(), rules.end()};
}

static std::string settingOf(ArrayRef<std::string> rules) { return "shard={" + join(rules, ", ") + "}"; }

/// The choice that saves most, and of those that shard nothing the next one: a rank's memory may want it.
static ShardChoice chooseSome(ShardProblem problem) {
  ShardChoice choice = chooseShards(problem);
  if (is_contained(choice.sharded, true) || problem.classes == 0)
    return choice;
  constexpr int64_t prize = int64_t(1) << 50; // ns: more than any step
  ShardProblem::Effect any;
  for (size_t index = 0; index < problem.classes; ++index)
    any.members.push_back(index);
  any.ns = prize;
  problem.effects.push_back(any);
  return chooseShards(problem);
}

/// The choice that divides most: time that messages take beside their bytes does not count, and their bytes count less
/// and less until something is sharded.
static ShardChoice chooseLean(ShardProblem problem) {
  constexpr int64_t step = 8;
  for (int times = 0; times < 5; ++times) {
    ShardChoice choice = chooseShards(problem);
    if (is_contained(choice.sharded, true))
      return choice;
    for (ShardProblem::Effect &effect : problem.effects)
      effect.ns = effect.ns < 0 ? effect.ns / step : effect.ns;
  }
  return chooseSome(std::move(problem));
}

namespace {

/// Finds the rules of one degree.
class DegreeFinder {
public:
  DegreeFinder(ImportedModel &imported, ShardSetting setting) : imported(imported), setting(setting) {}

  /// Nothing where the import lacks layers that are sharded otherwise.
  std::optional<std::vector<Sharding>> find();

private:
  bool add(const ShardGraph &graph, const ShardChoice &choice, bool lean);

  ImportedModel &imported;
  ShardSetting setting;
  std::vector<Sharding> found;
};

} // namespace

/// False where the import lacks layers.
bool DegreeFinder::add(const ShardGraph &graph, const ShardChoice &choice, bool lean) {
  RuleWriter writer(graph, choice, imported);
  std::optional<std::vector<std::string>> rules = writer.parameters();
  if (!rules || rules->empty())
    return rules.has_value();
  std::vector<std::string> sequences = writer.sequences();
  found.push_back({settingOf(*rules), false, lean});
  if (sequences.empty())
    return true;
  rules->insert(rules->end(), sequences.begin(), sequences.end());
  found.push_back({settingOf(*rules), true, lean});
  return true;
}

std::optional<std::vector<Sharding>> DegreeFinder::find() {
  ShardGraph graph = buildShardGraph(imported.step(), setting);
  ShardChoice fast = chooseSome(graph.problem);
  if (!add(graph, fast, /*lean=*/false))
    return std::nullopt;
  setting.latencies = false;
  ShardGraph free = buildShardGraph(imported.step(), setting);
  ShardChoice lean = chooseLean(free.problem);
  if (lean.sharded != fast.sharded && !add(free, lean, /*lean=*/true))
    return std::nullopt;
  return std::move(found);
}

/// As `findShardings`; nothing where `imported` lacks layers that are sharded otherwise.
static std::optional<std::map<int64_t, std::vector<Sharding>>> findIn(ImportedModel &imported, const Hardware &hardware,
                                                                      const Space &space) {
  if (!imported.step() && imported.isThin()) // the plan may name a layer that it lacks
    return std::nullopt;
  constexpr int64_t samples = 4; // of a microbatch, if the batch has so many
  std::map<int64_t, std::vector<Sharding>> found;
  CostTable costs(hardware);
  auto repeats = [&](StringRef module) { return imported.repeats(module); };
  for (int64_t degree = 2; imported.step() && degree <= space.ranks; ++degree) {
    if (space.ranks % degree || (space.hostRanks && degree > space.hostRanks))
      continue;
    ShardSetting setting{degree,
                         std::clamp<int64_t>(space.batch * degree / space.ranks, 1, samples),
                         space.batch,
                         space.narrow ? 2 : 4,
                         /*latencies=*/true,
                         space.trains,
                         costs,
                         repeats};
    std::optional<std::vector<Sharding>> rules = DegreeFinder(imported, setting).find();
    if (!rules)
      return std::nullopt;
    if (!rules->empty())
      found[degree] = std::move(*rules);
  }
  return found;
}

std::map<int64_t, std::vector<Sharding>> findShardings(const std::shared_ptr<const Model> &model,
                                                       const PlanText &single, const Hardware &hardware,
                                                       const Space &space) {
  ImportedModel thin(model, single, /*thin=*/true);
  if (auto found = findIn(thin, hardware, space))
    return std::move(*found);
  ImportedModel whole(model, single, /*thin=*/false);
  return *findIn(whole, hardware, space);
}

} // namespace par
