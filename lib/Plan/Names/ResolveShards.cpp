// The rules of shard laid over each other.
#include "par/Plan/Language/ForeignNames.h"
#include "par/Plan/Names/NameTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <functional>
#include <map>

using namespace llvm;

namespace par {
namespace {

class ShardResolver {
public:
  ShardResolver(const Plan &plan, const NameTable &names, PlanErrors &errors)
      : plan(plan), names(names), errors(errors), trained(resolveTrained(plan, names, unsaid)) {}

  std::vector<ResolvedShard> run() {
    for (const PlanShard &rule : plan.shard)
      applyRule(rule);
    for (const UsedRecipe &recipe : plan.recipes)
      if (!llvm::is_contained(metRecipes, recipe.name))
        errors.error(recipe.use, PlanMessage::recipeMatchesNothing, recipe.name);
    for (ResolvedShard &shard : resolved)
      check(shard);
    for (const Mistake &mistake : mistakes)
      mistake.say(mistake.more ? formatv("{0} (and {1} more)", mistake.name, mistake.more).str() : mistake.name);
    return std::move(resolved);
  }

private:
  /// An error in a rule, with the first name that has it and the number of others: a model has many layers.
  struct Mistake {
    std::string rule, name;
    std::function<void(StringRef)> say;
    int64_t more = 0;
  };

  void found(const Origin &where, PlanMessage message, int64_t dim, const ResolvedShard &shard,
             std::function<void(StringRef)> say) {
    std::string rule = formatv("{0} {1} {2}", where.place(), static_cast<int>(message), dim);
    auto known = llvm::find_if(mistakes, [&](const Mistake &mistake) { return mistake.rule == rule; });
    if (known == mistakes.end())
      mistakes.push_back({rule, nameOf(shard), std::move(say)});
    else
      ++known->more;
  }

  void applyRule(const PlanShard &rule) {
    PatternMatches matches = resolvePattern(rule.name, names, errors);
    if (!matches.empty())
      metRecipes.push_back(StringRef(rule.name.origin.file)
                               .drop_back(StringRef(rule.name.origin.file).ends_with(".yaml") ? 5 : 0)
                               .str());
    NamePattern::Form form = rule.name.pattern.form();
    unsigned input = rule.name.pattern.inputIndex();
    bool in = form == NamePattern::In;
    ResolvedShard::Kind parameter = form == NamePattern::Grad    ? ResolvedShard::Gradient
                                    : form == NamePattern::State ? ResolvedShard::State
                                                                 : ResolvedShard::Parameter;
    if (parameter != ResolvedShard::Parameter)
      checkTrained(rule, matches);
    checkOptions(rule, parameter, matches);
    for (unsigned index : matches.parameters)
      if (parameter == ResolvedShard::Parameter || trained[index])
        apply(rule, parameter, index, 0);
    for (unsigned index : matches.modules)
      apply(rule, in ? ResolvedShard::ModuleInput : ResolvedShard::ModuleOutput, index, in ? input : 0);
    for (unsigned index : matches.nodes)
      apply(rule, in ? ResolvedShard::NodeInput : ResolvedShard::NodeOutput, index, in ? input : 0);
    for (unsigned index : matches.inputs)
      apply(rule, ResolvedShard::GraphInput, index, 0);
    for (unsigned index : matches.outputs)
      apply(rule, ResolvedShard::GraphOutput, index, 0);
  }

  /// A rule on gradients or states means at least one parameter that has them.
  void checkTrained(const PlanShard &rule, const PatternMatches &matches) {
    auto isTrained = [&](unsigned index) { return trained[index]; };
    if (matches.empty() || llvm::any_of(matches.parameters, isTrained))
      return;
    errors.error(rule.name.origin, PlanMessage::wrongValue, rule.name.pattern.text(), "parameters that are trained",
                 plan.train ? names.parameters[matches.parameters.front()].name : "no \"train\" in the plan");
  }

  /// Inputs, outputs and stored values are no partial sums, and gradients come after all priorities.
  void checkOptions(const PlanShard &rule, ResolvedShard::Kind parameter, const PatternMatches &matches) {
    StringRef what = !matches.parameters.empty() && parameter != ResolvedShard::Gradient ? "stored"
                     : !matches.inputs.empty()                                           ? "fed"
                     : !matches.outputs.empty()                                          ? "returned"
                                                                                         : "";
    if (rule.partial && !(*rule.partial)->empty() && !what.empty())
      errors.error(rule.partial->origin, PlanMessage::partialOf, rule.name.pattern.text(), what);
    if (rule.priority && parameter == ResolvedShard::Gradient)
      errors.error(rule.priority->origin, PlanMessage::gradientPriority, rule.name.pattern.text());
  }

