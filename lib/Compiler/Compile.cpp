// Compiles a planned model to a bundle: Import, the phases, Codegen, Bundle. A later compilation of the same model
// starts after the last phase up to which all keys equal those of the earlier one (Keys.cpp).
#include "AddEntry.h"
#include "CostChoices.h"
#include "Keys.h"
#include "MakeBundle.h"
#include "RecomputeRounds.h"

#include "par/Compiler/Diagnostics.h"
#include "par/Compiler/Trial.h"
#include "par/Dialect/Interfaces/Optimizer.h"
#include "par/Phases/Annotate/GradientFlow.h"
#include "par/Phases/Codegen/KernelTable.h"
#include "par/Phases/Import/Passes.h"
#include "par/Phases/Split/Passes.h"

#include "mlir/IR/Verifier.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace par {

namespace {

/// One compilation, which fills `out`.
class Street {
public:
  Street(Compiled &out, const CompilerOptions &options, CompileObserver &observer, const Compiled *earlier)
      : out(out), plan(out.planned.plan), options(options), observer(observer), earlier(earlier) {}
  /// Makes a bundle that is only measured and played.
  Street(Compiled &out, const CompilerOptions &options, CompileObserver &observer, const Compiled *earlier,
         TrialEffort effort)
      : Street(out, options, observer, earlier) {
    codes = false;
    isSample = effort == TrialEffort::Sample;
  }

  bool run();

private:
  void take(const CompileDiagnostic &finding) {
    out.findings.push_back(finding);
    observer.found(finding);
  }
  void report(const Twine &message) {
    CompileDiagnostic finding;
    finding.file = out.planned.graph->path;
    finding.message = message.str();
    take(finding);
  }
  bool goesOn(StringRef step) {
    refused = !observer.ended(step, out);
    return !refused;
  }
  /// The plan's optimizer may be a plugin's, which must be loaded.
  bool checkOptimizer();
  bool runSteps(ArrayRef<Phase> phases);
  /// Recompute to Bundle, once more while ranks need more bytes than Recompute is to reach.
  bool runRounds(ArrayRef<Phase> phases);
  /// Runs the phases; false after an error. `isLast`: the compilation ends with one of them.
  bool runPhases(ArrayRef<Phase> phases, bool &isLast);
  OwningOpRef<ModuleOp> importStep(const ImportOptions &importing);
  bool import();
  bool runPhase(const Phase &phase);
  /// Keeps the module if asked to; false if the compilation must stop.
  bool finishPhase(StringRef name);
  /// Starts from the earlier compilation's module after the last phase on which both plans agree, if it was kept.
  /// Returns the number of skipped phases.
  unsigned startFromEarlier();
  bool makeKernels();
  bool makeBundle();
  /// A failure without an error is a bug of Par's.
  void explainFailure();

  Compiled &out;
  const ModelPlan &plan;
  const CompilerOptions &options;
  CompileObserver &observer;
  const Compiled *earlier; ///< null: none, or one of another model
  bool codes = true;       ///< makes machine code
  bool isSample = false;   ///< see TrialEffort
  bool refused = false;    ///< by the observer, which has reported the error
};

} // namespace

/// "seq 600 (--set dims.seq)", the sizes that the plan gives to symbols; an error about shapes may come from one of
/// them.
static std::string describeDims(const Plan &plan) {
  std::vector<std::string> dims;
  for (const auto &[symbol, size] : plan.dims)
    dims.push_back(llvm::formatv("{0} {1} ({2})", symbol, *size, size.origin.comment()));
  return llvm::join(dims, ", ");
}

static std::shared_ptr<MLIRContext> makeContext(const Plugins &plugins) {
  DialectRegistry registry;
  registerDialect(registry);
  for (const auto &plugin : plugins)
    if (plugin->registerDialects)
      plugin->registerDialects(registry);
  auto context = std::make_shared<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  // Errors show the message, not a whole model's program.
  context->printOpOnDiagnostic(false);
  return context;
}

/// A module with one step. Null after an error.
OwningOpRef<ModuleOp> Street::importStep(const ImportOptions &importing) {
  OwningOpRef<ModuleOp> module = importModel(*out.planned.graph, importing, out.context.get());
  PassManager manager(out.context.get());
  CarryStatePassOptions carry;
  for (const CarriedPair &pair : importing.carry)
    carry.pairs.push_back(pair.output + "=" + pair.input);
  buildImportPipeline(manager, carry);
  MoveBatchFirstPassOptions first;
  first.microbatches = plan.plan.rounds();
  manager.addPass(createMoveBatchFirstPass(first));
  if (!module || failed(manager.run(*module)))
    return nullptr;
  return module;
}

