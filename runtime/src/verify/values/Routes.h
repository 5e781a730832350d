// The ways of contents between ranks, found once for all communications that go the same way.
#pragma once

#include "RankClasses.h"
#include "par/format/Manifest.h"

#include <array>
#include <optional>

namespace par::verify {

struct Channel {
  uint32_t comm, player, peer;
  auto operator<=>(const Channel &) const = default;
};

/// From which ranks others get contents.
struct Sources {
  std::vector<uint32_t> which;   ///< [rank]: which content
  std::vector<uint32_t> source;  ///< [rank]: the rank whose it is; noIndex: none
  std::vector<uint32_t> players; ///< that give the contents
  std::vector<Channel> channels; ///< through which they come, if they are sent
  uint64_t number = 0;           ///< of a communicator and a member
  bool transfer = false;         ///< from one side to the other one
  std::map<std::vector<RankClasses::Spread>, std::pair<RankClasses::Spread, bool>> moves;
  std::optional<RankClasses::Spread> apart; ///< ranks with the same content
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
  /// Ranks of a party get what that member of their group gives.
  Sources &gatheredBy(uint32_t comm, const std::vector<uint32_t> &party, uint32_t member);

private:
  struct Groups {
    std::vector<uint32_t> group, member;               ///< [rank]; noIndex: not in one
    std::map<uint32_t, std::vector<uint32_t>> sources; ///< by member: [rank] that member of its group
  };
  const std::vector<uint32_t> &sourceOf(uint32_t comm, uint32_t member);

  const format::Manifest &manifest;
  const std::vector<uint32_t> &playerOf; ///< [rank]
  std::vector<Groups> comms;
  std::map<Channel, Sources> receives;
  std::map<std::array<uint32_t, 3>, Sources> gathers; ///< by communicator, member and first of the party
  std::map<std::pair<uint32_t, uint32_t>, std::vector<bool>> members;
};

} // namespace par::verify
