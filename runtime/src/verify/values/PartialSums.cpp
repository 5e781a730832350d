// V5: a part of a sum over ranks is not taken for the sum. A reader of a value before it is summed over ranks gets one
// rank's part of it. That may be meant: the gradient of a bias is the sum over rows of a part, and is summed over the
// same ranks later. So each value computed from a part is summed over those ranks, or the values computed from it are;
// a value that first reaches state, a result or another rank is not.
#include "JointRun.h"

#include <algorithm>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
class Summed {
public:
  Summed(const JointRun &joint, const Cursor &player, uint32_t comm)
      : joint(joint), player(player), over(groupOf(comm)) {}
  bool operator()(uint32_t made);

private:
  std::vector<uint32_t> groupOf(uint32_t comm) const {
    const Communicator &known = joint.bundle.manifest.communicators[comm];
    std::optional<Membership> own = membershipOf(known, player.ranks.front());
    std::vector<uint32_t> group = own ? known.groups[own->group] : std::vector<uint32_t>();
    std::sort(group.begin(), group.end());
    return group;
  }
  bool sumsOver(uint32_t made) const {
    auto sums = player.sums.find(made);
    return sums != player.sums.end() && std::ranges::any_of(sums->second, [&](uint32_t comm) {
             std::vector<uint32_t> group = groupOf(comm);
             return std::includes(group.begin(), group.end(), over.begin(), over.end());
           });
  }

  const JointRun &joint;
  const Cursor &player;
  std::vector<uint32_t> over; ///< ranks
  std::map<uint32_t, bool> known;
};
} // namespace

/// Values are made of earlier ones, so the walk ends; each is looked at once.
bool Summed::operator()(uint32_t first) {
  std::vector<uint32_t> open{first};
  while (!open.empty()) {
    uint32_t at = open.back();
    open.pop_back();
    if (sumsOver(at) || !known.emplace(at, true).second)
      continue;
    std::vector<std::pair<uint32_t, uint32_t>> users = player.usersOf(at);
    if (users.empty())
      return false;
    for (auto [first, end] : users)
      for (uint32_t user = first; user < end; ++user)
        open.push_back(user);
  }
  return true;
}

std::optional<Counterexample> par::verify::checkPartialSums(const JointRun &joint) {
  for (const JointRun::Early &it : joint.early) {
    const Cursor &player = joint.players[it.player];
    const Made &user = player.made[it.user];
    if (Summed(joint, player, it.comm)(it.user))
      continue;
    const Instruction &sum = player.program->blocks[it.run->block].instructions[it.n];
    return Counterexample{Property::Value,
                          "unreduced: '" + player.program->buffers[sum.operands[0].buffer].name +
                              "' is read before it is summed over '" +
                              joint.bundle.manifest.communicators[it.comm].name + "' in entry " + joint.entry +
                              ", and what is made of that part is not summed",
                          {joint.line(player, *user.run, user.n), joint.line(player, *it.run, it.n)}};
  }
  return std::nullopt;
}
