#include "CPU/EmitLoops.h"
#include "CPU/ExpandFormats.h"
#include "CPU/ExpandMath.h"
#include "CPU/NativeCode.h"
#include "LowerBody.h"

#include "mlir/IR/Verifier.h"

#include <atomic>
#include <thread>

using namespace mlir;

namespace par {
namespace {

/// One kernel on its way from body to object.
struct Job {
  OwningOpRef<ModuleOp> module;
  std::string object;
  bool failed = false;
};

/// A kernel's body without its name: what makes kernels equal.
std::string bodyText(KernelOp kernel) {
  OwningOpRef<KernelOp> anonymous(kernel.clone());
  anonymous->setSymName("k");
  anonymous->walk([](Operation *op) { op->setLoc(UnknownLoc::get(op->getContext())); });
  std::string text;
  llvm::raw_string_ostream out(text);
  anonymous->print(out, OpPrintingFlags().printGenericOpForm().useLocalScope());
  return text;
}

uint64_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * cpu::elementBytes(tensor.getElementType());
}

/// Operands in ABI order; which buffer each argument and result has.
cpu::KernelBuffers layOutOperands(KernelOp kernel, KernelInfo &info) {
  cpu::KernelBuffers buffers;
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

/// From a kernel's body to loops in a module of its own.
LogicalResult buildKernel(KernelOp kernel, KernelInfo &info, Job &job) {
  job.module = ModuleOp::create(kernel.getLoc());
  FailureOr<func::FuncOp> function = lowerBody(kernel, *job.module, info.immediates);
  if (failed(function))
    return failure();
  cpu::KernelPlan plan = cpu::planKernel(*function);
  cpu::KernelBuffers buffers = layOutOperands(kernel, info);
  if (failed(cpu::checkTied(*function, plan, buffers)))
    return failure();
  info.tiles = plan.tiles;
  info.scratchBytes = plan.scratchBytes;
  if (plan.scratchBytes) {
    buffers.scratch = buffers.count++;
    info.operands.push_back({OperandAccess::Write, plan.scratchBytes});
  }
  cpu::emitLoops(*function, plan, buffers, info.symbol);
  function->erase();
  if (failed(cpu::expandMath(*job.module)))
    return failure();
  cpu::expandFormats(*job.module);
  return success();
}

/// LLVM refuses what it was given. No input is known that it does refuse, so no test quotes this.
LogicalResult refuse(Location loc, const std::string &isa) {
  return emitError(loc) << "LLVM makes no code of this for " << isa;
}

/// Lowers and compiles all jobs on a few threads. Each has its own module and LLVM context.
LogicalResult compileJobs(std::vector<Job> &jobs, const std::string &isa, unsigned threads) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++) {
      FailureOr<std::string> object = failure();
      if (succeeded(cpu::lowerToLLVM(*jobs[i].module)))
        object = cpu::compileObject(*jobs[i].module, isa);
      jobs[i].failed = failed(object);
      if (succeeded(object))
        jobs[i].object = std::move(*object);
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads && i < jobs.size(); ++i)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
  for (Job &job : jobs)
    if (job.failed)
      return refuse(job.module->getLoc(), isa);
  return success();
}

/// One shared object of all that was compiled, and the memory functions that it may call.
FailureOr<std::string> linkJobs(ModuleOp module, std::vector<Job> &jobs, const std::string &isa) {
  std::vector<std::string> objects;
  for (Job &job : jobs)
    objects.push_back(std::move(job.object));
  FailureOr<std::string> support = cpu::compileSupport(isa);
  if (failed(support))
    return refuse(module.getLoc(), isa);
  objects.push_back(std::move(*support));
  std::string error;
  FailureOr<std::string> linked = cpu::linkObjects(objects, error);
  if (failed(linked))
    return module.emitError("cannot link kernels: ") << error;
  return linked;
}

} // namespace

FailureOr<CompiledKernels> compileKernels(ModuleOp module, const CodegenOptions &options) {
  loadLoweringDialects(*module.getContext());
  cpu::prepareThreads(*module.getContext());
  CompiledKernels out;
  out.isa = options.isa.empty() ? getHostIsa() : options.isa;
  if (!cpu::isKnownIsa(out.isa))
    return module.emitError("no x86-64 processor or level is called ") << out.isa;
  std::vector<Job> jobs;
  llvm::StringMap<size_t> known; // body text → index in out.kernels
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    if (kernel.getImplementation() != "generated")
      continue;
    auto [entry, isNew] = known.try_emplace(bodyText(kernel), out.kernels.size());
    KernelInfo info;
    if (!isNew) {
      info = out.kernels[entry->second];
    } else {
      info.symbol = "par_k" + std::to_string(jobs.size());
      if (failed(buildKernel(kernel, info, jobs.emplace_back())))
        return failure();
    }
    info.kernel = kernel.getSymName().str();
    out.kernels.push_back(std::move(info));
  }
  if (jobs.empty())
    return out;
  if (failed(compileJobs(jobs, out.isa, options.threads)))
    return failure();
  FailureOr<std::string> object = linkJobs(module, jobs, out.isa);
  if (failed(object))
    return failure();
  out.object = std::move(*object);
  return out;
}

} // namespace par
