// Compiles the generated kernels of a module: each distinct body is planned, lowered and compiled once, in parallel
// jobs, and linked into one shared object or one PTX file. Device code that spills registers is compiled a second time
// with fewer values in registers; code that the driver cannot load is refused.
#include "CPU/EmitLoops.h"
#include "CPU/ExpandFormats.h"
#include "CPU/NativeCode.h"
#include "CUDA/Assemble.h"
#include "CUDA/EmitThreads.h"
#include "CUDA/Ptx.h"
#include "ExpandMath.h"
#include "Jobs.h"
#include "LowerBody.h"
#include "Optimize.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Phases/Codegen/KernelTable.h"

#include "mlir/IR/Verifier.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"

#include <set>

using namespace mlir;

namespace par {
namespace {

using codegen::CodeCache, codegen::Job;

/// A kernel's body without its name and the values of its keys: kernels with equal texts are equal.
std::string bodyText(KernelOp kernel) {
  OwningOpRef<KernelOp> anonymous(kernel.clone());
  anonymous->setSymName("k");
  for (auto [i, key] : llvm::enumerate(keysOf(*anonymous))) { // each by its place: a number that is a key, too
    auto type = cast<RankedTensorType>(key.getType());
    key.setValueAttr(DenseElementsAttr::get(type, APInt(64, uint64_t(INT64_MIN) + i)));
  }
  anonymous->walk([](Operation *op) { op->setLoc(UnknownLoc::get(op->getContext())); });
  std::string text;
  llvm::raw_string_ostream out(text);
  anonymous->print(out, OpPrintingFlags().printGenericOpForm().useLocalScope());
  return text;
}

/// A symbol from the kernel's body: its code is the same in every bundle, and bundles differ only by kernels that
/// differ.
std::string symbolOf(StringRef bodyText) {
  return "par_k" +
         llvm::toHex(llvm::SHA1::hash(llvm::arrayRefFromStringRef(bodyText)), /*LowerCase=*/true).substr(0, 16);
}

/// Gives a kernel that shares another's code the values of its own keys.
void takeKeys(KernelInfo &info, KernelOp kernel) {
  SmallVector<ConstantOp> keys = keysOf(kernel);
  auto next = keys.begin();
  for (ImmediateInfo &immediate : info.immediates)
    if (immediate.axes.empty())
      immediate.number = valueOfKey(*next++);
}

uint64_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * getElementBytes(tensor.getElementType());
}

/// Operands in ABI order; which buffer each argument and result has.
codegen::KernelBuffers layOutOperands(KernelOp kernel, KernelInfo &info) {
  codegen::KernelBuffers buffers;
  for (Type type : kernel.getFunctionType().getInputs()) {
    buffers.arguments.push_back(buffers.count++);
    info.operands.push_back({OperandAccess::Read, bytesOf(type)});
  }
  for (auto [number, type] : llvm::enumerate(kernel.getFunctionType().getResults())) {
    int64_t tied = kernel.getTied() ? (*kernel.getTied())[number] : -1;
    buffers.results.push_back(tied >= 0 ? tied : buffers.count);
    if (tied >= 0) {
      info.operands[tied].access = OperandAccess::ReadWrite;
      continue;
    }
    ++buffers.count;
    info.operands.push_back({OperandAccess::Write, bytesOf(type)});
  }
  return buffers;
}

/// A scratch operand after the others.
void addScratch(codegen::KernelBuffers &buffers, KernelInfo &info, uint64_t bytes) {
  info.scratchBytes = bytes;
  if (!bytes)
    return;
  buffers.scratch = buffers.count++;
  info.operands.push_back({OperandAccess::Write, bytes});
}

/// Operations by the costs of the kernel's ops; where a plan holds each element against each in place of sorting them,
/// so many.
int64_t countFlops(KernelOp kernel, const codegen::KernelPlan &plan) {
  int64_t flops = 0;
  for (Operation &op : kernel.getBody().front())
    flops += getCost(&op).flops;
  for (const codegen::Nest &nest : plan.nests)
    if (!nest.sorting && codegen::findSorting(nest.op))
      flops = std::max(flops, 4 * nest.steps());
  return flops;
}

/// Whether a job is only described, or built too.
enum class Building { Facts, Code };

LogicalResult buildLoops(func::FuncOp function, KernelOp kernel, KernelInfo &info, ModuleOp module, Building building) {
  codegen::KernelPlan plan = codegen::planKernel(function);
  codegen::KernelBuffers buffers = layOutOperands(kernel, info);
  if (failed(codegen::checkTied(function, plan, buffers)))
    return failure();
  info.tiles = plan.tiles;
  info.flops = countFlops(kernel, plan);
  addScratch(buffers, info, plan.scratchBytes);
  if (building == Building::Facts)
    return success();
  cpu::emitLoops(function, plan, buffers, info.symbol);
  function->erase();
  codegen::expandMath(module);
  cpu::expandFormats(module);
  return success();
}

LogicalResult buildThreads(func::FuncOp function, KernelOp kernel, KernelInfo &info, ModuleOp module,
                           bool lowRegisterPressure, Building building) {
  codegen::KernelPlan plan = codegen::planKernel(function, cuda::planOptions());
  codegen::KernelBuffers buffers = layOutOperands(kernel, info);
  if (failed(codegen::checkTied(function, plan, buffers)))
    return failure();
  info.flops = countFlops(kernel, plan);
  cuda::LaunchPlan launch = cuda::chooseLaunch(plan, lowRegisterPressure);
  info.launch = GpuLaunch{launch.grid, launch.threads()};
  addScratch(buffers, info, launch.scratchBytes * launch.grid);
  if (building == Building::Facts)
    return success();
  cuda::emitThreads(function, plan, launch, buffers, info.symbol);
  function->erase();
  codegen::expandMath(module);
  return success();
}

/// From a kernel's body to code of threads or loops in a module of its own.
LogicalResult buildKernel(KernelOp kernel, bool gpu, KernelInfo &info, Job &job, Building building) {
  job.module = ModuleOp::create(kernel.getLoc());
  FailureOr<func::FuncOp> function = lowerBody(kernel, *job.module, info.immediates);
  if (failed(function))
    return failure();
  return gpu ? buildThreads(*function, kernel, info, *job.module, job.lowRegisterPressure, building)
             : buildLoops(*function, kernel, info, *job.module, building);
}

/// Kernels of an earlier compilation for the same target.
class EarlierKernels {
public:
  EarlierKernels(const CodegenOptions &options, const CompiledKernels &target) {
    if (!options.earlier || options.keepIR || options.earlier->device != target.device ||
        options.earlier->isa != target.isa)
      return;
    earlier = options.earlier;
    for (const KernelInfo &info : earlier->kernels)
      infos.try_emplace(info.symbol, &info);
  }

