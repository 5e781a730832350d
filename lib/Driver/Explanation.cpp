#include "Explanation.h"

#include "par/Report/Explain.h"
#include "par/Report/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace par {

static constexpr StringRef words[] = {"collectives", "memory", "cuts", "plan", "recompute"};

std::string Explanation::findName(const Model &model) {
  if (subject.empty() || is_contained(words, subject))
    return "";
  named = findNamed(subject, model);
  if (!named.empty())
    return "";
  std::vector<std::string> near = findNearNames(subject, model.names);
  return "--explain: no parameter, module, node or value of " + model.names.model + " is called \"" + subject.str() +
         "\"; " + (near.empty() ? "--list prints all names" : "near are " + join(near, ", ")) + "; it also takes " +
         join(ArrayRef(words), ", ");
}

void Explanation::print(const Compiled &compiled, const Facts &facts, raw_ostream &out) const {
  if (!named.empty()) {
    std::vector<std::string> others;
    for (const NamedThing &thing : ArrayRef(named).drop_front())
      others.push_back(thing.name);
    explainName(describeNamed(named.front(), compiled, *facts.communications), others, out);
  } else if (subject == "collectives") {
    explainCommunication(*facts.communications, compiled.bundle->programs.size(), out);
  } else if (subject == "plan") {
    explainPlan(facts, out);
  } else if (subject == "cuts") {
    explainCuts(facts, out);
  } else if (subject == "recompute") {
    explainRecomputation(facts, out);
  }
}

void addReasons(ArrayRef<std::string> plans, std::vector<KeyFact> &keys) {
  for (const std::string &plan : plans) {
    auto file = MemoryBuffer::getFile(plan); // one that is no file was reported before
    if (!file)
      continue;
    SmallVector<StringRef> lines;
    (*file)->getBuffer().split(lines, '\n');
    for (KeyFact &key : keys) {
      auto [name, number] = StringRef(key.origin).rsplit(':');
      size_t line = 0;
      if (name != sys::path::filename(plan) || number.getAsInteger(10, line) || line == 0 || line > lines.size())
        continue;
      size_t mark = lines[line - 1].rfind("# --auto");
      if (mark != StringRef::npos)
        key.reason = lines[line - 1].drop_front(mark + 2).rtrim().str();
    }
  }
}

} // namespace par
