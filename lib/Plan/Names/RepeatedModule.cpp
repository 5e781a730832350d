// The module that a model is a stack of.
#include "par/Plan/Language/ForeignNames.h"
#include "par/Plan/Names/NameTable.h"
#include <map>
#include <set>

using namespace llvm;

namespace par {

static bool isNumeric(StringRef text) { return !text.empty() && llvm::all_of(text, isDigit); }

std::string repeatedModule(const NameTable &names) {
  struct Stack {
    std::set<StringRef> numbers;
    int64_t elements = 0;
  };
  std::map<StringRef, Stack> stacks; // by the last segment before the number
  for (const NameTable::Parameter &parameter : names.parameters) {
    int64_t elements = 1;
    for (int64_t size : parameter.shape)
      elements *= size;
    SmallVector<StringRef> path;
    StringRef(parameter.name).split(path, '.');
    // The outermost number: experts within a layer are a part of it.
    for (size_t i = 1; i + 1 < path.size(); ++i)
      if (isNumeric(path[i]) && !isNumeric(path[i - 1])) {
        Stack &stack = stacks[path[i - 1]];
        stack.numbers.insert(path[i]);
        stack.elements += elements;
        break;
      }
  }
  std::string found;
  int64_t most = 0;
  for (const auto &[name, stack] : stacks)
    if (stack.numbers.size() > 1 && stack.elements > most) {
      found = (name + ".*").str();
      most = stack.elements;
    }
  return found;
}

std::string nameRepeated(StringRef message, const NameTable &names) {
  std::string module = repeatedModule(names), text = message.str();
  constexpr StringLiteral open = "{each: P}";
  if (size_t at = text.find(open.data()); at != std::string::npos && !module.empty())
    text.replace(at, open.size(), "{each: " + module + "}");
  return text;
}

} // namespace par
