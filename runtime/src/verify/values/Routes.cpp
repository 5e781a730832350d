#include "Routes.h"
#include "verify/Names.h"

#include <algorithm>

using namespace par::format;
using namespace par::verify;

void Routes::readGroups() {
  for (const Communicator &comm : manifest.communicators) {
    Groups &here = comms.emplace_back();
    here.group.assign(playerOf.size(), noIndex);
    here.member.assign(playerOf.size(), noIndex);
    for (uint32_t group = 0; group < comm.groups.size(); ++group)
      for (uint32_t member = 0; member < comm.groups[group].size(); ++member)
        here.group[comm.groups[group][member]] = group, here.member[comm.groups[group][member]] = member;
  }
}

uint32_t Routes::sourceOf(uint32_t comm, uint32_t member, uint32_t rank) const {
  uint32_t group = comms[comm].group[rank];
  const auto *members = group == noIndex ? nullptr : &manifest.communicators[comm].groups[group];
  return members && member < members->size() ? (*members)[member] : noIndex;
}

uint32_t Routes::membersOf(uint32_t comm, uint32_t rank) const {
  uint32_t group = comms[comm].group[rank];
  return group == noIndex ? 1 : uint32_t(manifest.communicators[comm].groups[group].size());
}

Sources &Routes::sentTo(uint32_t comm, uint32_t player, const std::vector<uint32_t> &ranks, uint32_t peer) {
  auto [it, fresh] = receives.try_emplace({comm, player, peer});
  Sources &from = it->second;
  if (!fresh)
    return from;
  from.number = mix(uint64_t(comm + 1) << 32 | peer, player);
  from.transfer = true;
  std::map<Channel, uint32_t> known;
  for (uint32_t rank : ranks) {
    uint32_t source = sourceOf(comm, peer, rank);
    Channel channel{comm, source == noIndex ? noIndex : playerOf[source], comms[comm].member[rank]};
    auto [place, first] = known.try_emplace(channel, uint32_t(from.channels.size()));
    if (first)
      from.channels.push_back(channel);
    if (source != noIndex)
      from.moves.push_back({rank, source, place->second});
  }
  return from;
}

Sources &Routes::gatheredBy(uint32_t comm, const std::vector<uint32_t> &party, const std::vector<uint32_t> &ranks,
                            uint32_t member) {
  std::vector<Sources> &all = gathers[{comm, party.front()}];
  if (member < all.size() && all[member].number)
    return all[member];
  if (member >= all.size())
    all.resize(member + 1);
  Sources &from = all[member];
  from.number = uint64_t(comm + 1) << 32 | member;
  std::map<uint32_t, uint32_t> known;
  for (uint32_t rank : ranks) {
    uint32_t source = sourceOf(comm, member, rank);
    if (source == noIndex || !std::ranges::count(party, playerOf[source]))
      continue;
    auto [place, first] = known.try_emplace(playerOf[source], uint32_t(from.players.size()));
    if (first)
      from.players.push_back(place->first);
    from.moves.push_back({rank, source, place->second});
  }
  return from;
}

Sources::Moved Sources::moved(RankClasses &classes, const std::vector<RankClasses::Spread> &from) {
  auto [it, fresh] = known.try_emplace(from, 0, transfer);
  if (fresh)
    it->second.spread = classes.moved(from, moves, it->second.own);
  return it->second;
}

RankClasses::Spread Sources::apart(RankClasses &classes) {
  if (parts)
    return *parts;
  std::vector<RankClasses::Key> keys;
  for (const RankClasses::Move &move : moves)
    keys.push_back({move.rank, move.which});
  return *(parts = classes.byKeys(keys, number));
}

const std::vector<bool> &Routes::membersIn(uint32_t comm, uint32_t player, const std::vector<uint32_t> &ranks) {
  auto [it, fresh] = members.try_emplace({comm, player});
  if (fresh) {
    it->second.resize(membersOf(comm, ranks.front()));
    for (uint32_t rank : ranks)
      if (uint32_t member = comms[comm].member[rank]; member < it->second.size())
        it->second[member] = true;
  }
  return it->second;
}
