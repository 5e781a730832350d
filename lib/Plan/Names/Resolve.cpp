// The names of a model that the patterns of a plan match.
#include "par/Plan/Language/ForeignNames.h"
#include "par/Plan/Language/Schema.h"
#include "par/Plan/Names/NameTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace par {

static bool matchesParameter(const NamePattern &pattern, const NameTable::Parameter &parameter) {
  return parameter.anyName([&](const std::string &name) { return pattern.matchesName(name); });
}

PatternMatches matchPattern(const NamePattern &pattern, const NameTable &names) {
  PatternMatches matches;
  NamePattern::Form form = pattern.form();
  bool ofParameters = form == NamePattern::Name || form == NamePattern::Grad || form == NamePattern::State;
  bool ofValues = form == NamePattern::Name || form == NamePattern::Out || form == NamePattern::In;
  auto collect = [](auto &list, std::vector<unsigned> &into, auto matches) {
    for (unsigned i = 0; i < list.size(); ++i)
      if (matches(list[i]))
        into.push_back(i);
  };
  if (ofParameters)
    collect(names.parameters, matches.parameters,
            [&](const NameTable::Parameter &parameter) { return matchesParameter(pattern, parameter); });
  if (form == NamePattern::Op)
    collect(names.nodes, matches.nodes,
            [&](const NameTable::Node &node) { return pattern.matchesNode(node.opType, node.module); });
  if (!ofValues)
    return matches;
  auto byName = [&](const auto &named) { return pattern.matchesName(named.name); };
  collect(names.modules, matches.modules, [&](const std::string &module) { return pattern.matchesName(module); });
  collect(names.nodes, matches.nodes, byName);
  collect(names.inputs, matches.inputs, byName);
  collect(names.outputs, matches.outputs, byName);
  return matches;
}

/// The edit distance of a name's last segments and a pattern, where a segment left out counts as one letter; nothing if
/// a segment is another word. A wildcard matches anything.
static std::optional<unsigned> distanceOf(StringRef name, StringRef pattern) {
  SmallVector<StringRef, 8> parts = splitName(name), wanted = splitName(pattern);
  if (parts.size() > wanted.size() || pattern.contains("**"))
    return std::nullopt;
  unsigned sum = wanted.size() - parts.size();
  for (auto [part, want] : llvm::zip(llvm::reverse(parts), llvm::reverse(wanted))) {
    unsigned distance = want.find_first_of("*{[?") != StringRef::npos ? 0 : lettersApart(want, part);
    bool isOther = distance > std::max<size_t>(2, want.size() / 3 + 1) || distance == want.size();
    if (isOther && !part.contains(want))
      return std::nullopt;
    sum += distance;
  }
  return sum;
}

/// The last segments of a name that are nearest to the pattern, and what has them ("12 parameters").
static std::string nearestName(const NamePattern &pattern, const NameTable &names, std::string &who) {
  if (pattern.segmentCount() == 0) // op(T) names no place
    return "";
  struct Count {
    unsigned parameters = 0, buffers = 0, modules = 0, others = 0;
  };
  StringMap<Count> suffixes;
  auto add = [&](StringRef name, unsigned Count::*counter) {
    SmallVector<StringRef, 8> parts = splitName(name);
    for (size_t keep = std::min<size_t>(2, pattern.segmentCount());
         keep <= std::min(parts.size(), pattern.segmentCount()); ++keep) {
      StringRef suffix(parts[parts.size() - keep].data(), name.end() - parts[parts.size() - keep].data());
      ++(suffixes[suffix].*counter);
    }
  };
  for (const NameTable::Parameter &parameter : names.parameters)
    add(parameter.name, parameter.trainable ? &Count::parameters : &Count::buffers);
  for (const std::string &module : names.modules)
    add(module, &Count::modules);
  for (const auto *list : {&names.inputs, &names.outputs})
    for (const NameTable::Value &value : *list)
      add(value.name, &Count::others);
  StringRef wanted = StringRef(pattern.nameText()).ltrim('^');
  unsigned best = std::numeric_limits<unsigned>::max();
  std::string nearest;
  for (const auto &entry : suffixes) {
    std::optional<unsigned> distance = distanceOf(entry.getKey(), wanted);
    if (entry.getKey().starts_with(wanted)) // its end was left out
      distance = 1;
    if (!distance || *distance > best || (*distance == best && !nearest.empty() && entry.getKey().str() >= nearest))
      continue;
    best = *distance;
    nearest = entry.getKey().str();
    auto counted = [](unsigned count, StringRef what) {
      return formatv("{0} {1}{2}", count, what, count == 1 ? "" : "s").str();
    };
    const Count &count = entry.getValue();
    who = count.parameters ? counted(count.parameters, "parameter")
          : count.buffers  ? counted(count.buffers, "buffer")
          : count.modules  ? counted(count.modules, "module")
                           : counted(count.others, "value");
  }
  return nearest;
}

