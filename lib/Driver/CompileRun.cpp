// par-compile from its flags to calls of the compiler and of the report.
#include "CompileRun.h"

#include "OnnxDevices.h"
#include "Reproducer.h"
#include "Warnings.h"

#include "par/Compiler/Diagnostics.h"
#include "par/Compiler/FamilyStep.h"
#include "par/Compiler/WriteBundle.h"
#include "par/Phases/Import/Names.h"
#include "par/Phases/KernelCheck/KernelCheck.h"
#include "par/Report/Json.h"
#include "par/Report/MemoryLimit.h"
#include "par/Report/Names.h"
#include "par/Report/Page.h"
#include "par/Report/Search.h"
#include "par/Report/Text.h"
#include "par/Report/Trace.h"
#include "par/format/Printable.h"

#include "llvm/Support/Format.h"

using namespace mlir;

namespace par {

void StepTimer::print(StringRef step) {
  double wall = seconds(), cpu = double(std::clock()) / CLOCKS_PER_SEC;
  if (prints) {
    out << "timing  " << llvm::left_justify(step, 12)
        << llvm::format("%8.3f s, cpu %8.3f s\n", wall - printedSeconds, cpu - printedCpu);
    out.flush(); // a step that does not end is the one after the last line
  }
  printedSeconds = wall;
  printedCpu = cpu;
}

void CompileRun::found(const CompileDiagnostic &finding) {
  faulty |= finding.internal;
  CompileDiagnostic &said = findings.emplace_back(finding);
  if (finding.internal)
    said.message = here.sentence(finding.message);
  outside(said);
}

bool CompileRun::reportError(StringRef file, const Twine &message) {
  CompileDiagnostic finding;
  finding.file = file.str();
  finding.message = message.str();
  found(finding);
  return false;
}

void CompileRun::enter(const char *step, const Plan &plan, ModuleOp module) {
  if (!here.reproducerFile.empty())
    here.reproducer = writeReproducer(here.command, step, plan, module, nullptr);
  here.phase = step;
}

void CompileRun::begins(const char *step, const Compiled &compiled, const Phase *phase) {
  if (!here.reproducerFile.empty())
    here.reproducer = writeReproducer(here.command, step, compiled.planned.plan.plan,
                                      compiled.module ? *compiled.module : ModuleOp(), phase);
  here.phase = step;
}

/// Whether a bundle is to be written.
static bool writes(const CompileOptions &options) {
  return !options.check && !options.emits() && options.stopAfter.empty() && options.explain.empty();
}

/// Whether all facts are wanted: as JSON for the caller, or as a page, in the bundle or printed.
static bool wantsAll(const CompileOptions &options, const std::string *report) {
  return report || options.emitReport || writes(options);
}

/// Facts of the module after a phase.
static void inspectPhase(StringRef step, ModuleOp module, bool quiet, Facts &facts, llvm::raw_ostream &out) {
  if (step == "annotate") {
    facts.stages = findStageShares(module);
    if (!quiet)
      printStages(facts.stages, out);
  }
  if (step == "propagate") {
    facts.heads = findUnshardedHeads(module);
    if (!quiet)
      printHeads(facts.heads, out);
  }
}

static void printCached(const CompiledKernels &kernels, StringRef cache, llvm::raw_ostream &out) {
  out << "cache   " << kernels.cached << " of " << kernels.distinct << " different kernels from " << cache << "\n";
}

bool CompileRun::ended(StringRef step, const Compiled &compiled) {
  timer.print(step);
  if (step == "propagate" && options.onnxSharding && !keepsDevices(*model, devices, compiled, sink))
    return false;
  if (step == "codegen" && options.timing && !options.cache.empty())
    printCached(compiled.kernels, options.cache, out);
  if (llvm::is_contained({"order", "bucket", "codegen", "bundle"}, step))
    return true;
  if (options.checkPhases && options.stopAfter != "import" && !comparePhase(step, *compiled.module))
    return false;
  if (!quiet() || explained.isAlone() || wantsAll(options, report))
    inspectPhase(step, *compiled.module, quiet(), facts, out);
  return true;
}

static void printCompared(StringRef step, const interp::PhaseCheck::Counts &counts, llvm::raw_ostream &out) {
  out << "checked " << llvm::left_justify(step, 12) << counts.outputs << " outputs, " << counts.gradients
      << " gradients, " << counts.variables << " variables\n";
}

bool CompileRun::comparePhase(StringRef step, ModuleOp module) {
  if (!check) {
    check.emplace(/*seed=*/1);
    return succeeded(check->check(module));
  }
  if (failed(check->check(module)))
    return reportError(options.model, "phase " + step + " changed what the program computes");
  timer.print("check");
  if (!options.quiet && !options.json)
    printCompared(step, check->counts(), out);
  return true;
}

static bool accept(const std::string &difference, DiagnosticSink sink) {
  CompileDiagnostic finding;
  finding.message = "the member has " + difference + "; members of a family compute the same step";
  if (!difference.empty())
    sink(finding);
  return difference.empty();
}

bool FamilyPart::hasStep(const PlannedModel &planned, DiagnosticSink sink) const {
  return !main || accept(describeOtherStep(main->planned, planned), sink);
}

bool FamilyPart::hasState(const Compiled &compiled, DiagnosticSink sink) const {
  return !main || (accept(describeOtherState(main->bundle->manifest, compiled.bundle->manifest), sink) &&
                   accept(describeOtherStages(*main, compiled), sink));
}

static int printIR(ModuleOp module, bool verbose, llvm::raw_ostream &out) {
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(64);
  module->print(out, verbose ? flags.enableDebugInfo(true) : flags);
  out << "\n";
  return Done;
}

static void printPlanning(const Facts &facts, bool verbose, llvm::raw_ostream &out) {
  printModel(*facts.model, facts.plan->trains, out);
  printModule(*facts.module, out);
  printPlan(*facts.plan, out);
  if (facts.recipes)
    printRecipes(*facts.recipes, out);
  printPadding(facts.padding, out);
  if (verbose)
    printMatches(*facts.matches, out);
}

static void describePlanning(const ModelPlan &model, ArrayRef<std::string> plans, Facts &facts) {
  facts.model = describeModel(model);
  facts.module = describeModule(model);
  facts.plan = describePlan(model);
  facts.recipes = describeRecipes(model);
  facts.padding = findPaddedDims(model);
  facts.keys = listKeys(model);
  addReasons(plans, facts.keys);
}

void CompileRun::summarize(const ModelPlan &model) {
  describePlanning(model, options.plans, facts);
  facts.search = beside.search;
  if (options.verbose || explained.isAlone() || wantsAll(options, report))
    facts.matches = findMatches(model);
  if (quiet())
    return;
  printPlanning(facts, options.verbose, out);
  out.flush(); // errors of the phases come after it, also where both go to one file
}

/// `limited`: ways out of a memory limit may be asked for. `named`: a name is explained.
static CompilerOptions compilerOptions(const CompileOptions &options, bool limited, bool named = false) {
  CompilerOptions compiler;
  if (named)
    compiler.keep = {"propagate"};
  if (options.onnxSharding || options.emitOnnx)
    compiler.keep.push_back("annotate");
  if (limited) // phases before those that change with a way out of the limit
    llvm::append_values(compiler.keep, "import", "split", "partition", "collectives");
  compiler.until = options.emitOnnx ? "propagate" : options.stopAfter;
  compiler.hostCode = options.hostCode;
  compiler.keepKernelIR = options.checkKernels;
  compiler.cache = options.cache;
  return compiler;
}

int CompileRun::run() {
  int code = compileModel();
  if (report)
    *report = reportAsJson(facts, {code, written ? bundleFolder(options) : "", findings});
  return code;
}

/// Prints all that a flag asked for.
static int say(StringRef text, llvm::raw_ostream &out) {
  out << text;
  return Done;
}

/// The plan as the flags give it.
static PlanText textOf(const CompileOptions &options) { return {options.plans, options.settings, options.plugins}; }

int CompileRun::compileModel() {
  enter("the model's file", Plan(), {});
  if (!options.model.empty() && !(model = readModel(options.model, sink)))
    return WrongInput;
  if (options.list)
    return say(*listNames(model ? model->names : NameTable(), *options.list), out);
  enter("the plan", Plan(), {});
  text = textOf(options);
  if (options.onnxSharding && !layDevices(options, model.get(), sink, text, devices))
    return WrongInput;
  PlanningOptions planning;
  planning.nameAllLost = options.verbose;
  std::optional<PlannedModel> planned = planModel(model, text, planning, sink);
  if (!planned)
    return WrongInput;
  if (options.printPlan)
    return say(planned->plan.plan.toText(/*origins=*/true), out);
  if (writes(options) && !mayWriteBundle(bundleFolder(options), sink))
    return WrongInput;
  if (part && !part->hasStep(*planned, sink))
    return WrongInput;
  enter("the summary", planned->plan.plan, {});
  if (!quiet() || explained.isAlone() || wantsAll(options, report))
    summarize(planned->plan);
  timer.print("read");
  if (std::string wrong = explained.findName(*model); !wrong.empty()) {
    reportError("", wrong);
    return WrongInput;
  }
  CompilerOptions compiler = compilerOptions(options, planned->memoryLimit().has_value(), explained.isOfName());
  Compiled compiled = compile(std::move(*planned), compiler, *this, part ? part->main : nullptr);
  if (compiled.failed && faulty && !here.writeReproducer())
    reportError(here.reproducerFile, "cannot be written");
  if (compiled.failed)
    return faulty ? Bug : WrongInput;
  if (options.emitOnnx)
    return mayWarn(options, findings, sink) ? emitOnnx(options, *model, compiled, out, sink) : int(WrongInput);
  if (!compiled.bundle)
    return printIR(*compiled.module, options.verbose, out);
  return finish(compiled);
}

/// The line `checked kernels ...`
static void printChecked(const KernelCheckCounts &counts, const CompiledKernels &kernels, llvm::raw_ostream &out) {
  bool emulated = kernels.device == "cuda";
  out << "checked " << counts.kernels << (counts.kernels == 1 ? " kernel" : " different kernels")
      << (emulated ? ", as LLVM optimised them, on emulated threads" : "") << ": " << counts.elements
      << " elements are the interpreter's, nothing else is read or written\n";
  if (!counts.otherIsa.empty())
    out << "  compiled for " << counts.otherIsa << ": this machine does not run code for " << kernels.isa << "\n";
  if (counts.addressesOnly)
    out << "  " << counts.addressesOnly
        << " of them too large to interpret: run to check only the addresses that they read and write\n";
  if (counts.notRun)
    out << "  " << counts.notRun << " of them too large to emulate: not run\n";
}

/// Runs the kernels that were compiled; one that is wrong is a bug of Codegen.
int CompileRun::checkCode(const Compiled &compiled) {
  enter("the check of kernels", compiled.planned.plan.plan, *compiled.module);
  PhaseDiagnostics diagnostics(compiled.context.get(), options.model, sink);
  KernelCheckCounts counts;
  const CompiledKernels &kernels = compiled.kernels;
  if (failed(checkKernels(*compiled.module, kernels, {}, counts)))
    return Bug;
  timer.print("check");
  if (!quiet() && options.sayCheckedKernels)
    printChecked(counts, kernels, out);
  return Done;
}

static void describeStep(const Compiled &compiled, const Simulation &simulation, Facts &facts) {
  facts.prediction = describePrediction(compiled.planned.plan.plan, *compiled.bundle, simulation);
  facts.utilization = describeUtilization(compiled, facts.prediction->stepNs);
  facts.order = describeRankOrder(compiled, *facts.communications, simulation);
  facts.bucket = compiled.bucket;
  facts.timeline = describeTimeline(*compiled.bundle, compiled.planned.entry(), simulation);
  facts.memoryOverTime = describeMemoryOverTime(*compiled.bundle, compiled.planned.entry(), simulation);
}

static void printStep(const Facts &facts, llvm::raw_ostream &out) {
  printPrediction(*facts.prediction, out);
  if (facts.order)
    printRankOrder(*facts.order, out);
  if (facts.bucket)
    printBucket(*facts.bucket, out);
}

/// The line `predicted step ...`, from playing the programs.
bool CompileRun::predict(Compiled &compiled) {
  format::Bundle &bundle = *compiled.bundle;
  llvm::Expected<Simulation> simulation =
      simulate(bundle, compiled.planned.entry(), compiled.planned.hardware.onThisHost());
  if (!simulation)
    return reportError(options.model, llvm::toString(simulation.takeError()));
  bundle.manifest.predictedNs = simulation->step / simulation->calls;
  if (options.emitTrace)
    writeTrace(*simulation, bundle, out, beside.trace ? &*beside.trace : nullptr);
  else if (!quiet() || explained.isAlone() || wantsAll(options, report))
    describeStep(compiled, *simulation, facts);
  if (!quiet())
    printStep(facts, out);
  return true;
}

int CompileRun::write(Compiled &compiled) {
  if (!writeBundle(*compiled.bundle, options.model, bundleFolder(options), sink, options.withWeights))
    return WrongInput;
  written = true;
  timer.print("write");
  if (!quiet())
    out << "wrote   " << format::printable(bundleFolder(options)) << llvm::format(" in %.1f s\n", timer.seconds());
  return Done;
}

/// The bytes that a rank may have: those that recomputation is to reach, else the limit.
static std::optional<uint64_t> limitOf(const Facts &facts) {
  return facts.recompute->limit ? facts.recompute->limit : facts.memory->limit;
}

/// Errors about roles above the limit; each that recomputation cannot bring under it has a note with the reason.
static std::vector<CompileDiagnostic> findAbove(const Facts &facts, const Plan &plan, const std::string &model) {
  uint64_t limit = *limitOf(facts);
  bool isOfRecompute = *plan.recompute.kind == PlanRecompute::Memory && *plan.recompute.memory == limit;
  CompileDiagnostic place =
      diagnosticAt(isOfRecompute ? plan.recompute.memory.origin : plan.target.memory.origin, model);
  std::vector<CompileDiagnostic> above = diagnosticsAboveLimit(facts.memory->roles, limit, place);
  for (const RoleMemory &role : facts.memory->roles)
    if (std::string why = describeLowerBound(*facts.recompute, role, limit); role.peak > limit && !why.empty())
      above.front().notes.push_back(why);
  return above;
}

bool CompileRun::fits(const Compiled &compiled) {
  if (!limitOf(facts))
    return true;
  std::vector<CompileDiagnostic> above = findAbove(facts, compiled.planned.plan.plan, options.model);
  if (above.empty())
    return true;
  facts.waysOut = findWaysOut(model, text, compilerOptions(options, /*limited=*/false), compiled, *limitOf(facts));
  if (facts.waysOut)
    above.front().notes.push_back(describeWaysOut(*facts.waysOut, *limitOf(facts)));
  llvm::for_each(above, sink);
  return false;
}

/// Facts about the bundle; those that the summary lacks only if `all` is set or an explanation needs them.
static void describeBundle(const Compiled &compiled, bool all, bool needsSaved, Facts &facts) {
  const PlannedModel &planned = compiled.planned;
  const format::Bundle &bundle = *compiled.bundle;
  facts.memory = {planned.memoryLimit(), measureMemory(bundle)};
  facts.communications = findCommunications(bundle, planned.entry(), planned.plan, planned.hardware);
  facts.recompute = describeRecompute(compiled);
  if (all || needsSaved)
    facts.saved = findSavedValues(bundle);
  if (all)
    facts.kernels = describeKernels(compiled.kernels, bundle);
}

/// The lines about memory and communication; those about saved values if `explains`.
static void printBundle(const Facts &facts, size_t roles, bool quiet, bool explains, llvm::raw_ostream &out) {
  if (!quiet) {
    printMemory(facts.memory->roles, facts.memory->limit, out);
    printRecompute(*facts.recompute, out);
    printCommunication(totalCommunications(*facts.communications), roles, out);
  }
  if (explains) {
    explainRecompute(*facts.recompute, out);
    printSavedValues(*facts.saved, out);
  }
}

static int sayKernels(const Compiled &compiled, llvm::raw_ostream &out) {
  printKernels(describeKernels(compiled.kernels, *compiled.bundle), out);
  return Done;
}

int CompileRun::finish(Compiled &compiled) {
  if (!mayWarn(options, findings, sink))
    return WrongInput;
  if (options.emitKernels)
    return sayKernels(compiled, out);
  if (options.checkKernels)
    if (int code = checkCode(compiled))
      return code;
  describeBundle(compiled, /*all=*/wantsAll(options, report), explained.needsSaved(), facts);
  printBundle(facts, compiled.bundle->programs.size(), quiet(), options.explain == "memory", out);
  if (!fits(compiled))
    return CannotBe;
  if (explained.needsPrediction() && !predict(compiled))
    return Bug;
  explained.print(compiled, facts, out);
  return options.explain.empty() || options.check ? proveAndWrite(compiled) : int(Done);
}

static std::string pageOf(const Facts &facts, const std::vector<CompileDiagnostic> &findings) {
  return reportAsPage(reportAsJson(facts, {Done, "", findings}));
}

/// Adds the page; and the plan says which keys a search has chosen, as --write-plan does.
static void describeWritten(const Facts &facts, const std::vector<CompileDiagnostic> &findings,
                            format::Bundle &bundle) {
  for (format::Blob &blob : bundle.blobs)
    if (facts.search && blob.name == "plan.yaml")
      blob.bytes = markFound(*facts.search, blob.bytes);
  bundle.blobs.push_back({"report.html", pageOf(facts, findings)});
}

int CompileRun::proveAndWrite(Compiled &compiled) {
  const Plan &plan = compiled.planned.plan.plan;
  if (part && !part->hasState(compiled, sink))
    return WrongInput;
  enter("the proof", plan, *compiled.module);
  facts.proof = proveBundle(*compiled.bundle, bundleFolder(options), sink);
  if (!facts.proof)
    return CannotBe;
  timer.print("prove");
  enter("the prediction", plan, *compiled.module);
  if (!predict(compiled))
    return Bug;
  timer.print("predict");
  if (!quiet())
    printProof(*facts.proof, out);
  if (options.emitReport)
    return say(pageOf(facts, findings), out);
  if (writes(options))
    describeWritten(facts, findings, *compiled.bundle);
  if (part)
    part->made.emplace(std::move(compiled));
  return part || !writes(options) ? int(Done) : write(compiled);
}

} // namespace par
