#include "NativeCode.h"

#include "../Optimize.h"
#include "KeepMasks.h"
#include "OrderSums.h"
#include "PrefetchStreams.h"

#include "par/Phases/Codegen/Codegen.h"

#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace mlir;

namespace par {

std::string getHostIsa() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  auto has = [&](std::initializer_list<StringRef> names) {
    return llvm::all_of(names, [&](StringRef name) { return features.lookup(name); });
  };
  if (!has({"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}))
    return has({"sse4.2", "popcnt", "ssse3"}) ? "x86-64-v2" : llvm::sys::getHostCPUName().str();
  return has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) ? "x86-64-v4" : "x86-64-v3";
}

bool runsHere(StringRef isa) {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  SmallVector<StringRef> needed;
  llvm::X86::getFeaturesForCPU(isa, needed);
  return llvm::all_of(needed, [&](StringRef name) {
    auto known = features.find(name); // "x86-64" needs features that every machine has, and that no list names
    return known == features.end() || known->second;
  });
}

namespace cpu {

static std::unique_ptr<llvm::TargetMachine> createMachine(StringRef isa) {
  return codegen::createMachine("x86_64-unknown-linux-gnu", isa, "", llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                llvm::CodeGenOptLevel::Default);
}

bool isKnownIsa(StringRef isa) {
  // An unknown name would be reported on stderr and compiled for the oldest processor.
  std::unique_ptr<llvm::TargetMachine> machine = createMachine("x86-64");
  if (!machine || !machine->getMCSubtargetInfo()->isCPUStringValid(isa))
    return false;
  // Code for a processor of 32 bits would end the process.
  return createMachine(isa)->getMCSubtargetInfo()->checkFeatures("+64bit");
}

namespace {
/// Drops LLVM's remarks. It prints those about loops with hints (orderSums) that it does not vectorize, even if
/// remarks are not asked for.
struct NoRemarks : llvm::DiagnosticHandler {
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override { return info.getSeverity() == llvm::DS_Remark; }
};
} // namespace

FailureOr<std::string> emitObject(llvm::Module &module, StringRef isa) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(isa);
  if (!machine)
    return failure();
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : module) {
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("target-cpu", isa);
    if (isa == "x86-64-v4")
      function.addFnAttr("prefer-vector-width", "512");
  }
  module.getContext().setDiagnosticHandler(std::make_unique<NoRemarks>());
  keepMasks(module);
  orderSums(module);
  codegen::optimize(module, *machine, /*unroll=*/true, [](llvm::PassBuilder &builder) {
    builder.registerOptimizerLastEPCallback(
        [](llvm::ModulePassManager &passes, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
          passes.addPass(llvm::createModuleToFunctionPassAdaptor(PrefetchStreams()));
        });
  });
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager emitter;
  if (machine->addPassesToEmitFile(emitter, out, nullptr, llvm::CodeGenFileType::ObjectFile))
    return failure();
  emitter.run(module);
  return bytes.str().str();
}

FailureOr<std::string> compileObject(ModuleOp module, StringRef isa) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> native = translateModuleToLLVMIR(module, context);
  if (!native)
    return failure();
  return emitObject(*native, isa);
}

} // namespace cpu
} // namespace par
