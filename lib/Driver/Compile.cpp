#include "par/Driver/Compile.h"

#include "Communication.h"
#include "Diagnostics.h"
#include "KernelTable.h"
#include "MakeBundle.h"
#include "MemoryTable.h"
#include "Phases.h"
#include "Reproducer.h"
#include "Summary.h"

#include "par/Import/Import.h"
#include "par/Import/Names.h"
#include "par/Import/Passes.h"
#include "par/Interpreter/Interpreter.h"
#include "par/Simulator/Simulator.h"
#include "par/Split/Passes.h"
#include "par/verify/Verify.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <ctime>
#include <functional>

using namespace mlir;

namespace par {
namespace {

/// One run of par-compile with a model.
class Compilation {
public:
  Compilation(const CompileOptions &options, llvm::raw_ostream &out, FindingSink outside)
      : options(options), out(out), outside(outside), here(options.whereabouts ? *options.whereabouts : own) {}

  int run();

private:
  /// Says what is wrong at `file`; empty: with the call.
  void report(StringRef file, const llvm::Twine &message) {
    Finding finding;
    finding.file = file.str();
    finding.message = message.str();
    sink(finding);
  }
  /// A finding at the place of a plan's value; at the model where the value was derived.
  Finding findingAt(const Origin &where) const;
  bool readModel();
  bool readPlanFor();
  bool import();
  bool runPhase(const Phase &phase);
  bool comparePhase(StringRef name);
  /// Whether --stop-after names this phase; the IR has then been printed.
  bool stopsAfter(StringRef name);
  int runPhases();
  std::optional<format::Bundle> makeBundle();
  int prove(const format::Bundle &bundle, std::string &line);
  bool predict(format::Bundle &bundle);
  bool findHardware();
  /// What a rank may use: the plan's limit, or what the device has.
  std::optional<uint64_t> memoryLimit() const;
  int finish();
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  /// With --timing, says what was taken since the last call.
  void sayTime(StringRef name);
  StringRef entry() const { return model.plan.train ? "train" : "predict"; }
  bool quiet() const {
    return options.quiet || options.emitTrace || options.emitKernels || !options.stopAfter.empty();
  }

  /// Hands a finding on, and counts it.
  void take(const Finding &finding);
  /// The exit code after a phase that failed: it has said what is wrong with the input, or Par is at fault.
  int codeOfFailure();
  /// Says which phase begins, and keeps what it begins with if a reproducer is wanted. `name` is a literal.
  void enter(const char *name, const Phase *phase = nullptr);

  const CompileOptions &options;
  llvm::raw_ostream &out;
  FindingSink outside;
  Whereabouts own, &here;
  unsigned errors = 0;
  bool faulty = false;
  std::function<void(const Finding &)> sink = [this](const Finding &finding) { take(finding); };
  std::optional<onnx::Model> onnxModel;
  ModelPlan model;
  ImportOptions importing;
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  std::optional<interp::PhaseCheck> check;
  StepFacts facts;
  CompiledKernels kernels;
  std::optional<Hardware> hardware;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  double saidSeconds = 0, saidCpu = double(std::clock()) / CLOCKS_PER_SEC;
};

} // namespace

void Compilation::take(const Finding &finding) {
  errors += !finding.warning;
  faulty |= finding.internal;
  if (!finding.internal)
    return outside(finding);
  Finding said = finding;
  said.message = here.sentence(finding.message);
  outside(said);
}

int Compilation::codeOfFailure() {
  if (!faulty && errors == 0) {
    Finding silent;
    silent.file = options.model;
    silent.internal = true;
    silent.message = "it fails without saying why";
    take(silent);
  }
  if (!faulty)
    return WrongInput;
  if (!here.writeReproducer())
    report(here.reproducerFile, "cannot be written");
  return Bug;
}

void Compilation::enter(const char *name, const Phase *phase) {
  if (!here.reproducerFile.empty())
    here.reproducer = writeReproducer(here.command, name, model.plan, module ? *module : ModuleOp(), phase);
  here.phase = name;
}

Finding Compilation::findingAt(const Origin &where) const {
  Finding finding;
  finding.file = where.place().empty() ? options.model.empty() ? "plan" : options.model : where.file;
  if (where.kind == Origin::File) {
    finding.line = where.line;
    finding.column = where.column;
  }
  return finding;
}

void Compilation::sayTime(StringRef name) {
  double wall = seconds(), cpu = double(std::clock()) / CLOCKS_PER_SEC;
  if (options.timing) {
    out << "timing  " << llvm::left_justify(name, 12)
        << llvm::format("%8.3f s, cpu %8.3f s\n", wall - saidSeconds, cpu - saidCpu);
    out.flush(); // a phase that does not end is the one after the last line
  }
  saidSeconds = wall;
  saidCpu = cpu;
}

bool Compilation::readModel() {
  std::string reason;
  onnxModel = onnx::readModel(options.model, reason);
  if (!onnxModel) {
    report(options.model, reason);
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
      importing.nameAllLost = options.verbose;
    }
  }
  if (!errors.any() && !findHardware())
    return false;
  errors.forEachInOrder(
      [&](const Origin &where, StringRef message, StringRef shown, ArrayRef<std::string> notes) {
        Finding finding = findingAt(where);
        finding.message = message.str();
        finding.shown = shown.str();
        finding.notes = notes.vec();
        sink(finding);
      });
  for (const auto &[where, message] : errors.warnings()) {
    Finding finding = findingAt(where);
    finding.warning = true;
    finding.message = message;
    sink(finding);
  }
  return !errors.any();
}

