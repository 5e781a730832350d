#include "par/Inspect/Machine.h"

#include "par/Base/MachineLevels.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace par {

/// Bytes per microsecond of a rank's link to others of one unit of the level.
static int64_t linkOf(const Hardware &hardware, size_t level) {
  return level == 0 ? hardware.link : level == 1 ? hardware.hostLink : hardware.wider[level - 2].link;
}

std::string describeMachine(const Hardware &hardware, int64_t ranks, std::optional<uint64_t> limit) {
  std::vector<MachineLevel> levels = levelsOf(hardware);
  auto holdsAll = [&](const MachineLevel &level) { return level.ranks == 0 || level.ranks >= ranks; };
  if (auto outer = find_if(levels, holdsAll); outer != levels.end())
    levels.erase(std::next(outer), levels.end());
  std::string text;
  raw_string_ostream os(text);
  os << ranks << " x " << hardware.name;
  if (levels.size() == 1)
    os << (ranks > 1 ? " in one " + levels.front().name : "");
  else
    for (const MachineLevel &level : ArrayRef(levels).drop_back())
      os << ", " << level.ranks << " a " << level.name;
  for (auto [index, level] : enumerate(ranks > 1 ? levels : std::vector<MachineLevel>())) {
    os << (index ? ", " : ": ") << llvm::format("%.4g GB/s", double(linkOf(hardware, index)) / 1000);
    if (index == 0)
      os << " a rank" << (levels.size() > 1 ? " within a " + level.name : "");
    else
      os << " over " << level.name;
  }
  if (limit)
    os << formatv("; {0:f1} GiB a rank", double(*limit) / (1 << 30));
  return text;
}

} // namespace par