bool Street::import() {
  observer.begins("import", out, nullptr);
  ScopedDiagnosticHandler sizes(out.context.get(), [&](Diagnostic &diagnostic) {
    bool ofShapes = StringRef(diagnostic.str()).contains("tensor<");
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && ofShapes && !plan.plan.dims.empty())
      diagnostic.attachNote(diagnostic.getLocation()) << "dims here: " << describeDims(plan.plan);
    return failure(); // the handler before this one takes it
  });
  out.module = importStep(out.planned.importing);
  if (!out.module)
    return false;
  if (!out.planned.importing.prefill.empty()) {
    ImportOptions longer = out.planned.importing;
    for (const auto &[symbol, size] : longer.prefill)
      longer.dims[symbol] = size;
    OwningOpRef<ModuleOp> prefill = importStep(longer);
    if (!prefill || failed(addEntry(*out.module, *prefill, "prefill")))
      return false;
  }
  out.facts = collectFacts(*out.module, plan.plan);
  return finishPhase("import");
}

bool Street::finishPhase(StringRef name) {
  if (name == "annotate") // variables have kinds, and each step is still one device's forward
    out.facts.modelFlops = modelFlops(*out.module->getOps<StepOp>().begin(), plan.plan.train.has_value());
  if (llvm::is_contained(options.keep, name))
    out.modules[name.str()] = out.module->clone();
  return goesOn(name);
}

bool Street::runPhase(const Phase &phase) {
  observer.begins(phase.name.data(), out, &phase);
  PassManager manager(out.context.get());
  // The module is verified once a phase, after its gate; par-opt does it after each pass.
  manager.enableVerifier(false);
  for (const auto &plugin : out.planned.plugins)
    for (const Plugin::Before &before : plugin->passes)
      if (before.phase == phase.name)
        before.build(manager);
  phase.build(manager);
  return succeeded(manager.run(*out.module)) && (isSample || succeeded(verify(*out.module))) && finishPhase(phase.name);
}

static bool isOfRecompute(const PhaseKey &key) { return key.phase == "recompute"; }

unsigned Street::startFromEarlier() {
  if (!earlier)
    return 0;
  size_t same = 0;
  while (same < std::min(out.keys.size(), earlier->keys.size()) && out.keys[same] == earlier->keys[same])
    ++same;
  if (!codes) // the key of a trial's Import leaves out what later phases read
    same = std::min<size_t>(same, 1);
  if (out.planned.recomputeLimit()) // what Recompute must reach follows from the phases after it
    same = std::min<size_t>(same, llvm::find_if(out.keys, isOfRecompute) - out.keys.begin());
  for (; same > 0; --same)
    if (auto found = earlier->modules.find(out.keys[same - 1].phase); found != earlier->modules.end()) {
      out.context = earlier->context;
      out.module = found->second.get().clone();
      out.facts = earlier->facts;
      out.recomputes = earlier->recomputes;
      return same;
    }
  return 0;
}

bool Street::runSteps(ArrayRef<Phase> phases) {
  auto sink = [this](const CompileDiagnostic &finding) { take(finding); };
  PhaseDiagnostics diagnostics(out.context.get(), out.planned.graph->path, sink);
  if (out.reused == 0 && !import())
    return false;
  if (options.until == "import")
    return true;
  phases = phases.drop_front(out.reused ? out.reused - 1 : 0);
  auto isRecompute = [](const Phase &phase) { return phase.name == "recompute"; };
  size_t before = llvm::find_if(phases, isRecompute) - phases.begin();
  bool isLast = false;
  if (!runPhases(phases.take_front(before), isLast))
    return false;
  return isLast || runRounds(phases.drop_front(before));
}

bool Street::runPhases(ArrayRef<Phase> phases, bool &isLast) {
  for (const Phase &phase : phases) {
    if (!runPhase(phase))
      return false;
    isLast = options.until == phase.name;
    if (isLast)
      return true;
  }
  return true;
}

