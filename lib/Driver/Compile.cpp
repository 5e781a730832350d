// par-compile from the model and the plan through the phases; what follows is in FinishCompilation.cpp.
#include "Compilation.h"
#include "Diagnostics.h"
#include "Reproducer.h"

#include "par/Phases/Import/Names.h"
#include "par/Phases/Import/Passes.h"
#include "par/Phases/Split/Passes.h"
#include "par/Phases/Train/Passes.h"
#include "par/Plan/Language/ForeignNames.h"
#include "par/format/Printable.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace par {

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

/// Says which files of external data are not there: planning needs no weights, training does. What par.export left out
/// on purpose (weights=False) lies in a file of this name, which nobody looks for here.
void Compilation::warnOfMissingData() {
  llvm::MapVector<StringRef, unsigned> missing;
  for (const onnx::Tensor &tensor : onnxModel->initializers)
    if (StringRef file = tensor.file;
        tensor.storage == onnx::Storage::Absent && !file.empty() && !file.ends_with(".absent"))
      ++missing[tensor.file];
  for (auto [file, tensors] : missing) {
    Finding finding;
    finding.file = options.model;
    finding.warning = true;
    finding.message =
        ("its external data \"" + file + "\" are not there; it is compiled without the weights in them (" +
         Twine(tensors) + (tensors == 1 ? " tensor" : " tensors") + "), which par-run looks for again")
            .str();
    sink(finding);
  }
}

bool Compilation::readModel() {
  std::string reason;
  // The bundle names its model, and a name is printed wherever that is looked for.
  if (llvm::any_of(options.model, format::isControl)) {
    report(options.model, "the path of a model holds no control character; rename it");
    return false;
  }
  onnxModel = onnx::readModel(options.model, reason);
  if (!onnxModel) {
    report(options.model, reason);
    return false;
  }
  warnOfMissingData();
  model.names = collectNames(*onnxModel);
  return true;
}

void Compilation::reportLostParameters() {
  if (!onnxModel || !model.plan.train || *model.plan.train->lost == "allow")
    return;
  std::optional<LostMessage> lost = describeLost(*onnxModel, options.verbose);
  if (!lost)
    return;
  Finding finding;
  finding.file = options.model;
  finding.message = lost->message;
  finding.notes = lost->notes;
  sink(finding);
}

/// Where the model's files hold a tensor; without a file's name where it stands in the text of the model.
static format::Source copyOf(const onnx::Model &model, const onnx::Tensor &tensor, bool transposed) {
  format::Source copy;
  if (tensor.storage != onnx::Storage::Inline)
    copy.file = tensor.storage == onnx::Storage::InModel ? llvm::sys::path::filename(model.path).str() : tensor.file;
  copy.offset = tensor.offset;
  copy.length = tensor.length;
  copy.type = format::dtypeOf(onnx::spell(tensor.type)).value_or(format::DType::F32);
  copy.transposed = transposed;
  return copy;
}

/// Makes one of the parameters that the plan ties, in the graph and among its names. Where the file has other numbers
/// for them, the warning says whose are taken.
void Compilation::tieParameters(PlanErrors &errors) {
  std::vector<ParameterTie> ties = par::tieParameters(model.plan, model.names, errors);
  for (const ParameterTie &tie : ties) {
    if (holdsOtherNumbers(*onnxModel, tie))
      errors.warning(tie.origin, PlanMessage::tieNumbers, tie.name, tie.owner);
    for (const onnx::Tensor &tensor : onnxModel->initializers)
      if (tensor.name == tie.name)
        tiedCopies[tie.owner].push_back(copyOf(*onnxModel, tensor, tie.transposed));
  }
  tieInModel(*onnxModel, ties);
}

/// Reads the plan, completes it and holds it against the names of the model: all errors in one go.
bool Compilation::readPlanFor() {
  PlanErrors errors;
  if (std::optional<Plan> plan = readPlan(options.plans, options.settings, errors)) {
    model.plan = std::move(*plan);
    if (onnxModel)
      tieParameters(errors);
    if (completePlan(model.plan, model.names, errors) && onnxModel) {
      checkPlanNames(model.plan, model.names, errors);
      (void)trainOptions(model.plan, model.names, errors); // for what it finds wrong; the phases ask again
      importing = importOptions(model.plan, model.names, errors);
      warnOfUnused(model.plan, model.names, errors);
      importing.nameAllLost = options.verbose;
    }
  }
  if (!errors.any() && !findHardware())
    return false;
  if (hardware) {
    checkHosts(model.plan, hardware->ranks, errors);
    checkWithin(model.plan, hardware->ranks, errors);
    if (hardware->cores)
      checkSharedCores(model.plan, hardware->ranks, errors);
    checkAlgorithm(model.plan, hardware->ranks, hardware->hostLink > 0, errors);
  }
  errors.forEachInOrder([&](const Origin &where, StringRef message, StringRef shown, ArrayRef<std::string> notes) {
    Finding finding = findingAt(where);
    finding.message = nameRepeated(message, model.names);
    finding.shown = shown.str();
    for (const std::string &note : notes)
      finding.notes.push_back(nameRepeated(note, model.names));
    sink(finding);
  });
  if (errors.any())
    reportLostParameters();
  for (const auto &[where, message] : errors.warnings()) {
    Finding finding = findingAt(where);
    finding.warning = true;
    finding.message = message;
    sink(finding);
  }
  return !errors.any();
}

