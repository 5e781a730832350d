// Every rank lists the communication of all programs alike, so that no rank waits for one that another leaves out. A
// collective is measured in all groups of its communicator at once, as programs run them; a send between the first two
// ranks that have one of its size.
#include "Links.h"

#include <algorithm>
#include <map>
#include <set>

namespace par::calibrate {

using format::CollKind;
using format::Instruction;
using format::Op;
using format::Program;

namespace {

template <typename Visit>
void forEachInstruction(const Program &program, Op op, Visit &&visit) {
  for (const format::Block &block : program.blocks)
    for (const Instruction &instruction : block.instructions)
      if (instruction.op == op)
        visit(instruction);
}

comm::Communication describe(const Instruction &instruction) {
  comm::Communication c;
  c.op = instruction.op;
  c.kind = instruction.coll;
  c.reduction = instruction.reduction;
  c.type = instruction.type;
  c.n = instruction.n;
  c.peer = instruction.root;
  c.id = "calibrate";
  return c;
}

using CollectiveKey = std::tuple<std::string, CollKind, format::Reduction, format::DType, uint64_t, uint32_t>;

/// Other types are gathered, and not added up.
bool isFloat(format::DType type) {
  using enum format::DType;
  return type == F32 || type == F64 || type == F16 || type == BF16;
}

/// An all-reduce is a reduce-scatter and an all-gather of its parts. A compiler that reads the rows chooses between
/// them, so where one is in use all are measured.
void addAlternatives(const format::Manifest &manifest, std::map<CollectiveKey, Link> &found) {
  constexpr CollKind kinds[] = {CollKind::AllReduce, CollKind::AllGather, CollKind::ReduceScatter};
  std::vector<Link> known;
  for (const auto &[key, link] : found)
    if (isFloat(link.what.type) && std::find(std::begin(kinds), std::end(kinds), link.what.kind) != std::end(kinds))
      known.push_back(link);
  for (const Link &link : known) {
    const format::RankGroups &groups = manifest.findCommunicator(link.communicator)->groups;
    uint64_t members = groups[groups.find(link.ranks.front())->group].size();
    bool isWhole = link.what.kind == CollKind::AllReduce;
    for (CollKind kind : kinds) {
      Link other = link;
      other.what.kind = kind;
      if (isWhole && kind != CollKind::AllReduce)
        other.what.n = (link.what.n + members - 1) / members;
      if (!isWhole && kind == CollKind::AllReduce)
        other.what.n = link.what.n * members;
      const comm::Communication &c = other.what;
      found.try_emplace({other.communicator, kind, c.reduction, c.type, c.n, c.peer}, other);
    }
  }
}

/// Ranks of the roles whose programs have a collective, by what it is.
void addCollectives(const format::Bundle &bundle, std::vector<Link> &links) {
  using Key = CollectiveKey;
  std::map<Key, Link> found;
  for (uint32_t role = 0; role < bundle.programs.size(); ++role) {
    const Program &program = bundle.programs[role];
    std::set<Key> own;
    forEachInstruction(program, Op::Coll, [&](const Instruction &it) {
      const std::string &name = program.comms[it.comm].name;
      Key key{name, it.coll, it.reduction, it.type, it.n, it.root};
      if (!own.insert(key).second)
        return;
      Link &link = found.try_emplace(key, Link{Op::Coll, name, describe(it), {}}).first->second;
      const format::Communicator &communicator = *bundle.manifest.findCommunicator(name);
      for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank)
        if (bundle.manifest.ranks[rank].role == role && communicator.groups.find(rank))
          link.ranks.push_back(rank);
    });
  }
  addAlternatives(bundle.manifest, found);
  for (auto &[key, link] : found)
    links.push_back(std::move(link));
}

void addSends(const format::Bundle &bundle, std::vector<Link> &links) {
  std::map<std::pair<std::string, uint64_t>, Link> found; // by communicator and bytes
  for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank) {
    const Program &program = bundle.programs[bundle.manifest.ranks[rank].role];
    forEachInstruction(program, Op::Send, [&](const Instruction &it) {
      const std::string &name = program.comms[it.comm].name;
      const format::Communicator &communicator = *bundle.manifest.findCommunicator(name);
      if (format::isSentToNobody(communicator, it, 0, rank))
        return;
      auto place = communicator.groups.find(rank);
      uint32_t to = communicator.groups[place->group][it.peer.front()];
      found.try_emplace({name, it.n * format::sizeOf(it.type)}, Link{Op::Send, name, describe(it), {rank, to}});
    });
  }
  for (auto &[key, link] : found)
    links.push_back(std::move(link));
}

