#pragma once

#include "par/Dialect/Par.h"

#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <vector>

namespace par {

struct CompiledKernels;

/// Target and limits of compiled kernels.
struct CodegenOptions {
  /// "cpu" or "cuda".
  std::string device = "cpu";
  /// cpu: a level of the x86-64 psABI ("x86-64", "x86-64-v3", "x86-64-v4") or a processor LLVM knows; empty: the best
  /// level of this machine. cuda: "sm_80", "sm_90", ...; empty: sm_90; "all": PTX for sm_80, and cubins for sm_80,
  /// sm_90, sm_100.
  std::string isa;
  /// cuda: bytes that a kernel may spill; more is an error. Known only where ptxas is.
  uint64_t spillLimit = 0;
  /// cuda: keep the LLVM IR of each kernel in CompiledKernels::ir.
  bool keepIR = false;
  /// Threads that optimise and emit kernels; the result does not depend on it.
  unsigned threads = 2;
  /// Kernels of an earlier compilation, whose code is taken where device, isa and body are the same; null: none. Not
  /// used with keepIR.
  const CompiledKernels *earlier = nullptr;
  /// Folder that keeps the code of kernels between compilations, by all that it depends on (CodeCache.h); empty: none
  /// does. With keepIR it is not used.
  std::string cache;
};

/// How a kernel uses the buffer of an operand.
enum class OperandAccess { Read, Write, ReadWrite };

struct OperandInfo {
  OperandAccess access = OperandAccess::Read;
  /// Bytes from the operand's begin that the kernel may touch. Booleans take one byte.
  uint64_t bytes = 0;
};

/// An immediate: coordinate(axes[which]) times the sizes of the axes after it, in the mesh of the rank that launches. A
/// `par.axis_index over axes` is the sum of its immediates, so one kernel serves meshes of different sizes. Without
/// axes it is a number, the key of random numbers: layers that differ only in their keys share their code.
struct ImmediateInfo {
  llvm::SmallVector<std::string> axes;
  unsigned which = 0;
  int64_t number = 0;
};

/// Launch of a kernel on a GPU: blocks, and threads of each, both only along x. Shared memory is static.
struct GpuLaunch {
  uint32_t grid = 0, threads = 0;
};

/// Resources of a kernel on a GPU, as reported by ptxas.
struct KernelResources {
  unsigned registers = 0;
  uint64_t stackBytes = 0, spillBytes = 0, sharedBytes = 0;
};

/// One generated kernel, as a launch sees it. ABI of the CPU: void k(void *const *ptr, const uint64_t *imm, uint32_t
/// tile0, uint32_t tile1), computes tiles [tile0, tile1) of `tiles`. ABI of a GPU: .visible .entry k(.u64 ptr0, ...,
/// .u64 imm0, ...).
struct KernelInfo {
  /// Symbol of the par.kernel.
  std::string kernel;
  /// Symbol in the object; kernels with equal bodies share it.
  std::string symbol;
  /// `ptr` in this order: the kernel's arguments; its results that are tied to no argument; if scratchBytes
  /// is not 0, a scratch buffer (Write). A tied argument is ReadWrite. No operands may overlap.
  std::vector<OperandInfo> operands;
  uint64_t scratchBytes = 0;
  uint32_t tiles = 1;
  std::vector<ImmediateInfo> immediates;
  /// Operations of one launch: the costs of its ops, or those of the code if they are more.
  int64_t flops = 0;
  /// cuda: set.
  std::optional<GpuLaunch> launch;
};

/// Machine code of all kernels for one GPU.
struct Cubin {
  std::string sm;
  std::string bytes;
  /// By symbol.
  llvm::StringMap<KernelResources> resources;
};

struct CompiledKernels {
  /// A shared object (ELF, x86-64) that needs nothing, leaves no symbol undefined and runs nothing when
  /// loaded. Empty if the module has no generated kernel.
  std::string object;
  /// cuda, instead of `object`: PTX of all kernels, and machine code where ptxas was found.
  std::string ptx;
  std::vector<Cubin> cubins;
  /// cuda, with keepIR: by symbol.
  llvm::StringMap<std::string> ir;
  /// Object file or PTX of each kernel, by symbol, for reuse in later compilations.
  llvm::StringMap<std::string> code;
  /// "cpu" or "cuda".
  std::string device = "cpu";
  /// The isa that was compiled for.
  std::string isa;
  /// One entry for every kernel with the implementation "generated", in module order.
  std::vector<KernelInfo> kernels;
  /// How many different kernels these are, of how many the cache had the code, and of how many an earlier compilation.
  unsigned distinct = 0, cached = 0, reused = 0;
};

/// Compiles the module's generated kernels. Fails, with an error at the op, where a body holds an op without
/// a lowering. The module is not changed.
llvm::FailureOr<CompiledKernels> compileKernels(mlir::ModuleOp module, const CodegenOptions &options = {});

/// The best psABI level of this machine ("x86-64-v3"), or its plain processor name if it has none.
std::string getHostIsa();

/// Whether this machine runs code for a level or processor that LLVM knows.
bool runsHere(llvm::StringRef isa);

} // namespace par