  void apply(const PlanShard &rule, ResolvedShard::Kind kind, unsigned index, unsigned input) {
    auto [place, fresh] = places.try_emplace({kind, index, input}, resolved.size());
    if (fresh) {
      ResolvedShard shard;
      shard.kind = kind;
      shard.index = index;
      shard.input = input;
      resolved.push_back(std::move(shard));
    }
    ResolvedShard &shard = resolved[place->second];
    shard.origin = rule.name.origin;
    if (rule.replicated) {
      shard.dims.clear();
      shard.closed = {true, rule.name.origin};
    }
    for (size_t i = 0; i < rule.dims.size(); ++i)
      if (!isSaidTwice(rule, i, shard))
        setDim(shard, rule.dims[i].first, rule.dims[i].second, namesTransposed(rule.name.pattern, shard));
    if (rule.closed)
      shard.closed = *rule.closed;
    if (rule.blocks)
      shard.blocks = *rule.blocks;
    if (rule.priority)
      shard.priority = *rule.priority;
    if (rule.partial)
      shard.partial = *rule.partial;
  }

  /// The shape if its sizes are known, that is for parameters and their gradients and states.
  const std::vector<int64_t> *shapeOf(const ResolvedShard &shard) {
    bool known = shard.kind == ResolvedShard::Parameter || shard.kind == ResolvedShard::Gradient ||
                 shard.kind == ResolvedShard::State;
    return known ? &names.parameters[shard.index].shape : nullptr;
  }

  /// Whether an earlier entry of the rule names its i-th dim, counted from the other end. Later rules override this
  /// one; two entries for one dim are an error.
  bool isSaidTwice(const PlanShard &rule, size_t i, const ResolvedShard &shard) {
    const std::vector<int64_t> *shape = shapeOf(shard);
    auto fromFront = [&](int64_t dim) { return dim < 0 && shape ? dim + int64_t(shape->size()) : dim; };
    auto [dim, axes] = rule.dims[i];
    for (size_t j = 0; j < i; ++j)
      if (int64_t other = rule.dims[j].first; fromFront(other) == fromFront(dim)) {
        found(axes.origin, PlanMessage::wrongValue, dim, shard, [this, axes = axes, dim = dim, other](StringRef name) {
          errors.error(axes.origin, PlanMessage::wrongValue, name, "all axes of a dim in one list",
                       formatv("{0} and {1}, which are one dim", other, dim).str());
        });
        return true;
      }
    return false;
  }

  /// The rule calls a matrix by PyTorch's name, of which the model holds the transpose.
  bool namesTransposed(const NamePattern &pattern, const ResolvedShard &shard) {
    if (!shapeOf(shard))
      return false;
    const NameTable::Parameter &parameter = names.parameters[shard.index];
    auto matches = [&](const std::string &name) { return pattern.matchesName(name); };
    return llvm::any_of(parameter.transposed, matches) && !matches(parameter.name) &&
           llvm::none_of(parameter.aliases, matches);
  }

  void setDim(ResolvedShard &shard, int64_t dim, const WithOrigin<PlanAxes> &axes, bool transposed) {
    if (const std::vector<int64_t> *shape = shapeOf(shard)) {
      int64_t rank = shape->size();
      if (dim < -rank || dim >= rank) {
        found(axes.origin, PlanMessage::noSuchDim, dim, shard, [this, axes, rank, dim](StringRef name) {
          errors.error(axes.origin, PlanMessage::noSuchDim, name, rank, dim);
        });
        return;
      }
      dim = dim < 0 ? dim + rank : dim;
      dim = transposed ? 1 - dim : dim;
    }
    for (auto &[old, oldAxes] : shard.dims)
      if (old == dim) {
        oldAxes = axes;
        return;
      }
    shard.dims.push_back({dim, axes});
  }

  void check(const ResolvedShard &shard) {
    for (size_t i = 0; i < shard.dims.size(); ++i) {
      const auto &[dim, axes] = shard.dims[i];
      for (size_t j = 0; j < i; ++j)
        for (const std::string &axis : *axes)
          if (llvm::is_contained(*shard.dims[j].second, axis))
            found(axes.origin, PlanMessage::axisTwoDims, dim, shard,
                  [this, axes, axis, other = shard.dims[j].first, dim](StringRef name) {
                    errors.error(axes.origin, PlanMessage::axisTwoDims, axis, other, dim, name);
                  });
      for (const std::string &axis : shard.partial ? **shard.partial : PlanAxes())
        if (llvm::is_contained(*axes, axis))
          found(shard.partial->origin, PlanMessage::axisPartial, dim, shard,
                [this, where = shard.partial->origin, axis, dim](StringRef name) {
                  errors.error(where, PlanMessage::axisPartial, axis, dim, name);
                });
      const std::vector<int64_t> *shape = shapeOf(shard);
      if (shape && (*shape)[dim] < plan.maxShards(*axes))
        found(axes.origin, PlanMessage::dimSmaller, dim, shard,
              [this, axes, dim, size = (*shape)[dim]](StringRef name) {
                errors.error(axes.origin, PlanMessage::dimSmaller, dim, name, size,
                             formatv("{0} (axis \"{1}\")", plan.maxShards(*axes), llvm::join(*axes, "\" x \"")).str());
              });
    }
  }

