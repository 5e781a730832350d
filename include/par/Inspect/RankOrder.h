// The order of the mesh's axes by which ranks are numbered, and the traffic along each axis.
#pragma once

#include "par/Compiler/Compiler.h"
#include "par/Inspect/Collectives.h"
#include "par/Simulator/Simulator.h"

namespace par {

/// Communication along one axis (or several at once, "dp+tp"), on the rank that spends most time in it.
struct AxisTraffic {
  std::string axis;
  int64_t ranks = 1;  ///< of a group
  std::string level;  ///< the innermost of the machine's that holds each group
  uint64_t bytes = 0; ///< of whole tensors, a step; one role's
  int64_t ns = 0;     ///< a step, hidden beside compute or not
};

struct RankOrderFacts {
  std::vector<std::string> axes; ///< outermost first
  std::optional<RankOrderChoice> choice;
  std::vector<AxisTraffic> traffic; ///< the most time first
};

/// Nothing if ranks are numbered as the mesh is written and Par was not asked.
std::optional<RankOrderFacts> describeRankOrder(const Compiled &compiled, llvm::ArrayRef<Communication> communications,
                                                const Simulation &simulation);

} // namespace par