  /// Fills `info`, whose symbol is set, and the job; false where no such kernel was compiled.
  bool take(KernelInfo &info, Job &job) const {
    auto found = infos.find(info.symbol);
    if (found == infos.end())
      return false;
    auto code = earlier->code.find(info.symbol);
    if (code == earlier->code.end())
      return false;
    info = *found->second;
    job.object = code->second;
    return true;
  }

private:
  const CompiledKernels *earlier = nullptr;
  llvm::StringMap<const KernelInfo *> infos;
};

/// One shared object of all that was compiled, and the memory functions that it may call.
FailureOr<std::string> linkJobs(ModuleOp module, ArrayRef<Job> jobs, const std::string &isa, CodeCache &cache) {
  std::vector<std::string> objects;
  for (const Job &job : jobs)
    objects.push_back(job.object);
  FailureOr<std::string> support = cache.get({"support", isa}, [&] { return cpu::compileSupport(isa); });
  if (failed(support))
    return codegen::refuseCode(module.getLoc(), isa);
  objects.push_back(std::move(*support));
  std::string error;
  FailureOr<std::string> linked = cpu::linkObjects(objects, error);
  if (failed(linked))
    return module.emitError("cannot link kernels: ") << error;
  return linked;
}

/// A kernel that PTX or machine code gives to the gate, by its symbol.
InFlightDiagnostic refuseKernel(ModuleOp module, const CompiledKernels &out, StringRef symbol, StringRef sm) {
  for (const KernelInfo &info : out.kernels)
    if (info.symbol == symbol)
      return emitError(module.lookupSymbol(info.kernel)->getLoc()) << "kernel @" << info.kernel << " for " << sm << " ";
  return module.emitError() << "kernel " << symbol << " for " << sm << " ";
}

/// Gate: undefined symbols, PTX that the GPU's drivers cannot read, spills.
LogicalResult gateDevice(ModuleOp module, const CompiledKernels &out, const CodegenOptions &options) {
  std::string fault = cuda::findFault(out.ptx, out.isa);
  if (!fault.empty())
    return module.emitError("PTX has ") << fault;
  for (const Cubin &cubin : out.cubins)
    for (const auto &resources : cubin.resources)
      if (resources.second.spillBytes > options.spillLimit)
        return refuseKernel(module, out, resources.first(), cubin.sm)
               << "spills " << resources.second.spillBytes << " bytes, the limit is " << options.spillLimit;
  return success();
}

/// One file of PTX, and machine code from it.
LogicalResult joinDevice(ModuleOp module, std::vector<Job> &jobs, const CodegenOptions &options, CompiledKernels &out) {
  std::vector<std::string> texts;
  for (const Job &job : jobs)
    texts.push_back(job.object);
  for (const KernelInfo &info : out.kernels)
    if (options.keepIR)
      out.ir[info.symbol] = jobOf(jobs, info.symbol).ir;
  out.ptx = cuda::joinPtx(texts);
  out.cubins.clear();
  std::string ptxas = cuda::findPtxas();
  std::vector<std::string> gpus{out.isa};
  if (options.isa == "all")
    gpus = {"sm_80", "sm_90", "sm_100"};
  for (const std::string &sm : gpus) {
    if (ptxas.empty())
      break;
    std::string error;
    FailureOr<cuda::Assembled> made = cuda::assemble(ptxas, out.ptx, sm, error);
    if (failed(made))
      return module.emitError("ptxas makes no code for ") << sm << ": " << error;
    out.cubins.push_back({sm, std::move(made->cubin), std::move(made->resources)});
  }
  return success();
}

/// The number of registers of a thread is only estimated: kernels that spill are compiled once more, with low register
/// pressure. True if there were any.
FailureOr<bool> rebuildSpilled(ModuleOp module, std::vector<Job> &jobs, const CodegenOptions &options,
                               CompiledKernels &out, CodeCache &cache) {
  std::set<std::string> spilled;
  for (const Cubin &cubin : out.cubins)
    for (const auto &resources : cubin.resources)
      if (resources.second.spillBytes > options.spillLimit)
        spilled.insert(resources.first().str());
  bool any = false;
  for (const std::string &symbol : spilled) {
    auto known = llvm::find_if(out.kernels, [&](const KernelInfo &info) { return info.symbol == symbol; });
    if (known == out.kernels.end())
      continue;
    any = true;
    KernelInfo again;
    again.symbol = symbol;
    Job &job = jobOf(jobs, symbol);
    job = Job{.symbol = symbol, .lowRegisterPressure = true};
    if (failed(buildKernel(module.lookupSymbol<KernelOp>(known->kernel), /*gpu=*/true, again, job, Building::Code)))
      return failure();
    if (failed(codegen::compileJob(job, out, options.keepIR, cache)))
      return codegen::refuseCode(job.module->getLoc(), out.isa);
    for (KernelInfo &info : out.kernels)
      if (info.symbol == symbol) {
        again.kernel = info.kernel;
        info = again;
        takeKeys(info, module.lookupSymbol<KernelOp>(info.kernel));
      }
  }
  return any;
}

LogicalResult makeDevice(ModuleOp module, std::vector<Job> &jobs, const CodegenOptions &options, CompiledKernels &out,
                         CodeCache &cache) {
  if (failed(joinDevice(module, jobs, options, out)))
    return failure();
  FailureOr<bool> rebuilt = rebuildSpilled(module, jobs, options, out, cache);
  if (failed(rebuilt) || (*rebuilt && failed(joinDevice(module, jobs, options, out))))
    return failure();
  return gateDevice(module, out, options);
}

} // namespace