/// "seq 600 (--set dims.seq)", the sizes that the plan gives to symbols; an error about shapes may come from one of
/// them.
static std::string describeDims(const Plan &plan) {
  std::vector<std::string> dims;
  for (const auto &[symbol, size] : plan.dims)
    dims.push_back(llvm::formatv("{0} {1} ({2})", symbol, *size, size.origin.comment()));
  return llvm::join(dims, ", ");
}

bool Compilation::import() {
  enter("import");
  ScopedDiagnosticHandler sizes(context.get(), [&](Diagnostic &diagnostic) {
    bool ofShapes = StringRef(diagnostic.str()).contains("tensor<");
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && ofShapes && !model.plan.dims.empty())
      diagnostic.attachNote(diagnostic.getLocation()) << "dims here: " << describeDims(model.plan);
    return failure(); // who stands behind prints it
  });
  module = importModel(*onnxModel, importing, context.get());
  if (!module)
    return false;
  PassManager manager(context.get());
  CarryStatePassOptions carry;
  for (const CarriedPair &pair : importing.carry)
    carry.pairs.push_back(pair.output + "=" + pair.input);
  buildImportPipeline(manager, carry);
  MoveBatchFirstPassOptions first;
  first.microbatches = model.plan.rounds();
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

void Compilation::makeContext() {
  DialectRegistry registry;
  registerDialect(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  // A user reads what is wrong, not the program of a whole model behind it.
  context->printOpOnDiagnostic(false);
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
  if (!mayWrite())
    return WrongInput;
  enter("the summary");
  if (!quiet()) {
    printModelLine(model, out);
    printModuleLine(model, out);
    printPlanLine(model, out);
    printRecipeLine(model, out);
    printPaddingLine(model, out);
    if (options.verbose)
      printMatches(model, out);
    out.flush(); // errors of the phases come behind it, also where both go to one file
  }
  makeContext();
  sayTime("read");
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
  for (const Phase &phase : buildPhases(model, memoryLimit())) {
    if (!runPhase(phase))
      return codeOfFailure();
    if (phase.name == "annotate" && !quiet())
      printStagesLine(*module, out);
    if (stopsAfter(phase.name))
      return Done;
  }
  return finish();
}

/// Makes the folder that keeps kernels' code.
static std::error_code openCache(const std::string &folder) {
  if (folder.empty())
    return {};
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return error;
  if (!llvm::sys::fs::is_directory(folder))
    return std::make_error_code(std::errc::not_a_directory);
  return llvm::sys::fs::access(folder, llvm::sys::fs::AccessMode::Write);
}

namespace {

/// What is printed holds names of a model, a plan and files: no terminal takes commands from it.
class PrintableStream : public llvm::raw_ostream {
public:
  explicit PrintableStream(llvm::raw_ostream &out) : out(out) {}
  ~PrintableStream() override { flush(); }

private:
  void write_impl(const char *data, size_t size) override {
    out << format::printable(std::string(data, size), "\n\t");
    out.flush();
    written += size;
  }
  uint64_t current_pos() const override { return written; }

  llvm::raw_ostream &out;
  uint64_t written = 0;
};

} // namespace

int compile(const CompileOptions &options, llvm::raw_ostream &out, FindingSink sink) {
  Finding wrong;
  if (!options.stopAfter.empty() && !llvm::is_contained(phaseNames(), options.stopAfter))
    wrong.message =
        "--stop-after takes one of " + llvm::join(phaseNames(), ", ") + ", found \"" + options.stopAfter + "\"";
  else if (!options.explain.empty() && options.explain != "collectives" && options.explain != "memory")
    wrong.message = "--explain=" + options.explain + " is not supported yet; it takes collectives and memory";
  else if (std::error_code error = openCache(options.cache))
    wrong.message =
        "cannot keep the code of kernels in \"" + options.cache + "\" (--cache or PAR_CACHE): " + error.message();
  if (!wrong.message.empty()) {
    sink(wrong);
    return WrongCommand;
  }
  PrintableStream printable(out);
  return Compilation(options, printable, sink).run();
}

} // namespace par
