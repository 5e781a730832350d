// The user's plan as far as it can be read before a search has given it a mesh.
#pragma once

#include "par/Compiler/Model.h"

namespace par {

/// Rules over axes that a search makes (`shard: {fc1.weight: {0: tp}}`, `zero: {over: dp}`), and several stages, need a
/// mesh to be read. It is read for the smallest one that lets it be.
struct SaidPlan {
  bool hasMesh = false;                ///< the user's own
  bool namesAxes = false;              ///< lines of it need the axes pp, dp and tp, of one rank too
  int64_t stages = 0;                  ///< of its pipeline, as it says or as its cuts do; 0: open
  std::vector<std::string> assumption; ///< settings with which it was read; none where it has a mesh
};

/// The plan under the assumption, and what is known of it; nothing if it has an error, which reading it under
/// `said.assumption` reports.
std::optional<Plan> readSaidPlan(const PlanText &text, SaidPlan &said);

} // namespace par
