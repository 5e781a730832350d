#include "par/Driver/Compile.h"

#include "Diagnostics.h"
#include "Phases.h"
#include "Summary.h"

#include "par/Import/Import.h"
#include "par/Import/Names.h"
#include "par/Import/Passes.h"
#include "par/Interpreter/Interpreter.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <chrono>

using namespace mlir;

namespace par {
namespace {

/// One run of par-compile with a model.
class Compilation {
public:
  Compilation(const CompileOptions &options, llvm::raw_ostream &out, llvm::raw_ostream &err)
      : options(options), out(out), err(err) {}

  int run();

private:
  bool readModel();
  bool readPlanFor();
  bool import();
  bool runPhase(const Phase &phase);
  bool comparePhase(ModuleOp before, StringRef name);
  /// Whether --stop-after names this phase; the IR has then been printed.
  bool stopsAfter(StringRef name);

  const CompileOptions &options;
  llvm::raw_ostream &out, &err;
  std::optional<onnx::Model> onnxModel;
  ModelPlan model;
  ImportOptions importing;
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

bool Compilation::readModel() {
  std::string reason;
  onnxModel = onnx::readModel(options.model, reason);
  if (!onnxModel) {
    err << options.model << ": error: " << reason << "\n";
    return false;
  }
  model.names = collectNames(*onnxModel);
  return true;
}

/// Reads the plan, completes it and holds it against the names of the model: all errors in one go.
bool Compilation::readPlanFor() {
  PlanErrors errors;
  if (std::optional<Plan> plan = readPlan(options.plans, options.settings, errors)) {
    model.plan = std::move(*plan);
    if (completePlan(model.plan, model.names, errors) && onnxModel) {
      checkPlanNames(model.plan, model.names, errors);
      importing = importOptions(model.plan, model.names, errors);
    }
  }
  errors.print(err, options.model.empty() ? "plan" : options.model);
  return !errors.any();
}

bool Compilation::import() {
  module = importModel(*onnxModel, importing, context.get());
  if (!module)
    return false;
  PassManager manager(context.get());
  buildImportPipeline(manager);
  return succeeded(manager.run(*module));
}

/// Interprets the module before and after a phase on small random inputs.
bool Compilation::comparePhase(ModuleOp before, StringRef name) {
  if (module->getOps<StepOp>().empty()) {
    if (!options.quiet)
      out << "not checked: " << name << " (the interpreter reads no programs yet)\n";
    return true;
  }
  if (failed(interp::comparePhases(before, *module, /*seed=*/1))) {
    err << options.model << ": error: phase " << name << " changed what the program computes\n";
    return false;
  }
  if (!options.quiet)
    out << "checked " << name << "\n";
  return true;
}

bool Compilation::runPhase(const Phase &phase) {
  auto start = std::chrono::steady_clock::now();
  OwningOpRef<ModuleOp> before;
  if (options.checkPhases)
    before = module->clone();
  PassManager manager(context.get());
  phase.build(manager);
  if (failed(manager.run(*module)))
    return false;
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (options.timing)
    out << "timing  " << llvm::left_justify(phase.name, 12) << llvm::format("%8.3f s\n", took.count());
  return !before || comparePhase(*before, phase.name);
}

bool Compilation::stopsAfter(StringRef name) {
  if (options.stopAfter != name)
    return false;
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(64);
  module->print(out, options.verbose ? flags.enableDebugInfo(true) : flags);
  out << "\n";
  return true;
}

int Compilation::run() {
  if (!options.model.empty() && !readModel())
    return WrongInput;
  if (options.list) {
    if (printNames(model.names, *options.list, out))
      return Done;
    err << "par-compile: error: --list takes params, modules, nodes or inputs, found \"" << *options.list << "\"\n";
    return WrongCommand;
  }
  if (!readPlanFor())
    return WrongInput;
  if (options.printPlan) {
    model.plan.print(out, /*origins=*/true);
    return Done;
  }
  bool quiet = options.quiet || !options.stopAfter.empty();
  if (!quiet) {
    printModelLine(model, out);
    printPlanLine(model, out);
  }
  DialectRegistry registry;
  registerDialect(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  PhaseDiagnostics diagnostics(context.get(), options.model, err);
  if (!import())
    return WrongInput;
  if (stopsAfter("import"))
    return Done;
  for (const Phase &phase : buildPhases(model)) {
    if (!runPhase(phase))
      return WrongInput;
    if (phase.name == "annotate" && !quiet)
      printStagesLine(*module, out);
    if (stopsAfter(phase.name))
      return Done;
  }
  err << options.model << ": error: writing a bundle is not supported yet; --stop-after=PHASE prints the program\n";
  return WrongInput;
}

int compile(const CompileOptions &options, llvm::raw_ostream &out, llvm::raw_ostream &err) {
  if (!options.stopAfter.empty() && !llvm::is_contained(phaseNames(), options.stopAfter)) {
    err << "par-compile: error: --stop-after takes one of " << llvm::join(phaseNames(), ", ") << ", found \""
        << options.stopAfter << "\"\n";
    return WrongCommand;
  }
  return Compilation(options, out, err).run();
}

} // namespace par