/// The target that `options` selects, completed; fails if there is no such target.
static FailureOr<CompiledKernels> chooseTarget(ModuleOp module, const CodegenOptions &options) {
  CompiledKernels out;
  out.device = options.device;
  codegen::prepareThreads(*module.getContext());
  if (options.device == "cuda") {
    out.isa = options.isa.empty() ? "sm_90" : options.isa == "all" ? "sm_80" : options.isa;
    if (!cuda::isKnownSm(out.isa))
      return module.emitError("no GPU that kernels can be made for is called ")
             << out.isa << "; target.isa takes native, all, " << cuda::listSms();
    return out;
  }
  out.isa = options.isa.empty() ? getHostIsa() : options.isa;
  if (!cpu::isKnownIsa(out.isa))
    return module.emitError("no x86-64 processor or level is called ")
           << out.isa << "; target.isa takes native, x86-64-v2 to v4, or LLVM's name of a processor";
  return out;
}

/// Fills `out` with the module's generated kernels, and `jobs` with the distinct ones.
static LogicalResult listKernels(ModuleOp module, const CodegenOptions &options, CompiledKernels &out,
                                 std::vector<Job> &jobs, Building building) {
  bool gpu = out.device == "cuda";
  EarlierKernels earlier(options, out);
  llvm::StringMap<size_t> known; // body text → index in out.kernels
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    if (kernel.getImplementation() != "generated")
      continue;
    auto [entry, isNew] = known.try_emplace(bodyText(kernel), out.kernels.size());
    KernelInfo info;
    if (!isNew) {
      info = out.kernels[entry->second];
      takeKeys(info, kernel);
    } else {
      info.symbol = symbolOf(entry->first());
      Job &job = jobs.emplace_back(Job{.symbol = info.symbol});
      if (earlier.take(info, job)) {
        takeKeys(info, kernel);
        ++out.reused;
      } else if (failed(buildKernel(kernel, gpu, info, job, building))) {
        return failure();
      }
    }
    info.kernel = kernel.getSymName().str();
    out.kernels.push_back(std::move(info));
  }
  return success();
}

