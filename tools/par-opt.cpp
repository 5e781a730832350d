// The tool of pass developers: every pass, pipeline and gate on IR from a file or stdin.
#include "par/AllPasses.h.inc"
#include "par/Dialect/Par.h"
#include "par/Plugin/Plugin.h"
#include "par/Solver/Problem/ProblemText.h"
#include "par/format/Process.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"

/// `par-opt --par-problem=F` reads a solver problem instead of IR.
static int runProblemFile(llvm::StringRef file) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(file, /*IsText=*/true);
  if (!buffer) {
    llvm::errs() << "error: " << file << ": " << buffer.getError().message() << '\n';
    return 1;
  }
  llvm::Expected<std::string> solution = par::solveText((*buffer)->getBuffer());
  if (!solution) {
    llvm::errs() << "error: " << llvm::toString(solution.takeError()) << '\n';
    return 1;
  }
  llvm::outs() << *solution;
  return 0;
}

/// Takes each `--load-plugin=FILE` from the arguments and adds what it has; false after an error.
static bool loadPlugins(llvm::SmallVectorImpl<char *> &arguments, mlir::DialectRegistry &registry) {
  llvm::SmallVector<char *> others;
  for (char *argument : arguments) {
    llvm::StringRef file = argument;
    if (!file.consume_front("--load-plugin=")) {
      others.push_back(argument);
      continue;
    }
    llvm::Expected<std::shared_ptr<const par::Plugin>> plugin = par::loadPlugin(file.str());
    if (!plugin) {
      llvm::errs() << "par-opt: error: " << llvm::toString(plugin.takeError()) << '\n';
      return false;
    }
    if ((*plugin)->registerDialects)
      (*plugin)->registerDialects(registry);
    if ((*plugin)->registerPasses)
      (*plugin)->registerPasses();
  }
  arguments = others;
  return true;
}

int main(int argc, char **argv) {
  if (par::format::Status status = par::format::prepareProcess(); !status) {
    llvm::errs() << "par-opt: error: " << status.message() << '\n';
    return 1;
  }
  llvm::StringRef argument = argc == 2 ? argv[1] : "";
  if (argument.consume_front("--par-problem="))
    return runProblemFile(argument);
  mlir::DialectRegistry registry;
  par::registerDialect(registry);
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  registerAllParPasses();
  llvm::SmallVector<char *> arguments(argv, argv + argc);
  if (!loadPlugins(arguments, registry))
    return 1;
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  return mlir::failed(mlir::MlirOptMain(count, arguments.data(), "Par's pass driver\n", registry)) ? 1 : 0;
}
