#pragma once

#include "../KernelPlan.h"

namespace par::cuda {

/// How the threads of a GPU share a kernel's rows. All sizes follow from shapes alone, so that a kernel adds
/// in the same order on every GPU.
struct LaunchPlan {
  /// `Rows`: a thread does `perThread` rows, one after another in memory. `Held`: `members` neighbouring
  /// threads do a row together and keep it in registers, each `turns` times `perThread` neighbouring
  /// elements. `Team`: likewise in loops, what is kept in shared memory. `Columns`: `members` threads do
  /// `perThread` neighbouring rows together, and neighbouring threads are at neighbouring rows, which is how
  /// sums over leading dims read memory.
  enum Kind { Rows, Held, Team, Columns } kind = Rows;
  int64_t rows = 1;
  unsigned perThread = 1, turns = 1;
  /// Elements that a thread has at hand in loops before it goes on: their loads are under way together.
  unsigned atHand = 1;
  /// Of a block: rows (Columns: groups of neighbouring ones) at one time, and threads that share each.
  unsigned blockRows = 256, members = 1;
  uint32_t grid = 1;
  /// One block on a processor is enough: ptxas, which else spills a value or two to have room for more, takes the
  /// registers.
  bool oneBlock = false;
  /// Bytes of shared memory for the values of one row, and of the whole block with what its reductions need.
  uint64_t rowBytes = 0, sharedBytes = 0;
  /// Bytes of the scratch operand that each block has.
  uint64_t scratchBytes = 0;

  uint32_t threads() const { return blockRows * members; }
};

inline constexpr unsigned warp = 32;
/// Bytes of one part of a reduction at most.
inline constexpr unsigned partBytes = 8;
/// Threads of a block at most, and bytes that each of its warps leaves a part of a reduction in.
inline constexpr unsigned maxMembers = 512, slotBytes = maxMembers / warp * partBytes;

/// Bytes of shared memory that a block may have without asking for more than every GPU gives.
inline constexpr uint64_t sharedLimit = 48 << 10;

/// What the plan of a kernel for a GPU is made with.
codegen::PlanOptions planOptions();

/// `sparing`: with values in registers; no row is held, threads have less at hand, and a processor need not hold many
/// blocks.
LaunchPlan chooseLaunch(const codegen::KernelPlan &plan, bool sparing = false);

} // namespace par::cuda
