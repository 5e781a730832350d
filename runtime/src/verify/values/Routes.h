// The ways of contents between ranks, found once for all communications that go the same way.
#pragma once

#include "RankClasses.h"
#include "par/format/Manifest.h"

#include <map>
#include <optional>

namespace par::verify {

struct Channel {
  uint32_t comm, player, peer;
  auto operator<=>(const Channel &) const = default;
};

/// From which ranks others get contents.
struct Sources {
  std::vector<RankClasses::Move> moves; ///< which content each rank gets, and the rank whose it is
  std::vector<uint32_t> players;        ///< that give the contents
  std::vector<Channel> channels;        ///< through which they come, if they are sent
  uint64_t number = 0;                  ///< of a communicator and a member
  bool transfer = false;                ///< from one side to the other one

  /// A spread there, and whether ranks keep their classes.
  struct Moved {
    RankClasses::Spread spread;
    bool own;
  };
  Moved moved(RankClasses &classes, const std::vector<RankClasses::Spread> &from);
  /// The same from one spread.
  Moved moved(RankClasses &classes, RankClasses::Spread from) {
    if (!last || last->first != from)
      last = {from, moved(classes, std::vector<RankClasses::Spread>{from})};
    return last->second;
  }
  /// Ranks with the same content.
  RankClasses::Spread apart(RankClasses &classes);

private:
  std::map<std::vector<RankClasses::Spread>, Moved> known;
  std::optional<std::pair<RankClasses::Spread, Moved>> last;
  std::optional<RankClasses::Spread> parts;
};

class Routes {
public:
  Routes(const format::Manifest &manifest, const std::vector<uint32_t> &playerOf)
      : manifest(manifest), playerOf(playerOf) {}
  /// Once `playerOf` is known.
  void readGroups();

  /// noIndex: the rank is in no group.
  uint32_t memberOf(uint32_t comm, uint32_t rank) const { return comms[comm].member[rank]; }
  /// How many ranks are in the rank's group; 1 if there is none.
  uint32_t membersOf(uint32_t comm, uint32_t rank) const;
  /// Which members of their groups the ranks of a player are.
  const std::vector<bool> &membersIn(uint32_t comm, uint32_t player, const std::vector<uint32_t> &ranks);
  /// Ranks of a player receive through one channel or several, each from that member of its group.
  Sources &sentTo(uint32_t comm, uint32_t player, const std::vector<uint32_t> &ranks, uint32_t peer);
  /// Ranks of a party, in order, get what that member of their group gives.
  Sources &gatheredBy(uint32_t comm, const std::vector<uint32_t> &party, const std::vector<uint32_t> &ranks,
                      uint32_t member);

private:
  struct Groups {
    std::vector<uint32_t> group, member; ///< [rank]; noIndex: not in one
  };
  /// That member of the rank's group.
  uint32_t sourceOf(uint32_t comm, uint32_t member, uint32_t rank) const;

  const format::Manifest &manifest;
  const std::vector<uint32_t> &playerOf; ///< [rank]
  std::vector<Groups> comms;
  std::map<Channel, Sources> receives;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Sources>> gathers; ///< by communicator and first of the party
  std::map<std::pair<uint32_t, uint32_t>, std::vector<bool>> members;
};

} // namespace par::verify
