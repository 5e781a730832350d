#include "Reproducer.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace par {

std::string writeReproducer(StringRef command, StringRef name, const Plan &plan, ModuleOp module, const Phase *phase) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "// Internal error in " << name << " of\n//   " << command << "\n";
  if (phase)
    os << "// Again, from the module before it: par-opt --run-reproducer FILE\n";
  std::string planText = plan.toText(/*origins=*/false);
  os << "// The plan:\n";
  SmallVector<StringRef> lines;
  StringRef(planText).trim().split(lines, '\n');
  for (StringRef line : lines)
    os << "//   " << line << "\n";
  if (!module)
    return text;
  if (!phase) {
    module->print(os, OpPrintingFlags().enableDebugInfo());
    return text;
  }
  PassManager manager(module.getContext());
  phase->build(manager);
  std::string passes;
  llvm::raw_string_ostream passOs(passes);
  manager.printAsTextualPipeline(passOs);
  // As MLIR writes its own: the pipeline is an external resource of the module.
  AsmState state(module, OpPrintingFlags().enableDebugInfo());
  state.attachResourcePrinter("mlir_reproducer", [&](Operation *, AsmResourceBuilder &builder) {
    builder.buildString("pipeline", passes);
    builder.buildBool("disable_threading", true);
    builder.buildBool("verify_each", true);
  });
  module->print(os, state);
  return text;
}

} // namespace par
