// Runs ONNX's node tests and prints what became of them:
//   par-node-tests --operators
//   par-node-tests [--op=TYPE] [--match=TEXT] [--list] [--table] [--seconds=N] FOLDER
// FOLDER holds a folder a case (onnx/backend/test/data/node of the Python package onnx). --list prints a line for every
// case that did not pass, --table one for every operator. The last line counts. Exits with 1 where a case crashed or
// differs. --operators prints docs/onnx.md.
#include "NodeCase.h"

#include "par/Import/Operators.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <filesystem>
#include <map>
#include <set>

using namespace par::test;
using llvm::StringRef;
namespace fs = std::filesystem;

namespace {

struct Arguments {
  std::string folder, op, match;
  bool list = false, table = false;
  unsigned seconds = 20;
};

bool read(int argc, char **argv, Arguments &arguments) {
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument == "--list")
      arguments.list = true;
    else if (argument == "--table")
      arguments.table = true;
    else if (argument.consume_front("--op="))
      arguments.op = argument.str();
    else if (argument.consume_front("--match="))
      arguments.match = argument.str();
    else if (argument.consume_front("--seconds=")) {
      if (argument.getAsInteger(10, arguments.seconds))
        return false;
    } else if (argument.starts_with("-") || !arguments.folder.empty())
      return false;
    else
      arguments.folder = argument.str();
  }
  return !arguments.folder.empty();
}

constexpr const char *names[] = {"passed", "refused", "wrong", "crashed"};
using Counts = std::array<int, 4>;

void print(StringRef title, const Counts &counts) {
  llvm::outs() << llvm::format("%-28s", title.str().c_str());
  for (size_t i = 0; i < counts.size(); ++i)
    llvm::outs() << llvm::format(" %5d %s", counts[i], names[i]);
  llvm::outs() << '\n';
}

/// An op's expansion into others counts as that op's case: test_gelu_default_1_expanded is Gelu's.
std::string operatorOfCase(const fs::path &folder) {
  std::string name = folder.filename().string();
  size_t expanded = name.find("_expanded");
  fs::path original = folder.parent_path() / name.substr(0, expanded);
  return operatorOf(expanded != std::string::npos && fs::exists(original) ? original.string() : folder.string());
}

} // namespace

int main(int argc, char **argv) {
  if (argc == 2 && StringRef(argv[1]) == "--operators") {
    par::printOperators(llvm::outs());
    return 0;
  }
  Arguments arguments;
  if (!read(argc, argv, arguments) || !fs::is_directory(arguments.folder)) {
    llvm::errs() << "usage: par-node-tests [--op=TYPE] [--match=TEXT] [--list] [--table] [--seconds=N] FOLDER\n";
    return 2;
  }
  std::set<fs::path> folders;
  for (const fs::directory_entry &entry : fs::directory_iterator(arguments.folder))
    if (fs::exists(entry.path() / "model.onnx") && StringRef(entry.path().filename().string()).contains(arguments.match))
      folders.insert(entry.path());
  std::map<std::string, Counts> table;
  Counts total{};
  for (const fs::path &folder : folders) {
    std::string op = operatorOfCase(folder);
    if (!arguments.op.empty() && op != arguments.op)
      continue;
    CaseResult result = runCaseApart(folder.string(), arguments.seconds);
    ++table[op][int(result.verdict)];
    ++total[int(result.verdict)];
    if (arguments.list && result.verdict != Verdict::Passed)
      llvm::outs() << names[int(result.verdict)] << ' ' << op << ' ' << folder.filename().string() << ": "
                   << StringRef(result.reason).split('\n').first << '\n';
  }
  if (arguments.table)
    for (const auto &[op, counts] : table)
      print(op, counts);
  print("total", total);
  return total[int(Verdict::Wrong)] || total[int(Verdict::Crashed)];
}