  std::string nameOf(const ResolvedShard &shard) {
    switch (shard.kind) {
    case ResolvedShard::Parameter:
    case ResolvedShard::Gradient:
    case ResolvedShard::State:
      return names.parameters[shard.index].name;
    case ResolvedShard::ModuleOutput:
    case ResolvedShard::ModuleInput:
      return names.modules[shard.index];
    case ResolvedShard::NodeOutput:
    case ResolvedShard::NodeInput:
      return names.nodes[shard.index].name;
    case ResolvedShard::GraphInput:
      return names.inputs[shard.index].name;
    case ResolvedShard::GraphOutput:
      return names.outputs[shard.index].name;
    }
    return "";
  }

  const Plan &plan;
  const NameTable &names;
  PlanErrors &errors;
  PlanErrors unsaid; // errors of train.freeze and train.only are reported elsewhere
  std::vector<bool> trained;
  std::vector<ResolvedShard> resolved;
  std::vector<Mistake> mistakes;
  std::map<std::tuple<ResolvedShard::Kind, unsigned, unsigned>, size_t> places;
  std::vector<std::string> metRecipes;
};

/// "rank 3", "ranks 1 and 3", "ranks 1, 3, 5 and 4 more".
std::string rankList(ArrayRef<int64_t> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  size_t shown = ranks.size() > 4 ? 3 : ranks.size();
  for (size_t i = 0; i < shown; ++i) {
    bool last = i + 1 == ranks.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + std::to_string(ranks[i]);
  }
  if (shown < ranks.size())
    text += formatv(" and {0} more", ranks.size() - shown).str();
  return text;
}

} // namespace

std::vector<ResolvedShard> resolveShards(const Plan &plan, const NameTable &names, PlanErrors &errors) {
  return ShardResolver(plan, names, errors).run();
}

/// Whether a recipe has a rule for a parameter of the model.
static bool recipeMeets(StringRef recipe, const NameTable &names) {
  PlanErrors none; // the shipped recipes are right
  PlanLayers layers(none);
  layers.addText(*recipeText(recipe), recipe);
  const PlanNode *rules = layers.tree().at("shard");
  return rules && llvm::any_of(rules->entries, [&](const PlanEntry &rule) {
           std::string why;
           std::optional<NamePattern> pattern = NamePattern::parse(rule.key, why);
           return pattern && !matchPattern(*pattern, names).parameters.empty();
         });
}

void checkAxesUsed(const Plan &plan, ArrayRef<ResolvedShard> shards, const NameTable &names, PlanErrors &errors) {
  // A recipe without matches has been reported; that its axis (tp in all of them) then shards nothing is no second
  // error.
  auto unmet = [&] {
    return llvm::any_of(plan.recipes, [&](const UsedRecipe &recipe) { return !recipeMeets(recipe.name, names); });
  };
  auto used = [&](const std::string &axis) {
    if (axis == *plan.pipeline.over || llvm::is_contained(*plan.batch.over, axis))
      return true;
    return llvm::any_of(shards, [&](const ResolvedShard &shard) {
      return llvm::any_of(shard.dims, [&](const auto &dim) { return llvm::is_contained(*dim.second, axis); });
    });
  };
  auto check = [&](const PlanMesh &mesh, int64_t begin, int64_t ranks) {
    int64_t inner = ranks; // ranks that share one coordinate on the axes up to here
    for (const auto &[axis, size] : mesh) {
      int64_t outer = inner;
      inner /= std::max<int64_t>(1, *size);
      if (*size <= 1 || used(axis) || (axis == "tp" && unmet()))
        continue;
      std::vector<int64_t> first, repeated;
      for (int64_t rank = 0; rank < ranks; ++rank)
        (rank % outer / inner == 0 ? first : repeated).push_back(begin + rank);
      bool megatron = llvm::any_of(plan.recipes, [](const UsedRecipe &recipe) { return recipe.name == "megatron"; });
      bool tensor = axis == "tp" && !megatron && recipeMeets("megatron", names);
      errors.error(size.origin, PlanMessage::axisShardsNothing, axis, *size, rankList(repeated), rankList(first),
                   tensor ? " or use [megatron]" : foreignAxisHint(axis));
    }
  };
  check(plan.mesh, 0, *plan.ranks);
  int64_t begin = 0;
  for (const PlanMesh &mesh : *plan.pipeline.meshes) {
    check(mesh, begin, ranksOf(mesh));
    begin += ranksOf(mesh);
  }
}

} // namespace par
