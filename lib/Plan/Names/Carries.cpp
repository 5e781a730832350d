// Outputs that become inputs of the next call.
#include "par/Plan/Names/NameTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

#include <map>

using namespace llvm;

namespace par {
namespace {

/// The parts of a name that match a pattern's wildcards and alternatives, in order.
using Captures = std::vector<std::string>;

/// The alternatives of "{...}" as a group; of a range any number, since the name is known to match.
std::string groupOf(StringRef alternatives) {
  if (alternatives.contains(".."))
    return "([0-9]+)";
  SmallVector<StringRef> words;
  alternatives.split(words, ',');
  return "(" + llvm::join(llvm::map_range(words, [](StringRef word) { return Regex::escape(word.trim()); }), "|") + ")";
}

/// A regular expression whose first group is the text before the pattern, and whose other groups are its wildcards.
std::string expressionOf(StringRef pattern) {
  bool anchored = pattern.consume_front("^");
  std::string result = anchored ? "^()" : "^(.*[.])?";
  while (!pattern.empty()) {
    size_t end = pattern.find('}');
    if (pattern.consume_front("**")) {
      result += "(.*)";
    } else if (pattern.consume_front("*")) {
      result += "([^.]*)";
    } else if (pattern.front() == '{' && end != StringRef::npos) {
      result += groupOf(pattern.slice(1, end));
      pattern = pattern.drop_front(end + 1);
    } else {
      result += Regex::escape(pattern.take_front());
      pattern = pattern.drop_front();
    }
  }
  return result + "$";
}

Captures capturesOf(const NamePattern &pattern, StringRef name) {
  SmallVector<StringRef> groups;
  Captures captures;
  if (Regex(expressionOf(pattern.nameText())).match(name, &groups))
    for (StringRef group : ArrayRef(groups).drop_front(2)) // without the whole match and the text before the pattern
      captures.push_back(group.str());
  return captures;
}

std::string namesOf(ArrayRef<NameTable::Value> values) {
  auto names = llvm::map_range(values, [](const NameTable::Value &value) { return StringRef(value.name); });
  return values.empty() ? "none" : llvm::join(names, ", ");
}

/// The pairs of one entry of the map.
std::vector<CarriedPair> pairsOf(const PlanCarry &carry, const NameTable &names, PlanErrors &errors) {
  std::vector<CarriedPair> pairs;
  std::map<Captures, std::string> inputs;
  std::vector<NameTable::Value> among;
  for (unsigned index : matchPattern(carry.input.pattern, names).inputs) {
    among.push_back(names.inputs[index]);
    inputs.emplace(capturesOf(carry.input.pattern, names.inputs[index].name), names.inputs[index].name);
  }
  std::vector<unsigned> outputs = matchPattern(carry.output.pattern, names).outputs;
  if (outputs.empty() && !carry.output.pattern.optional())
    errors.error(carry.output.origin, PlanMessage::carryNoOutput, carry.output.pattern.text(), namesOf(names.outputs));
  for (unsigned index : outputs) {
    const std::string &output = names.outputs[index].name;
    auto input = inputs.find(capturesOf(carry.output.pattern, output));
    if (input != inputs.end())
      pairs.push_back({output, input->second});
    else
      errors.error(carry.input.origin, PlanMessage::carryNoInput, output,
                   among.empty() ? namesOf(names.inputs) : namesOf(among), carry.input.pattern.text());
  }
  return pairs;
}

/// Whether the plan gives an input a value.
bool hasValue(const Plan &plan, const NameTable &names, StringRef input) {
  return llvm::any_of(plan.inputs, [&](const PlanInput &said) {
    return said.value && llvm::any_of(matchPattern(said.name.pattern, names).inputs,
                                      [&](unsigned index) { return names.inputs[index].name == input; });
  });
}

} // namespace

std::vector<CarriedPair> resolveCarries(const Plan &plan, const NameTable &names, PlanErrors &errors) {
  std::vector<CarriedPair> all;
  if (plan.carry.empty())
    return all;
  const Origin &first = plan.carry.front().output.origin;
  if (plan.train)
    errors.error(first, PlanMessage::carryInTraining);
  std::map<std::string, std::string> fed; // input, output
  for (const PlanCarry &carry : plan.carry)
    for (CarriedPair &pair : pairsOf(carry, names, errors)) {
      auto [at, inserted] = fed.emplace(pair.input, pair.output);
      if (!inserted && at->second == pair.output)
        continue;
      if (!inserted)
        errors.error(carry.output.origin, PlanMessage::carryTwice, pair.input, at->second, pair.output);
      else if (hasValue(plan, names, pair.input))
        errors.error(carry.output.origin, PlanMessage::carryValue, pair.input, pair.output);
      else
        all.push_back(std::move(pair));
    }
  return all;
}

} // namespace par