FailureOr<CompiledKernels> tabulateKernels(ModuleOp module, const CodegenOptions &options) {
  loadLoweringDialects(*module.getContext());
  FailureOr<CompiledKernels> target = chooseTarget(module, options);
  std::vector<Job> jobs;
  if (failed(target) || failed(listKernels(module, options, *target, jobs, Building::Facts)))
    return failure();
  target->distinct = jobs.size();
  return target;
}

FailureOr<CompiledKernels> compileKernels(ModuleOp module, const CodegenOptions &options) {
  loadLoweringDialects(*module.getContext());
  FailureOr<CompiledKernels> target = chooseTarget(module, options);
  if (failed(target))
    return failure();
  CompiledKernels out = std::move(*target);
  std::vector<Job> jobs;
  CodeCache cache(options.keepIR ? "" : options.cache);
  if (failed(listKernels(module, options, out, jobs, Building::Code)))
    return failure();
  if (jobs.empty())
    return out;
  if (failed(codegen::compileJobs(jobs, out, options, cache)))
    return failure();
  out.distinct = jobs.size();
  out.cached = cache.found();
  if (out.device == "cuda") {
    if (failed(makeDevice(module, jobs, options, out, cache)))
      return failure();
  } else {
    FailureOr<std::string> object = linkJobs(module, jobs, out.isa, cache);
    if (failed(object))
      return failure();
    out.object = std::move(*object);
  }
  for (Job &job : jobs)
    out.code[job.symbol] = std::move(job.object);
  return out;
}

} // namespace par
