// The levels of a machine by their names: hosts, racks, all.
#pragma once

#include "par/Base/Hardware.h"

namespace par {

/// One level: units of so many ranks, which are numbered one unit after the other.
struct MachineLevel {
  std::string name;
  int64_t ranks = 0; ///< of a unit; 0: all are in one
  int64_t link = 0;  ///< bytes per microsecond of a rank to others in its unit, but not in one of the level within
};

/// Innermost first. A file without `levels` has "node", and "all" where it says how nodes are joined.
std::vector<MachineLevel> levelsOf(const Hardware &hardware);

/// The innermost level of which one unit holds the whole group.
const MachineLevel &levelOf(const RankGroup &group, llvm::ArrayRef<MachineLevel> levels);

} // namespace par
