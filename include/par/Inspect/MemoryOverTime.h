// Bytes that the ranks of a role hold during the predicted step.
#pragma once

#include "par/Simulator/Simulator.h"

namespace par {

/// Live bytes by purpose at one time. State (parameters and the optimizer's states) is always there.
struct MemoryMoment {
  int64_t time = 0; ///< ns
  uint64_t grads = 0, saved = 0, buffers = 0;
};

/// Values of one name, type and purpose that live at the peak, those of several layers together.
struct PeakValues {
  std::string name;    ///< of a tensor, or module and source line that make it, `h.*.mlp`; empty: not known
  std::string type;    ///< `bf16[2x64x256]`
  std::string purpose; ///< `params`, `states`, `grads`, `saved`, `buffers`
  size_t count = 0;
  uint64_t bytes = 0; ///< of all
};

struct RoleOverTime {
  std::string role;
  uint64_t params = 0, states = 0;
  uint64_t peak = 0;                 ///< the bound; more than all that lives at once by what offsets leave free
  int64_t peakNs = 0;                ///< when most lives
  std::vector<MemoryMoment> moments; ///< each holds until the next one; the most of each part of the step is kept
  std::vector<PeakValues> largest;   ///< at that time, the largest first
};

/// On the first rank of each role. `maxMoments`: as many are kept, of the ten largest values of the peak `maxValues`.
std::vector<RoleOverTime> describeMemoryOverTime(const format::Bundle &bundle, llvm::StringRef entry,
                                                 const Simulation &simulation, size_t maxMoments = 400,
                                                 size_t maxValues = 10);

} // namespace par
