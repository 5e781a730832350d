#include "par/Base/MachineLevels.h"

using namespace par;

std::vector<MachineLevel> par::levelsOf(const Hardware &hardware) {
  std::vector<std::string> names = hardware.levels;
  if (names.empty())
    names = hardware.hasHosts() ? std::vector<std::string>{"node", "all"} : std::vector<std::string>{"node"};
  std::vector<MachineLevel> levels;
  for (std::string &name : names) {
    size_t index = levels.size();
    // The link of a wider level joins units of the level within it.
    bool isLast = index > 0 && index + 1 == names.size();
    int64_t link = index == 0 ? hardware.link : index == 1 ? hardware.hostLink : hardware.wider[index - 2].link;
    levels.push_back({std::move(name),
                      index == 0 ? hardware.ranks
                      : isLast   ? 0
                                 : hardware.wider[index - 1].ranks,
                      link});
  }
  return levels;
}

const MachineLevel &par::levelOf(const RankGroup &group, llvm::ArrayRef<MachineLevel> levels) {
  size_t level = group.hosts > 1 ? 1 : 0;
  for (auto [index, units] : llvm::enumerate(group.wider))
    if (units.count > 1)
      level = index + 2;
  return levels[std::min(level, levels.size() - 1)];
}