static void reportNothing(const PatternWithOrigin &pattern, const NameTable &names, PlanErrors &errors) {
  StringRef text = pattern.pattern.text();
  errors.error(pattern.origin, PlanMessage::matchesNothing, text);
  std::string who, nearest = nearestName(pattern.pattern, names, who);
  if (nearest.empty())
    errors.note(PlanMessage::noNearName, text);
  else
    errors.note(PlanMessage::nearestName, nearest, who, text);
}

/// Each of the alternatives of "{wq,wk}.weight" matches something beside the others, or it is misspelt.
static void checkAlternatives(const PatternWithOrigin &said, const NameTable &names, PlanErrors &errors) {
  StringRef text = said.pattern.text();
  for (size_t begin = text.find('{'); begin != StringRef::npos; begin = text.find('{', begin + 1)) {
    size_t end = text.find('}', begin);
    SmallVector<StringRef, 8> alternatives;
    text.slice(begin + 1, end).split(alternatives, ',');
    for (StringRef alternative : alternatives) {
      std::string why, alone = (text.take_front(begin) + alternative + text.drop_front(end + 1)).str();
      std::optional<NamePattern> pattern = NamePattern::parse(alone, why);
      if (!pattern || !matchPattern(*pattern, names).empty())
        continue;
      errors.error(said.origin, PlanMessage::alternativeMatchesNothing, alternative, text);
      std::string who, nearest = nearestName(*pattern, names, who);
      if (!nearest.empty())
        errors.note(PlanMessage::nearestName, nearest, who, alone);
    }
  }
}

PatternMatches resolvePattern(const PatternWithOrigin &pattern, const NameTable &names, PlanErrors &errors) {
  PatternMatches matches = matchPattern(pattern.pattern, names);
  if (pattern.pattern.optional())
    return matches;
  if (matches.empty())
    reportNothing(pattern, names, errors);
  else
    checkAlternatives(pattern, names, errors);
  return matches;
}

/// A pattern that must mean modules or nodes, or only modules.
static void resolveOps(const PatternWithOrigin &said, bool onlyModules, const NameTable &names, PlanErrors &errors) {
  if (said.pattern.optional())
    return;
  PatternMatches matches = matchPattern(said.pattern, names);
  if (matches.modules.empty() && (onlyModules || matches.nodes.empty()))
    reportNothing(said, names, errors);
  else
    checkAlternatives(said, names, errors);
}

/// A tied parameter is in every module that contains it, under that module's name.
static bool isIn(const NameTable::Parameter &parameter, const std::string &module) {
  auto inside = [&](StringRef name) { return name.starts_with(module + "."); };
  return parameter.anyName(inside);
}

std::vector<unsigned> resolveParameters(const PatternWithOrigin &pattern, const NameTable &names, PlanErrors &errors) {
  PatternMatches matches = matchPattern(pattern.pattern, names);
  std::vector<unsigned> parameters = std::move(matches.parameters);
  // A module stands for the parameters in it.
  if (parameters.empty())
    for (unsigned i = 0; i < names.parameters.size(); ++i)
      if (llvm::any_of(matches.modules,
                       [&](unsigned module) { return isIn(names.parameters[i], names.modules[module]); }))
        parameters.push_back(i);
  if (pattern.pattern.optional())
    return parameters;
  if (parameters.empty())
    reportNothing(pattern, names, errors);
  else
    checkAlternatives(pattern, names, errors);
  return parameters;
}

std::vector<bool> resolveTrained(const Plan &plan, const NameTable &names, PlanErrors &errors) {
  std::vector<bool> trained(names.parameters.size(), false);
  if (!plan.train)
    return trained;
  for (unsigned i = 0; i < trained.size(); ++i)
    trained[i] = names.parameters[i].trainable && !names.parameters[i].frozen;
  if (plan.train->only) {
    trained.assign(trained.size(), false);
    for (const PatternWithOrigin &pattern : *plan.train->only)
      for (unsigned index : resolveParameters(pattern, names, errors))
        trained[index] = true;
  }
  for (const PatternWithOrigin &pattern : plan.train->freeze)
    for (unsigned index : resolveParameters(pattern, names, errors))
      trained[index] = false;
  return trained;
}

