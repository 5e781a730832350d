// par-compile behind the phases: code, the bundle, its proof and prediction, and what is said of them.
#include "Bubble.h"
#include "Communication.h"
#include "Compilation.h"
#include "KernelTable.h"
#include "MemoryTable.h"

#include "par/Phases/KernelCheck/KernelCheck.h"
#include "par/format/Printable.h"
#include "par/verify/Verify.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace par {

/// Codegen, and the bundle in memory.
std::optional<format::Bundle> Compilation::makeBundle() {
  CodegenOptions codegen;
  codegen.device = options.hostCode ? "cpu" : *model.plan.target.device;
  if (*model.plan.target.isa != "native" && !options.hostCode)
    codegen.isa = *model.plan.target.isa;
  else // the completed plan names what was compiled for
    model.plan.target.isa = {codegen.device == "cuda" ? "sm_90" : getHostIsa(), Origin::automatic()};
  codegen.cache = options.cache;
  codegen.keepIR = options.checkKernels && codegen.device == "cuda"; // what is emulated
  enter("codegen");
  FailureOr<CompiledKernels> compiled = compileKernels(*module, codegen);
  if (failed(compiled))
    return std::nullopt;
  kernels = std::move(*compiled);
  sayTime("codegen");
  if (options.timing && !options.cache.empty())
    out << "cache   " << kernels.cached << " of " << kernels.distinct << " different kernels from " << options.cache
        << "\n";
  std::string reason;
  std::optional<BundleOptions> bundling = bundleOptions(model, *onnxModel, facts, reason);
  if (!bundling) {
    report(options.model, "cannot be read again: " + reason);
    return std::nullopt;
  }
  bundling->copies = tiedCopies;
  enter("bundle");
  FailureOr<format::Bundle> bundle = emitBundle(*module, kernels, *bundling);
  if (failed(bundle))
    return std::nullopt;
  sayTime("bundle");
  return std::move(*bundle);
}

/// The line `checked kernels ...`, from running what was compiled; a kernel that is wrong is a bug of Codegen.
int Compilation::checkCode() {
  KernelCheckCounts counts;
  if (failed(checkKernels(*module, kernels, {}, counts)))
    return Bug;
  sayTime("check");
  if (quiet() || !options.sayCheckedKernels)
    return Done;
  bool emulated = kernels.device == "cuda";
  out << "checked " << counts.kernels << (counts.kernels == 1 ? " kernel" : " different kernels")
      << (emulated ? ", as LLVM optimised them, on emulated threads" : "") << ": " << counts.elements
      << " elements are the interpreter's, nothing else is read or written\n";
  if (!counts.otherIsa.empty())
    out << "  compiled for " << counts.otherIsa << ": this machine does not run code for " << kernels.isa << "\n";
  if (counts.addressesOnly)
    out << "  " << counts.addressesOnly << " of them too large to interpret: run for what they read and write alone\n";
  if (counts.notRun)
    out << "  " << counts.notRun << " of them too large to emulate: not run\n";
  return Done;
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
  bundle.manifest.predictedNs = simulation->step / simulation->calls;
  if (options.emitTrace) {
    writeTrace(*simulation, bundle, out);
    return true;
  }
  if (!quiet())
    out << "predicted " << simulation->describe(describeExpectedBubble(model.plan, bundle, *simulation)) << "\n";
  return true;
}

void Compilation::reportFolder(StringRef message) {
  std::string folder = bundleFolder(options);
  message.consume_front(folder + ": ");
  report(folder, message);
}

bool Compilation::mayWrite() {
  bool only = options.check || options.emitTrace || options.emitKernels || !options.stopAfter.empty() ||
              !options.explain.empty();
  format::Status free = only ? format::Status() : format::checkReplaceable(bundleFolder(options));
  if (!free)
    reportFolder(free.message());
  return bool(free);
}

/// The folder, with a note of what the model's data are: what only plans does not read them.
int Compilation::write(format::Bundle &bundle) {
  std::string reason;
  if (!noteData(bundle.manifest, options.model, reason)) {
    report(options.model, "cannot be read again: " + reason);
    return WrongInput;
  }
  std::string folder = bundleFolder(options);
  format::Expected<format::Manifest> written = format::writeBundle(folder, bundle);
  if (!written) {
    reportFolder(written.message());
    return WrongInput;
  }
  sayTime("write");
  if (!quiet())
    out << "wrote   " << format::printable(folder) << llvm::format(" in %.1f s\n", seconds());
  return Done;
}

int Compilation::finish() {
  std::optional<format::Bundle> bundle = makeBundle();
  if (!bundle)
    return codeOfFailure();
  if (options.emitKernels) {
    printKernels(kernels, *bundle, out);
    return Done;
  }
  if (options.checkKernels) {
    enter("the check of kernels");
    if (int code = checkCode())
      return code;
  }
  std::vector<RoleMemory> memory = measureMemory(*bundle);
  std::optional<uint64_t> limit = memoryLimit();
  if (!quiet()) {
    printMemory(memory, limit, out);
    printCommunication(*bundle, entry(), model, *hardware, out);
  }
  auto waysOut = [&](uint64_t most) { return findWaysOut(*bundle, most); };
  if (!checkMemory(memory, limit, findingAt(model.plan.target.memory.origin), waysOut, sink))
    return CannotBe;
  if (options.explain == "collectives") {
    explainCommunication(*bundle, entry(), model, *hardware, out);
    return Done;
  }
  if (options.explain == "memory") {
    explainMemory(*bundle, out);
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
  return write(*bundle);
}

std::string bundleFolder(const CompileOptions &options) {
  if (!options.output.empty())
    return options.output;
  return llvm::sys::path::stem(llvm::sys::path::filename(options.model)).str() + ".par";
}

} // namespace par
