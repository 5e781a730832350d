// Runs ONNX's node tests and prints their results:
//   par-node-tests --operators
//   par-node-tests [--gradients] [--op=TYPE] [--match=TEXT] [--list] [--table] [--seconds=N] FOLDER
// FOLDER holds a folder a case (onnx/backend/test/data/node of the Python package onnx). --list prints a line
// for every case that did not pass, --table one for every operator. The last lines count all cases, and the
// cases in scope. Exits with 1 if a case crashed or differs. --gradients compares gradients with differences
// instead of outputs with the expected ones; a case without gradients then counts as refused. --operators
// prints docs/onnx.md.
#include "NodeCase.h"

#include "par/Phases/Import/Operators.h"

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
  bool list = false, table = false, gradients = false;
  unsigned seconds = 20;
};

bool read(int argc, char **argv, Arguments &arguments) {
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument == "--list")
      arguments.list = true;
    else if (argument == "--table")
      arguments.table = true;
    else if (argument == "--gradients")
      arguments.gradients = true;
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

/// Cases that should pass: how many do, and how many of these were given an input when compiling (a shape,
/// axes).
struct Scope {
  int total = 0, passed = 0, given = 0;

  void add(const CaseResult &result) {
    ++total;
    passed += result.verdict == Verdict::Passed;
    given += result.verdict == Verdict::Passed && !result.reason.empty();
  }
};

constexpr const char *usage = "usage: par-node-tests [--gradients] [--op=TYPE] [--match=TEXT] [--list] "
                              "[--table] [--seconds=N] FOLDER\n";

bool isWanted(const Arguments &arguments, const fs::path &folder) {
  return fs::exists(folder / "model.onnx") && StringRef(folder.filename().string()).contains(arguments.match);
}

} // namespace

int main(int argc, char **argv) {
  if (argc == 2 && StringRef(argv[1]) == "--operators") {
    llvm::outs() << par::operatorsPage()
                 << "\n## Node tests\n\n`par-node-tests` counts those of ONNX's own node tests as in scope, and so "
                    "expected to pass, that have these\nproperties:\n\n"
                 << scopeRule
                 << "\n\nA case whose outputs are drawn at random is held to their type and shape.\n\n"
                    "`par-node-tests --gradients` makes parameters of a case's float inputs and holds their "
                    "gradients against\n"
                    "central differences in float64.\n";
    return 0;
  }
  Arguments arguments;
  if (argc == 2 && StringRef(argv[1]) == "--help") {
    llvm::outs() << usage << "In scope, and so expected to pass:\n" << scopeRule << '\n';
    return 0;
  }
  if (!read(argc, argv, arguments) || !fs::is_directory(arguments.folder)) {
    llvm::errs() << usage;
    return 2;
  }
  std::set<fs::path> folders;
  for (const fs::directory_entry &entry : fs::directory_iterator(arguments.folder))
    if (isWanted(arguments, entry.path()))
      folders.insert(entry.path());
  std::map<std::string, Counts> table;
  Counts total{};
  Scope scope;
  for (const fs::path &folder : folders) {
    auto [op, outside] = scopeOf(folder.string());
    if (!arguments.op.empty() && op != arguments.op)
      continue;
    CaseResult result = runCaseApart(folder.string(), arguments.seconds, arguments.gradients);
    ++table[op][int(result.verdict)];
    ++total[int(result.verdict)];
    if (outside.empty())
      scope.add(result);
    if (arguments.list && result.verdict != Verdict::Passed)
      llvm::outs() << names[int(result.verdict)] << ' ' << op << ' ' << folder.filename().string() << ": "
                   << StringRef(result.reason).split('\n').first
                   << (outside.empty() ? "" : " (out of scope: " + outside + ")") << '\n';
  }
  if (arguments.table)
    for (const auto &[op, counts] : table)
      print(op, counts);
  print("total", total);
  if (arguments.gradients)
    return total[int(Verdict::Wrong)] || total[int(Verdict::Crashed)];
  llvm::outs() << llvm::format("in scope: %d of %d passed = %.1f %%, %d of them with inputs given when compiling\n",
                               scope.passed, scope.total, 100.0 * scope.passed / std::max(scope.total, 1), scope.given);
  return total[int(Verdict::Wrong)] || total[int(Verdict::Crashed)];
}
