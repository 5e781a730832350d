// The command line of a tool as a table.
#include "par/Driver/Flags.h"
#include "par/Plan/Language/Schema.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace par {

bool Arguments::has(StringRef flag) const {
  return llvm::any_of(flags, [&](const Given &given) { return given.flag == flag; });
}

std::string Arguments::last(StringRef flag, StringRef fallback) const {
  for (const Given &given : llvm::reverse(flags))
    if (given.flag == flag)
      return given.value;
  return fallback.str();
}

std::vector<std::string> Arguments::all(StringRef flag) const {
  std::vector<std::string> values;
  for (const Given &given : flags)
    if (given.flag == flag)
      values.push_back(given.value);
  return values;
}

static const Flag *findFlag(ArrayRef<Flag> table, StringRef name) {
  for (const Flag &flag : table)
    if (name == flag.name)
      return &flag;
  return nullptr;
}

/// The flag nearest to a mistyped one; empty if none is near.
static StringRef nearestFlag(ArrayRef<Flag> table, StringRef name) {
  return nearestWord(name, llvm::map_to_vector(table, [](const Flag &flag) { return StringRef(flag.name); }), 2);
}

bool parseArguments(int argc, const char *const *argv, ArrayRef<Flag> table, Arguments &arguments, raw_ostream &err) {
  StringRef tool = sys::path::filename(argv[0]);
  for (int i = 1; i < argc; ++i) {
    StringRef word = argv[i];
    if (!word.starts_with("-") || word == "-") {
      arguments.positional.push_back(word.str());
      continue;
    }
    auto [name, value] = word.split('=');
    bool joined = word.contains('=');
    const Flag *flag = findFlag(table, name);
    if (!flag) {
      err << tool << ": error: unknown flag \"" << name << "\"";
      if (StringRef nearest = nearestFlag(table, name); !nearest.empty())
        err << "; did you mean \"" << nearest << "\"?";
      else
        err << "; --help lists them";
      err << "\n";
      return false;
    }
    if (!flag->supported) {
      err << tool << ": error: " << name << " is not supported yet\n";
      return false;
    }
    if (joined && flag->takes == Flag::Nothing) {
      err << tool << ": error: " << name << " takes no value, found \"" << value << "\"\n";
      return false;
    }
    if (!joined && flag->takes == Flag::Value && i + 1 < argc)
      value = argv[++i];
    if (flag->takes == Flag::Value && value.empty()) {
      err << tool << ": error: " << name << " needs a value: " << name << "=" << flag->value << "\n";
      return false;
    }
    if (flag->takes != Flag::Nothing && !flag->repeats && arguments.has(name)) {
      err << tool << ": error: " << name << " is given twice, with \"" << arguments.last(name) << "\" and \"" << value
          << "\"; it takes one\n";
      return false;
    }
    arguments.flags.push_back({name.str(), value.str()});
  }
  return true;
}

void printHelp(raw_ostream &os, StringRef usage, ArrayRef<Flag> table) {
  os << "usage: " << usage << "\n\n";
  for (const Flag &flag : table) {
    if (!flag.supported)
      continue;
    std::string left = flag.name;
    if (flag.takes == Flag::Value)
      left += std::string("=") + flag.value;
    if (flag.takes == Flag::Maybe)
      left += std::string("[=") + flag.value + "]";
    os << "  " << left;
    os.indent(left.size() < 28 ? 30 - left.size() : 2) << flag.doc << "\n";
  }
}

} // namespace par
