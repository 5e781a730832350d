// All facts of a compilation, as values from which reports are made. Absent: not requested, or the compilation stopped
// before.
#pragma once

#include "par/Inspect/Collectives.h"
#include "par/Inspect/Heads.h"
#include "par/Inspect/Kernels.h"
#include "par/Inspect/Memory.h"
#include "par/Inspect/MemoryOverTime.h"
#include "par/Inspect/Plan.h"
#include "par/Inspect/PlanKeys.h"
#include "par/Inspect/Prediction.h"
#include "par/Inspect/RankOrder.h"
#include "par/Inspect/Recompute.h"
#include "par/Inspect/SearchFacts.h"
#include "par/Inspect/Stages.h"
#include "par/Inspect/Timeline.h"
#include "par/Inspect/WaysOut.h"
#include "par/verify/Verify.h"

namespace par {

struct MemoryFacts {
  std::optional<uint64_t> limit; ///< nothing: unlimited
  std::vector<RoleMemory> roles;
};

struct Facts {
  // The plan's.
  std::optional<ModelFacts> model;
  std::optional<ModuleFacts> module;
  std::optional<PlanFacts> plan;
  std::vector<KeyFact> keys;          ///< of the completed plan
  std::optional<SearchFacts> search;  ///< only of --auto and --fit
  std::optional<FitFacts> fit;        ///< only of --fit
  std::optional<RecipeFacts> recipes; ///< only where recipes leave much whole
  std::vector<PaddedDim> padding;
  std::optional<std::vector<PatternMatch>> matches;
  // The bundle's.
  std::vector<StageShare> stages; ///< empty with one stage
  std::vector<UnshardedHeads> heads;
  std::optional<MemoryFacts> memory;
  std::optional<RecomputeFacts> recompute;
  std::optional<std::vector<RoleSaved>> saved;
  std::optional<std::vector<Communication>> communications;
  std::optional<KernelFacts> kernels;
  std::optional<WaysOut> waysOut; ///< only above the memory limit
  std::optional<Prediction> prediction;
  std::optional<Utilization> utilization; ///< only of models with matmuls
  std::optional<RankOrderFacts> order;    ///< only of another order than the mesh's, and of mesh_order: auto
  std::optional<BucketChoice> bucket;     ///< only of collectives.bucket: auto
  std::optional<TimelineFacts> timeline;
  std::vector<RoleOverTime> memoryOverTime;
  std::optional<verify::Proof> proof;
};

} // namespace par
