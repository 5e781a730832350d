#include "Jobs.h"

#include "CPU/NativeCode.h"
#include "CUDA/Ptx.h"
#include "Optimize.h"

#include <thread>

using namespace mlir;

namespace par::codegen {

LogicalResult refuseCode(Location loc, const std::string &isa) {
  return emitError(loc) << "LLVM makes no code of this for " << isa;
}

Job &jobOf(std::vector<Job> &jobs, StringRef symbol) {
  return *llvm::find_if(jobs, [&](const Job &job) { return job.symbol == symbol; });
}

/// Object or PTX of one job.
static FailureOr<std::string> makeCode(Job &job, const CompiledKernels &out, bool keepIR) {
  if (failed(lowerToLLVM(*job.module)))
    return failure();
  if (out.device != "cuda")
    return cpu::compileObject(*job.module, out.isa);
  FailureOr<cuda::DeviceCode> code = cuda::compileDevice(*job.module, out.isa, keepIR, job.lowRegisterPressure);
  if (failed(code))
    return failure();
  job.ir = std::move(code->ir);
  return std::move(code->ptx);
}

LogicalResult compileJob(Job &job, const CompiledKernels &out, bool keepIR, CodeCache &cache) {
  std::string text; // of some thousand lines, so only where it is read
  if (cache.keeps())
    llvm::raw_string_ostream(text) << *job.module;
  FailureOr<std::string> code = cache.get({out.device, out.isa, job.lowRegisterPressure ? "sparing" : "", text},
                                          [&] { return makeCode(job, out, keepIR); });
  if (failed(code))
    return failure();
  job.object = std::move(*code);
  return success();
}

LogicalResult compileJobs(std::vector<Job> &jobs, const CompiledKernels &out, const CodegenOptions &options,
                          CodeCache &cache) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++)
      jobs[i].failed = jobs[i].module && failed(compileJob(jobs[i], out, options.keepIR, cache));
  };
  // A context that is told to have one thread guards nothing against others.
  auto toDo = llvm::find_if(jobs, [](const Job &job) { return bool(job.module); });
  bool alone = toDo == jobs.end() || !toDo->module.get().getContext()->isMultithreadingEnabled();
  std::vector<std::thread> others;
  for (unsigned i = 1; !alone && i < options.threads && i < jobs.size(); ++i)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
  for (Job &job : jobs)
    if (job.failed)
      return refuseCode(job.module->getLoc(), out.isa);
  return success();
}

} // namespace par::codegen
