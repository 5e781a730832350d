#pragma once

#include "../KernelPlan.h"

namespace par::cuda {

/// The distribution of a kernel's rows over the threads of a GPU. All sizes follow only from shapes, so a kernel adds
/// in the same order on every GPU.
struct LaunchPlan {
  /// `Rows`: a thread computes `perThread` rows, contiguous in memory. `Held`: `members` neighbouring threads compute a
  /// row together and keep it in registers, each `turns` times `perThread` neighbouring elements. `Team`: the same in
  /// loops, with kept values in shared memory. `Columns`: `members` threads compute `perThread` neighbouring rows
  /// together, and neighbouring threads have neighbouring rows: the order in which sums over leading dims read memory.
  enum Kind { Rows, InRegisters, Cooperative, Columns } kind = Rows;
  int64_t rows = 1;
  unsigned perThread = 1, chunksPerThread = 1;
  /// Elements that a thread loads at once in loops: their loads are under way together.
  unsigned itemsPerThread = 1;
  /// For a block: rows (Columns: groups of neighbouring ones) at one time, and threads that share each.
  unsigned blockRows = 256, threadsPerRow = 1;
  uint32_t grid = 1;
  /// One block on a processor is enough: ptxas, which else spills a value or two to have room for more, takes the
  /// registers.
  bool oneBlock = false;
  /// Each reduction's parts are joined before the next one begins. LLVM else joins those of all reductions where their
  /// values are stored, and every part is in a register until then.
  bool joinsAtOnce = false;
  /// Bytes of shared memory for the values of one row, and for the whole block including its reductions.
  uint64_t rowBytes = 0, sharedBytes = 0;
  /// Bytes of the scratch operand that each block has.
  uint64_t scratchBytes = 0;

  uint32_t threads() const { return blockRows * threadsPerRow; }
};

inline constexpr unsigned warp = 32;
/// Bytes of one part of a reduction at most.
inline constexpr unsigned partBytes = 8;
/// Threads of a block at most, and bytes that each of its warps leaves a part of a reduction in.
inline constexpr unsigned maxThreadsPerRow = 512, slotBytes = maxThreadsPerRow / warp * partBytes;

/// Bytes of shared memory that a block may have without asking for more than every GPU gives.
inline constexpr uint64_t sharedLimit = 48 << 10;

/// Options for the plan of a GPU's kernel.
codegen::PlanOptions planOptions();

/// With low register pressure: no row is kept in registers, threads load fewer elements at once, and a processor
/// need not run many blocks.
LaunchPlan chooseLaunch(const codegen::KernelPlan &plan, bool lowRegisterPressure = false);

} // namespace par::cuda
