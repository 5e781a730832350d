// Communication: latency by messages in a row, bandwidth by the bytes of rings over each level's links.
#include "Nearby.h"
#include "Rates.h"
#include "par/Costs/CostTable.h"
#include "par/format/Curve.h"

#include "llvm/Support/MathExtras.h"

using namespace par;

static int64_t depthOf(int64_t members) { return members <= 1 ? 0 : llvm::Log2_64_Ceil(members); }

int64_t CostTable::collectiveLatency(format::CollKind kind, const RankGroup &group) const {
  const Hardware &machine = hardware();
  int64_t depth = depthOf(llvm::divideCeil(group.members, group.hosts)) * machine.latency;
  int64_t latency = machine.hostLatency, units = group.hosts; // of the links that join them, from hosts outward
  for (auto [level, link] : llvm::enumerate(machine.wider)) {
    int64_t outer = group.wider[level].count;
    depth += depthOf(llvm::divideCeil(units, outer)) * latency;
    latency = link.latency;
    units = outer;
  }
  depth += depthOf(units) * latency;
  return kind == format::CollKind::AllReduce ? 2 * depth : depth;
}

namespace {

/// Bytes of a collective over each kind of link.
struct RingBytes {
  __int128 within = 0;  ///< a host, of each rank
  __int128 leaving = 0; ///< all that leaves a unit, or of an all_to_all what each rank sends to other units
};

} // namespace

/// Bytes where `ofUnit` members are in a unit, a host or a wider one.
static RingBytes bytesOf(format::CollKind kind, __int128 all, int64_t members, int64_t ofUnit) {
  switch (kind) {
  case format::CollKind::AllReduce:
    return {2 * all * (members - 1) / members, 2 * all * (members - 1) / members};
  case format::CollKind::AllGather:
  case format::CollKind::ReduceScatter:
    return {all * (members - 1), all * (members - 1)};
  case format::CollKind::AllToAll:
    return {all * (ofUnit - 1), all * (members - ofUnit)};
  case format::CollKind::Broadcast:
  case format::CollKind::Reduce:
    return {all, all};
  }
  return {};
}

static int64_t modelOf(format::CollKind kind, int64_t bytes, const RankGroup &group, const CostTable &costs) {
  const Hardware &machine = costs.hardware();
  int64_t members = group.members, ofHost = llvm::divideCeil(members, group.hosts);
  if (members <= 1)
    return 0;
  // Each member of a unit has its share of the way out, and rings use those of the unit with the fewest members.
  auto timeOut = [&](int64_t units, int64_t fewest, int64_t link) {
    RingBytes ring = bytesOf(kind, bytes, members, llvm::divideCeil(members, units));
    return units > 1 ? nanoseconds(kind == format::CollKind::AllToAll ? ring.leaving : ring.leaving / fewest, link) : 0;
  };
  int64_t time = ofHost > 1 ? nanoseconds(bytesOf(kind, bytes, members, ofHost).within, machine.link) : 0;
  time = std::max(time, timeOut(group.hosts, group.fewest, machine.hostLink));
  for (auto [level, link] : llvm::enumerate(machine.wider))
    time = std::max(time, timeOut(group.wider[level].count, group.wider[level].fewest, link.link));
  return costs.collectiveLatency(kind, group) + time;
}

Cost CostTable::collective(format::CollKind kind, int64_t bytes, const RankGroup &group) const {
  Nearby rows(Nearby::messages);
  for (const auto &[row, ns] : hardware().measured.collectives) {
    if (row.kind != kind || group.members <= 1)
      continue;
    if (row.bytes == bytes && row.members == group.members && row.hosts == group.hosts)
      rows.addExact(ns);
    else
      rows.add({{bytes, row.bytes}, {group.members, row.members}, {group.hosts, row.hosts}}, 0, ns, [&] {
        RankGroup measured(row.members);
        measured.hosts = row.hosts;
        measured.fewest = std::max<int64_t>(row.members / row.hosts, 1);
        return modelOf(kind, row.bytes, measured, *this);
      });
  }
  return rows.costOf(modelOf(kind, bytes, group, *this));
}

Link CostTable::link(const RankGroup &ends) const {
  const Hardware &machine = hardware();
  Link found{machine.latency, machine.link};
  if (ends.hosts > 1 && machine.hostLink)
    found = {machine.hostLatency, machine.hostLink};
  for (auto [level, link] : llvm::enumerate(machine.wider))
    if (ends.wider[level].count > 1)
      found = {link.latency, link.link};
  return found;
}

Cost CostTable::send(int64_t bytes, const RankGroup &ends) const {
  auto modelOf = [&](int64_t bytes, const Link &way) { return way.latency + nanoseconds(bytes, way.rate); };
  Nearby rows(Nearby::messages);
  for (const auto &[row, ns] : hardware().measured.sends) {
    if ((row.hosts > 1) != (ends.hosts > 1))
      continue;
    RankGroup pair(2);
    pair.hosts = row.hosts;
    if (row.bytes == bytes)
      rows.addExact(ns);
    else
      rows.add({{bytes, row.bytes}}, 0, ns, [&, &bytes = row.bytes] { return modelOf(bytes, link(pair)); });
  }
  return rows.costOf(modelOf(bytes, link(ends)));
}

int64_t CostTable::share(const RankGroup &group) const {
  const Hardware &machine = hardware();
  int64_t share = group.hosts > 1 ? machine.hostShare : machine.share;
  for (auto [level, link] : llvm::enumerate(machine.wider))
    if (group.wider[level].count > 1)
      share = link.share;
  return share;
}

/// Without rows 0; nothing takes no time.
static int64_t alongRows(llvm::ArrayRef<MeasuredRow<TimeShape>> rows, int64_t time) {
  if (rows.empty() || time <= 0)
    return 0;
  std::vector<format::Point> points{{0, 0}};
  for (const auto &[row, ns] : rows)
    points.push_back({row.ns, ns});
  return format::alongLine(std::move(points), time);
}

int64_t CostTable::meeting(const Arrivals &arrivals) const {
  // Between two ranks whose times differ by more than the spread, only the later one's counts.
  int64_t spread = alongRows(hardware().measured.spread, arrivals.computed);
  int64_t later = std::max<int64_t>(spread - arrivals.apart, 0);
  return later + alongRows(hardware().measured.wakeups, arrivals.waited + later);
}
