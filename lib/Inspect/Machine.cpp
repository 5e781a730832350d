#include "par/Inspect/Machine.h"

#include "par/Base/MachineLevels.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace par {

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
    os << (index ? ", " : ": ") << llvm::format("%.4g GB/s", double(level.link) / 1000);
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
