#ifndef PAR_LIB_CODEGEN_CUDA_LAUNCHPLAN_H
#define PAR_LIB_CODEGEN_CUDA_LAUNCHPLAN_H

#include "../KernelPlan.h"

namespace par::cuda {

/// How the threads of a GPU share a kernel's rows. All sizes follow from shapes alone, so that a kernel adds
/// in the same order on every GPU.
struct LaunchPlan {
  /// `Rows`: a thread does `perThread` rows, one after another in memory. `Team`: `members` neighbouring
  /// threads do a row together. `Columns`: likewise, but neighbouring threads are at neighbouring rows, which
  /// is how sums over leading dims read memory.
  enum Kind { Rows, Team, Columns } kind = Rows;
  int64_t rows = 1;
  unsigned perThread = 1;
  /// Of a block: rows at one time, and threads that share each.
  unsigned blockRows = 256, members = 1;
  uint32_t grid = 1;
  /// Bytes of shared memory for the values of one row, and of the whole block with what its reductions need.
  uint64_t rowBytes = 0, sharedBytes = 0;

  uint32_t threads() const { return blockRows * members; }
};

/// Bytes of shared memory that a block may have without asking for more than every GPU gives.
inline constexpr uint64_t sharedLimit = 48 << 10;

/// What the plan of a kernel for a GPU is made with.
codegen::PlanOptions planOptions();

LaunchPlan chooseLaunch(const codegen::KernelPlan &plan);

} // namespace par::cuda

#endif