/// `dims` and `batch.dim` may only name symbols of the model.
static void checkSymbols(const Plan &plan, const NameTable &names, PlanErrors &errors) {
  for (const auto &[symbol, size] : plan.dims)
    if (size.given() && !llvm::is_contained(names.symbols, symbol))
      errors.error(size.origin, PlanMessage::unknownDim, symbol,
                   names.symbols.empty() ? "none" : llvm::join(names.symbols, ", "));
  int64_t number = 0;
  StringRef dim = *plan.batch.dim;
  if (!dim.empty() && dim.getAsInteger(10, number) && !llvm::is_contained(names.symbols, dim))
    errors.error(plan.batch.dim.origin, PlanMessage::unknownDim, dim,
                 names.symbols.empty() ? "none" : llvm::join(names.symbols, ", "));
}

/// `prefill` is a second entry of a bundle that predicts, of as many samples.
static void checkPrefill(const Plan &plan, const NameTable &names, PlanErrors &errors) {
  if (!plan.prefill.empty() && plan.train)
    errors.error(plan.prefill.front().second.origin, PlanMessage::prefillInTraining);
  for (const auto &[symbol, size] : plan.prefill)
    if (!llvm::is_contained(names.symbols, symbol))
      errors.error(size.origin, PlanMessage::unknownDim, symbol,
                   names.symbols.empty() ? "none" : llvm::join(names.symbols, ", "));
    else if (std::optional<InputDim> batch = findBatchDim(plan, names);
             batch && batch->dim >= 0 && names.inputs[batch->input].shape[batch->dim] == symbol)
      errors.error(size.origin, PlanMessage::prefillBatch, symbol);
}

/// A loss that is not attached is one of the graph's outputs; which of these are scalar floats only Import knows.
static void checkLoss(const PlanLoss &loss, const NameTable &names, PlanErrors &errors) {
  StringRef output = *loss.output;
  if (!loss.kind->empty() || output.empty())
    return;
  SmallVector<StringRef> known = planWords("train.loss");
  std::string kinds;
  for (StringRef word : known)
    kinds += (kinds.empty() ? "" : word == known.back() ? " or " : ", ") + word.str();
  for (const NameTable::Value &output : names.outputs)
    known.push_back(output.name);
  if (llvm::is_contained(known, output))
    return;
  const ForeignWord *foreign = findForeignWord("train.loss", output);
  std::string lower = output.lower();
  StringRef near = foreign                            ? foreign->ours
                   : llvm::is_contained(known, lower) ? StringRef(lower)
                                                      : nearestWord(output, known);
  errors.error(loss.output.origin, PlanMessage::unknownLoss, output, kinds,
               near.empty() ? "" : ("; did you mean \"" + near + "\"?").str());
}

void checkPlanNames(const Plan &plan, const NameTable &names, PlanErrors &errors) {
  checkSymbols(plan, names, errors);
  checkPrefill(plan, names, errors);
  for (const PlanInput &input : plan.inputs)
    if (matchPattern(input.name.pattern, names).inputs.empty() && !input.name.pattern.optional())
      reportNothing(input.name, names, errors);
  resolveCarries(plan, names, errors);
  resolveTrained(plan, names, errors);
  if (plan.train) {
    checkLoss(plan.train->loss, names, errors);
    for (const PlanInit &init : plan.train->init)
      resolveParameters(init.name, names, errors);
    for (const PlanGroup &group : plan.train->groups)
      resolveParameters(group.name, names, errors);
  }
  for (const PatternWithOrigin &name : plan.offload.patterns)
    resolveParameters(name, names, errors);
  for (const PatternWithOrigin &start : plan.pipeline.starts)
    resolvePattern(start, names, errors);
  if (plan.pipeline.repeat)
    resolvePattern(*plan.pipeline.repeat, names, errors);
  for (const PatternWithOrigin &pattern : plan.recompute.patterns)
    resolveOps(pattern, *plan.recompute.kind == PlanRecompute::Each, names, errors);
  checkAxesUsed(plan, resolveShards(plan, names, errors), names, errors);
}

} // namespace par
