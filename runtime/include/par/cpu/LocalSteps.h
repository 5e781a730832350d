// Everything that a rank does on its own memory, on this machine's processor: kernels and calls of a program,
// bound once, and copies, fills, feeds and fetches.
#pragma once

#include "par/cpu/KernelObject.h"
#include "par/cpu/Matmul.h"
#include "par/cpu/ThreadPool.h"
#include "par/device/Device.h"
#include "par/kernels/PackedConvolution.h"

#include <unordered_map>

namespace par::cpu {

class LocalSteps {
public:
  /// Binds the kernels and calls of the program of `options`; setLibraryThreads() comes before. Throws
  /// core::Failure.
  LocalSteps(const core::DeviceOptions &options, const MatmulChoices &choices);

  /// Keeps filters packed that no instruction of the program writes. From then on forgetFilters() must precede a run
  /// if another one than these wrote state since the last run.
  void keepFilters(const format::Program &program);
  void forgetFilters();
  /// The filters that are packed; their names tell instruction, layout and scale.
  std::vector<core::Prepared> keptFilters() const;
  /// Filters that keptFilters() gave in a process whose state was the same. They stay until they are forgotten.
  void takeFilters(const std::vector<core::Prepared> &given);
  /// Bytes of packed filters.
  uint64_t keptBytes() const;

  /// Runs a step that is neither communication nor signal nor wait. Its arenas must be this process's memory.
  void execute(const core::ExpandedEntry &entry, const core::Command &step, core::EntryHost &host);

private:
  struct BoundKernel {
    kernels::KernelFunction function;
    uint32_t tiles;
    /// Counts its tiles itself: a compiler of another version may have cut it otherwise. Null for generated code.
    const kernels::BuiltinKernel *builtin;
  };
  struct BoundCall {
    std::unique_ptr<Matmul> matmul;
    bool bias, workspace;
  };
  void bindKernels(const core::DeviceOptions &options);
  void runKernel(const BoundKernel &kernel, void *const *operands, const uint64_t *immediates);
  void runCall(const BoundCall &call, void *const *operand);

  KernelObject object;
  std::vector<BoundKernel> kernels; ///< by number in the program, as calls
  std::vector<BoundCall> calls;
  /// The instructions whose filters are kept, by their place among these in the program.
  std::unordered_map<const format::Instruction *, size_t> placeOf;
  std::vector<kernels::PackedConvolution> convolutions;
  ThreadPool pool;
};

/// Whether a step is a communication, or a group of them.
bool communicates(format::Op op);

} // namespace par::cpu
