// Communication: latency by messages in a row, bandwidth by the bytes of rings over each level's links.
#include "Rates.h"
#include "par/Costs/CostTable.h"

#include "llvm/Support/MathExtras.h"

using namespace par;

static int64_t depthOf(int64_t members) { return members <= 1 ? 0 : llvm::Log2_64_Ceil(members); }

int64_t CostTable::collectiveLatency(format::CollKind kind, const RankGroup &group) const {
  int64_t depth = depthOf(llvm::divideCeil(group.members, group.hosts)) * machine.latency +
                  depthOf(group.hosts) * machine.hostLatency;
  return kind == format::CollKind::AllReduce ? 2 * depth : depth;
}

Cost CostTable::collective(format::CollKind kind, int64_t bytes, const RankGroup &group) const {
  int64_t members = group.members, ofHost = llvm::divideCeil(members, group.hosts);
  if (members <= 1)
    return {0};
  __int128 all = bytes, within = 0, between = 0; // bytes within a host, per rank, and bytes between hosts, per link
  switch (kind) {
  case format::CollKind::AllReduce:
    within = 2 * all * (members - 1) / members;
    between = within / group.fewest;
    break;
  case format::CollKind::AllGather:
  case format::CollKind::ReduceScatter:
    within = all * (members - 1);
    between = within / group.fewest;
    break;
  case format::CollKind::AllToAll:
    within = all * (ofHost - 1);
    between = all * (members - ofHost);
    break;
  case format::CollKind::Broadcast:
  case format::CollKind::Reduce:
    within = all;
    between = all / group.fewest;
    break;
  }
  int64_t time = ofHost > 1 ? nanoseconds(within, machine.link) : 0;
  if (group.hosts > 1)
    time = std::max(time, nanoseconds(between, machine.hostLink));
  return {collectiveLatency(kind, group) + time};
}

Link CostTable::link(const RankGroup &ends) const {
  return ends.hosts > 1 && machine.hostLink ? Link{machine.hostLatency, machine.hostLink}
                                            : Link{machine.latency, machine.link};
}

Cost CostTable::send(int64_t bytes, const RankGroup &ends) const {
  Link way = link(ends);
  return {way.latency + nanoseconds(bytes, way.rate)};
}
