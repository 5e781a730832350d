#include "Ptx.h"

#include "../Optimize.h"

#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace par::cuda {

namespace {

/// GPUs that kernels are made for, with the PTX version that the first driver for them reads.
struct Gpu {
  StringRef sm;
  unsigned ptx;
};
constexpr Gpu gpus[] = {{"sm_80", 80}, {"sm_86", 80}, {"sm_89", 80}, {"sm_90", 80}, {"sm_100", 86}, {"sm_120", 87}};

const Gpu *findGpu(StringRef sm) {
  const Gpu *gpu = llvm::find_if(gpus, [&](const Gpu &each) { return each.sm == sm; });
  return gpu == std::end(gpus) ? nullptr : gpu;
}

} // namespace

bool isKnownSm(StringRef sm) { return findGpu(sm); }

std::string listSms() {
  return llvm::join(llvm::map_range(gpus, [](const Gpu &gpu) { return gpu.sm; }), ", ");
}

static std::unique_ptr<llvm::TargetMachine> createMachine(StringRef sm) {
  // Without a version of its own LLVM asks for one that is older than the GPU, and ends the process.
  std::string features = ("+ptx" + llvm::Twine(findGpu(sm)->ptx)).str();
  return codegen::createMachine("nvptx64-nvidia-cuda", sm, features, std::nullopt, std::nullopt,
                                llvm::CodeGenOptLevel::Aggressive);
}

FailureOr<DeviceCode> compileDevice(ModuleOp module, StringRef sm, bool keepIR, bool lowRegisterPressure) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> device = translateModuleToLLVMIR(module, context);
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(sm);
  if (!device || !machine)
    return failure();
  device->setTargetTriple(machine->getTargetTriple());
  device->setDataLayout(machine->createDataLayout());
  codegen::optimize(*device, *machine, /*unroll=*/!lowRegisterPressure);
  DeviceCode code;
  if (keepIR) {
    llvm::raw_string_ostream out(code.ir);
    device->print(out, nullptr);
  }
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager emitter;
  if (machine->addPassesToEmitFile(emitter, out, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return failure();
  emitter.run(*device);
  code.ptx = text.str().str();
  return code;
}

std::string joinPtx(const std::vector<std::string> &modules) {
  std::string all;
  for (const std::string &module : modules) {
    size_t end = module.find(".address_size 64");
    end = end == std::string::npos ? 0 : module.find('\n', end) + 1;
    all += all.empty() ? module : module.substr(end);
  }
  return all;
}

std::string findFault(StringRef ptx, StringRef sm) {
  SmallVector<StringRef> lines;
  ptx.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    line = line.trim();
    if (line.starts_with("//"))
      continue;
    if (line.contains(".extern") || line.contains("__nv_") || line.contains("vprintf"))
      return ("a symbol that it does not define: " + line).str();
    unsigned version;
    StringRef number = line;
    if (!number.consume_front(".version "))
      continue;
    auto [major, minor] = number.split('.');
    if (major.getAsInteger(10, version) || version * 10 + (minor.empty() ? 0 : minor[0] - '0') > findGpu(sm)->ptx)
      return ("PTX version " + number + ", which the first drivers for " + sm + " do not read").str();
  }
  return "";
}

} // namespace par::cuda