/// This rank's part of a link on its scratch memory.
class Part {
public:
  Part(const Bench &bench, const Link &link, uint32_t rank) : c(link.what) {
    auto mine = std::find(link.ranks.begin(), link.ranks.end(), rank);
    if (mine == link.ranks.end())
      return;
    takesPart = true;
    c.communicator = comm::indexOf(bench.bundle.manifest, link.communicator, rank);
    members = bench.table[c.communicator].ranks;
    for (const format::Comm &own : bench.program.comms)
      if (own.name == link.communicator)
        queue = own.queue;
    if (link.op == Op::Send)
      c.peer = memberOf(link.ranks[mine == link.ranks.begin() ? 1 : 0]);
    if (link.op == Op::Send && mine != link.ranks.begin())
      c.op = Op::Recv;
    bool inPlace = c.op == Op::Coll &&
                   (c.kind == CollKind::AllReduce || c.kind == CollKind::Broadcast || c.kind == CollKind::Reduce);
    c.in = bench.scratch();
    c.out = inPlace ? bench.scratch() : bench.scratch(aligned(bytesOf(c, members.size()).in));
  }

  static uint64_t aligned(uint64_t bytes) {
    return (bytes + format::gpuAlignment - 1) / format::gpuAlignment * format::gpuAlignment;
  }

  comm::Communication c;
  std::vector<uint32_t> members;
  uint32_t queue = 0;
  bool takesPart = false;

private:
  uint32_t memberOf(uint32_t rank) const {
    return static_cast<uint32_t>(std::find(members.begin(), members.end(), rank) - members.begin());
  }
};

int64_t countHosts(const std::vector<uint32_t> &ranks, const std::vector<std::string> &hosts) {
  std::set<std::string> names;
  for (uint32_t rank : ranks)
    names.insert(hosts[rank]);
  return static_cast<int64_t>(names.size());
}

RowKey rowOf(const Link &link, const Part &part, const std::vector<std::string> &hosts) {
  auto bytes = static_cast<int64_t>(link.what.n * format::sizeOf(link.what.type));
  if (link.op == Op::Send)
    return {"sends", {}, {bytes, countHosts(link.ranks, hosts)}};
  return {"collectives",
          {std::string(format::toString(link.what.kind))},
          {bytes, static_cast<int64_t>(part.members.size()), countHosts(part.members, hosts)}};
}

} // namespace

std::vector<Link> linksOf(const format::Bundle &bundle) {
  std::vector<Link> links;
  addCollectives(bundle, links);
  addSends(bundle, links);
  return links;
}

uint64_t scratchForLinks(const std::vector<Link> &links, std::span<const comm::Members> table) {
  uint64_t bytes = 0;
  for (const Link &link : links) {
    uint64_t members = 1;
    for (const comm::Members &group : table)
      if (group.name == link.communicator)
        members = std::max<uint64_t>(members, group.ranks.size());
    CommunicationBytes each = bytesOf(link.what, members);
    bytes = std::max(bytes, Part::aligned(each.in) + Part::aligned(std::max(each.in, each.out)));
  }
  return bytes;
}

void addLink(const Bench &bench, const Link &link, MadeEntry &entry) {
  Part part(bench, link, bench.rank);
  entry.communicate(part.c, part.queue);
}

void measureLinks(Bench &bench, const std::vector<Link> &links, const std::vector<std::string> &hosts, double seconds,
                  Rows &rows) {
  uint32_t rank = bench.rank;
  for (const Link &link : links) {
    Part part(bench, link, rank);
    auto add = [&](MadeEntry &entry) { entry.communicate(part.c, part.queue); };
    double ns = timeOfSharedStep(bench, add, part.takesPart, seconds / static_cast<double>(links.size()));
    bool isShared = link.op == Op::Send || part.members.size() > 1; // one member moves nothing
    if (part.takesPart && isShared && rank == link.ranks.front())
      rows.add(rowOf(link, part, hosts), ns);
  }
}

} // namespace par::calibrate
