// Communication in the form that the runtime executes.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Collectives/Passes.h.inc"

struct CollectivesOptions {
  int64_t bucket = 26214400;    ///< bytes of a bucket; 0: every value by itself
  bool overlap = true;          ///< collectives that can run beside compute do
  unsigned window = 1;          ///< how many of a kind may be under way
  bool hierarchical = false;    ///< in two levels everywhere, not only where that is quicker
  std::string hardware = "cpu"; ///< the file that costs are predicted from
  std::string said;             ///< place of the plan that says `hierarchical`
};
/// The phase: passes and gate.
void buildCollectivesPipeline(mlir::OpPassManager &manager, const CollectivesOptions &options = {});
/// `par-opt --par-collectives`.
void registerCollectivesPipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Collectives/Passes.h.inc"

} // namespace par
