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

const std::vector<uint32_t> &Routes::sourceOf(uint32_t comm, uint32_t member) {
  auto [it, fresh] = comms[comm].sources.try_emplace(member);
  for (uint32_t rank = 0; fresh && rank < playerOf.size(); ++rank) {
    uint32_t group = comms[comm].group[rank];
    const auto *members = group == noIndex ? nullptr : &manifest.communicators[comm].groups[group];
    it->second.push_back(members && member < members->size() ? (*members)[member] : noIndex);
  }
  return it->second;
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
  const std::vector<uint32_t> &source = sourceOf(comm, peer);
  from.which.assign(playerOf.size(), 0);
  from.source.assign(playerOf.size(), noIndex);
  from.number = mix(uint64_t(comm + 1) << 32 | peer, player);
  from.transfer = true;
  std::map<Channel, uint32_t> known;
  for (uint32_t rank : ranks) {
    Channel channel{comm, source[rank] == noIndex ? noIndex : playerOf[source[rank]], comms[comm].member[rank]};
    auto [place, first] = known.try_emplace(channel, uint32_t(from.channels.size()));
    if (first)
      from.channels.push_back(channel);
    from.which[rank] = place->second;
    from.source[rank] = source[rank];
  }
  return from;
}

Sources &Routes::gatheredBy(uint32_t comm, const std::vector<uint32_t> &party, uint32_t member) {
  auto [it, fresh] = gathers.try_emplace({comm, member, party.front()});
  Sources &from = it->second;
  if (!fresh)
    return from;
  from.source = sourceOf(comm, member);
  from.which.assign(playerOf.size(), 0);
  from.number = uint64_t(comm + 1) << 32 | member;
  std::map<uint32_t, uint32_t> known;
  for (uint32_t rank = 0; rank < playerOf.size(); ++rank) {
    if (from.source[rank] == noIndex || !std::ranges::count(party, playerOf[from.source[rank]]))
      continue;
    auto [place, first] = known.try_emplace(playerOf[from.source[rank]], uint32_t(from.players.size()));
    if (first)
      from.players.push_back(place->first);
    from.which[rank] = place->second;
  }
  return from;
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