bool Compilation::import() {
  enter("import");
  module = importModel(*onnxModel, importing, context.get());
  if (!module)
    return false;
  PassManager manager(context.get());
  buildImportPipeline(manager);
  MoveBatchFirstPassOptions first;
  first.microbatches = **model.plan.batch.microbatches;
  manager.addPass(createMoveBatchFirstPass(first));
  return succeeded(manager.run(*module));
}

/// Interprets the module on small random inputs and holds that against what it gave before.
bool Compilation::comparePhase(StringRef name) {
  if (failed(check->check(*module))) {
    report(options.model, "phase " + name + " changed what the program computes");
    return false;
  }
  sayTime("check");
  const interp::PhaseCheck::Counts &counts = check->counts();
  if (!options.quiet)
    out << "checked " << llvm::left_justify(name, 12) << counts.outputs << " outputs, " << counts.gradients
        << " gradients, " << counts.variables << " variables\n";
  return true;
}

bool Compilation::runPhase(const Phase &phase) {
  if (options.checkPhases && !check) {
    check.emplace(/*seed=*/1);
    if (failed(check->check(*module)))
      return false;
  }
  enter(phase.name.data(), &phase);
  PassManager manager(context.get());
  phase.build(manager);
  if (failed(manager.run(*module)))
    return false;
  sayTime(phase.name);
  return !check || comparePhase(phase.name);
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
  enter("the model's file");
  if (!options.model.empty() && !readModel())
    return WrongInput;
  if (options.list) {
    if (printNames(model.names, *options.list, out))
      return Done;
    report("", "--list takes params, modules, nodes or inputs, found \"" + *options.list + "\"");
    return WrongCommand;
  }
  enter("the plan");
  if (!readPlanFor())
    return WrongInput;
  if (options.printPlan) {
    model.plan.print(out, /*origins=*/true);
    return Done;
  }
  enter("the summary");
  if (!quiet()) {
    printModelLine(model, out);
    printModuleLine(model, out);
    printPlanLine(model, out);
    out.flush(); // errors of the phases come behind it, also where both go to one file
  }
  DialectRegistry registry;
  registerDialect(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  sayTime("read");
  // A user reads what is wrong, not the program of a whole model behind it.
  context->printOpOnDiagnostic(false);
  PhaseDiagnostics diagnostics(context.get(), options.model, sink);
  return runPhases();
}

int Compilation::runPhases() {
  if (!import())
    return codeOfFailure();
  facts = collectFacts(*module, model.plan);
  sayTime("import");
  if (stopsAfter("import"))
    return Done;
  for (const Phase &phase : buildPhases(model)) {
    if (!runPhase(phase))
      return codeOfFailure();
    if (phase.name == "annotate" && !quiet())
      printStagesLine(*module, out);
    if (stopsAfter(phase.name))
      return Done;
  }
  return finish();
}

/// Codegen, and the bundle in memory.
std::optional<format::Bundle> Compilation::makeBundle() {
  CodegenOptions codegen;
  codegen.device = options.hostCode ? "cpu" : *model.plan.target.device;
  if (*model.plan.target.isa != "native" && !options.hostCode)
    codegen.isa = *model.plan.target.isa;
  else // the completed plan names what was compiled for
    model.plan.target.isa = {codegen.device == "cuda" ? "sm_90" : getHostIsa(), Origin::automatic()};
  enter("codegen");
  FailureOr<CompiledKernels> compiled = compileKernels(*module, codegen);
  if (failed(compiled))
    return std::nullopt;
  kernels = std::move(*compiled);
  sayTime("codegen");
  std::string reason;
  std::optional<BundleOptions> bundling = bundleOptions(model, options.model, facts, reason);
  if (!bundling) {
    report(options.model, "cannot be read again: " + reason);
    return std::nullopt;
  }
  enter("bundle");
  FailureOr<format::Bundle> bundle = emitBundle(*module, kernels, *bundling);
  if (failed(bundle))
    return std::nullopt;
  sayTime("bundle");
  return std::move(*bundle);
}

/// The line `proved ...`; a bundle that cannot be proved is a bug of a phase, and is not written.
int Compilation::prove(const format::Bundle &bundle, std::string &line) {
  verify::Verdict verdict = verify::verifyBundle(bundle);
  if (!verdict) {
    Finding finding;
    finding.file = bundleFolder(options);
    finding.message = verdict.counterexample->message;
    finding.notes = verdict.counterexample->notes;
    sink(finding);
    return CannotBe;
  }
  const verify::Proof &proof = verdict.proof;
  llvm::raw_string_ostream(line) << "proved  " << proof.programs
                                 << (proof.programs == 1 ? " program on " : " programs on ") << proof.ranks
                                 << (proof.ranks == 1 ? " rank: " : " ranks: ") << proof.communications
                                 << " communications matched, no deadlock, every buffer live when read\n";
  return Done;
}

bool Compilation::findHardware() {
  llvm::Expected<Hardware> found = Hardware::find(*model.plan.target.hardware);
  if (!found) {
    Finding finding = findingAt(model.plan.target.hardware.origin);
    finding.message = "target.hardware: " + llvm::toString(found.takeError());
    sink(finding);
    return false;
  }
  hardware = *found;
  return true;
}

std::optional<uint64_t> Compilation::memoryLimit() const {
  if (model.plan.target.memory->has_value())
    return *model.plan.target.memory;
  if (hardware->capacity == 0)
    return std::nullopt;
  return hardware->capacity - hardware->reserve;
}

/// The line `predicted step ...`, from playing the programs.
bool Compilation::predict(format::Bundle &bundle) {
  llvm::Expected<Simulation> simulation = simulate(bundle, entry(), hardware->onThisHost());
  if (!simulation) {
    report(options.model, llvm::toString(simulation.takeError()));
    return false;
  }
  bundle.manifest.predictedNs = simulation->step;
  if (options.emitTrace) {
    writeTrace(*simulation, bundle, out);
    return true;
  }
  if (!quiet())
    out << "predicted "
        << simulation->describe(*model.plan.pipeline.schedule, *model.plan.pipeline.stages,
                                **model.plan.batch.microbatches)
        << "\n";
  return true;
}

int Compilation::finish() {
  std::optional<format::Bundle> bundle = makeBundle();
  if (!bundle)
    return codeOfFailure();
  if (options.emitKernels) {
    printKernels(kernels, *bundle, out);
    return Done;
  }
  std::string folder = bundleFolder(options);
  std::vector<RoleMemory> memory = measureMemory(*bundle);
  std::optional<uint64_t> limit = memoryLimit();
  if (!quiet()) {
    printMemory(memory, limit, out);
    printCommunication(*bundle, entry(), model, out);
  }
  if (!checkMemory(memory, limit, findingAt(model.plan.target.memory.origin), sink))
    return CannotBe;
  if (options.explain == "collectives") {
    explainCommunication(*bundle, entry(), model, out);
    return Done;
  }
  enter("the proof");
  std::string proof;
  if (int code = prove(*bundle, proof))
    return code;
  sayTime("prove");
  enter("the prediction");
  if (!predict(*bundle))
    return Bug;
  sayTime("predict");
  if (!quiet())
    out << proof;
  if (options.check || options.emitTrace)
    return Done;
  format::Expected<format::Manifest> written = format::writeBundle(folder, *bundle);
  if (!written) {
    report(folder, written.message());
    return WrongInput;
  }
  sayTime("write");
  if (!quiet())
    out << "wrote   " << folder << llvm::format(" in %.1f s\n", seconds());
  return Done;
}

std::string bundleFolder(const CompileOptions &options) {
  if (!options.output.empty())
    return options.output;
  return llvm::sys::path::stem(llvm::sys::path::filename(options.model)).str() + ".par";
}

int compile(const CompileOptions &options, llvm::raw_ostream &out, FindingSink sink) {
  Finding wrong;
  if (!options.stopAfter.empty() && !llvm::is_contained(phaseNames(), options.stopAfter))
    wrong.message = "--stop-after takes one of " + llvm::join(phaseNames(), ", ") + ", found \"" +
                    options.stopAfter + "\"";
  else if (!options.explain.empty() && options.explain != "collectives")
    wrong.message = "--explain=" + options.explain + " is not supported yet; it takes collectives";
  if (!wrong.message.empty()) {
    sink(wrong);
    return WrongCommand;
  }
  return Compilation(options, out, sink).run();
}

} // namespace par