bool Street::runRounds(ArrayRef<Phase> phases) {
  RecomputeRounds rounds(out.planned.recomputeLimit());
  OwningOpRef<ModuleOp> start = rounds.isBounded() ? out.module->clone() : ModuleOp();
  while (true) {
    bool isLast = false;
    if (!runPhases(phases, isLast))
      return false;
    if (isLast)
      return true;
    if (!makeKernels() || !makeBundle())
      return false;
    if (!rounds.start(*out.bundle, out.recomputes, out.planned.plan.plan.recompute))
      return true;
    out.module = start->clone();
    llvm::find_if(out.keys, isOfRecompute)->text = keyOf(phases.front()); // with the bytes that it has to reach
  }
}

/// The instruction set of the hardware's devices, if the file says one for this kind of device.
static std::string nativeIsa(const Hardware &hardware, StringRef device) {
  bool isGpu = device == "cuda";
  if (!hardware.isa.empty() && hardware.isGpuIsa() == isGpu)
    return hardware.isa;
  return isGpu ? "sm_90" : getHostIsa();
}

bool Street::makeKernels() {
  CodegenOptions codegen;
  PlanTarget &target = out.planned.plan.plan.target;
  codegen.device = options.hostCode ? "cpu" : *target.device;
  if (*target.isa == "native" || options.hostCode) // the completed plan names what was compiled for
    target.isa = {nativeIsa(out.planned.hardware, codegen.device), Origin::automatic()};
  codegen.isa = *target.isa;
  codegen.cache = options.cache;
  codegen.earlier = out.bundle ? &out.kernels : earlier ? &earlier->kernels : nullptr;
  codegen.keepIR = options.keepKernelIR && codegen.device == "cuda";
  observer.begins("codegen", out, nullptr);
  FailureOr<CompiledKernels> compiled =
      codes ? compileKernels(*out.module, codegen) : tabulateKernels(*out.module, codegen);
  if (failed(compiled))
    return false;
  out.kernels = std::move(*compiled);
  return goesOn("codegen");
}

bool Street::makeBundle() {
  std::string reason;
  out.file = earlier ? earlier->file : std::nullopt;
  if (!codes)
    out.file = onnx::FileFacts{}; // no run compares it
  if (!out.file)
    out.file = onnx::factsOfFile(*out.planned.graph, reason);
  if (!out.file) {
    report("cannot be read again: " + reason);
    return false;
  }
  BundleOptions bundling = bundleOptions(out);
  observer.begins("bundle", out, nullptr);
  FailureOr<format::Bundle> bundle = emitBundle(*out.module, out.kernels, bundling);
  if (failed(bundle))
    return false;
  out.bundle = std::move(*bundle);
  return goesOn("bundle");
}

void Street::explainFailure() {
  if (llvm::any_of(out.findings, [](const CompileDiagnostic &finding) { return !finding.warning; }))
    return;
  CompileDiagnostic silent;
  silent.file = out.planned.graph->path;
  silent.internal = true;
  silent.message = "it fails without saying why";
  take(silent);
}

bool Street::checkOptimizer() {
  if (!plan.plan.train)
    return true;
  const auto &kind = plan.plan.train->optimizer.kind;
  if (findOptimizer(out.context.get(), *kind))
    return true;
  CompileDiagnostic finding = diagnosticAt(kind.origin, out.planned.graph->path);
  finding.message = "no plugin has the optimizer \"" + *kind + "\"; --load-plugin=FILE loads one that does";
  take(finding);
  return false;
}

bool Street::run() {
  std::vector<Phase> phases = buildPhases(plan, out.planned.memoryLimit(), out.recomputes, isSample);
  out.keys = keysOf(out.planned, phases);
  if (!codes)
    out.keys.front().text = keyOfTrialImport(out.planned);
  out.reused = startFromEarlier();
  if (!out.context)
    out.context = makeContext(out.planned.plugins);
  if (checkOptimizer() && runSteps(phases))
    return true;
  if (!refused)
    explainFailure();
  return false;
}

Compiled compile(PlannedModel planned, const CompilerOptions &options, CompileObserver &observer,
                 const Compiled *earlier) {
  Compiled out(std::move(planned));
  if (earlier && earlier->planned.graph->bytes != out.planned.graph->bytes)
    earlier = nullptr;
  std::optional<Compiled> trial = settleChoices(out, options, observer, earlier);
  out.failed = !Street(out, options, observer, trial ? &*trial : earlier).run();
  return out;
}

Compiled compileTrial(PlannedModel planned, CompileObserver &observer, const Compiled *earlier, TrialEffort effort) {
  Compiled out(std::move(planned));
  CompilerOptions options;
  options.keep = {"import"};
  out.failed = !Street(out, options, observer, earlier, effort).run();
  return out;
}

} // namespace par
