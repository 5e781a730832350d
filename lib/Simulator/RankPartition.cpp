// Colour refinement (1-dimensional Weisfeiler-Leman; partition refinement as in Hopcroft's minimisation of automata). A
// rank's first colour is its program. In each round a group of a communicator takes the colours of its members and how
// they lie on hosts, then each rank takes its own colour and those of its groups. It ends with the round that splits no
// class, after at most as many rounds as there are ranks; roles differ by stage, so that two or three are usual.
//
// Why the partition is exact: a simulated start is the latest end of what must come before, and what must come before
// is on the same rank, or on the ranks of a group at the same place of their programs. By induction over time, two
// ranks of a class have the same starts: their programs are one, each group of the one has a group of the other with
// members of the same classes, and durations depend on programs, on members and hosts of groups only.
//
// A collective starts when all members are there, whatever their order: the set of their colours is enough. Sends and
// receives name members by place: where a communicator has some, the order of colours and the rank's own place count.
#include "RankPartition.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <numeric>

using namespace par;
using namespace par::format;

namespace {

/// Numbers that stand for lists, in the order in which they come first.
class Interner {
public:
  uint32_t operator()(std::vector<uint32_t> list) {
    return numbers.try_emplace(std::move(list), numbers.size()).first->second;
  }
  size_t size() const { return numbers.size(); }

private:
  std::map<std::vector<uint32_t>, uint32_t> numbers;
};

class Refiner {
public:
  Refiner(const Bundle &bundle, const Hardware &hardware);
  RankPartition run();

private:
  enum class Use { None, Collectives, Transfers };

  void findUses();
  std::vector<uint32_t> describeHosts(const std::vector<uint32_t> &members, Use use) const;
  void colourGroups();
  /// Returns the number of colours.
  size_t colourRanks();

  const std::vector<Communicator> &communicators;
  const Bundle &bundle;
  const Hardware &hardware;
  std::vector<Use> uses;                                 ///< of each communicator by any program
  std::vector<std::vector<std::vector<uint32_t>>> hosts; ///< of each communicator and group
  std::vector<std::vector<uint32_t>> groupColours;
  std::vector<uint32_t> colours; ///< of each rank
};

} // namespace

Refiner::Refiner(const Bundle &bundle, const Hardware &hardware)
    : communicators(bundle.manifest.communicators), bundle(bundle), hardware(hardware),
      uses(communicators.size(), Use::None), hosts(communicators.size()), groupColours(communicators.size()) {
  findUses();
  for (auto [comm, communicator] : llvm::enumerate(communicators))
    for (const std::vector<uint32_t> &members : communicator.groups)
      hosts[comm].push_back(describeHosts(members, uses[comm]));
  for (const Rank &rank : bundle.manifest.ranks)
    colours.push_back(rank.role);
}

void Refiner::findUses() {
  std::map<std::string_view, size_t> indices;
  for (auto [comm, communicator] : llvm::enumerate(communicators))
    indices.try_emplace(communicator.name, comm);
  for (const Program &program : bundle.programs)
    for (const Block &block : program.blocks)
      for (const Instruction &instruction : block.instructions) {
        bool transfers = instruction.op == Op::Send || instruction.op == Op::Recv;
        if (!transfers && instruction.op != Op::Coll)
          continue;
        auto known = indices.find(program.comms[instruction.comm].name);
        if (known != indices.end())
          uses[known->second] = std::max(uses[known->second], transfers ? Use::Transfers : Use::Collectives);
      }
}

/// Durations depend on this: members and hosts of a collective, members that share a host of transfers.
std::vector<uint32_t> Refiner::describeHosts(const std::vector<uint32_t> &members, Use use) const {
  RankGroup group = hardware.groupOf(llvm::to_vector_of<int64_t>(members));
  std::vector<uint32_t> result{uint32_t(group.members), uint32_t(group.hosts), uint32_t(group.fewest)};
  for (const RankGroup::Units &units : group.wider)
    result.insert(result.end(), {uint32_t(units.count), uint32_t(units.fewest)});
  if (use == Use::Transfers) {
    auto number = [&](auto unitOf) {
      std::map<int64_t, uint32_t> numbers;
      for (uint32_t member : members)
        result.push_back(numbers.try_emplace(unitOf(member), numbers.size()).first->second);
    };
    number([&](uint32_t member) { return hardware.hostOf(member); });
    for (const WiderLink &link : hardware.wider)
      number([&](uint32_t member) { return member / link.ranks; });
  }
  return result;
}

void Refiner::colourGroups() {
  Interner intern;
  for (auto [comm, communicator] : llvm::enumerate(communicators)) {
    groupColours[comm].assign(communicator.groups.size(), 0);
    if (uses[comm] == Use::None)
      continue;
    for (auto [group, members] : llvm::enumerate(communicator.groups)) {
      std::vector<uint32_t> met;
      for (uint32_t member : members)
        met.push_back(colours[member]);
      if (uses[comm] == Use::Collectives) {
        llvm::sort(met);
        met.erase(llvm::unique(met), met.end());
      }
      std::vector<uint32_t> key{uint32_t(comm)};
      llvm::append_range(key, hosts[comm][group]);
      llvm::append_range(key, met);
      groupColours[comm][group] = intern(std::move(key));
    }
  }
}

size_t Refiner::colourRanks() {
  std::vector<std::vector<uint32_t>> keys;
  for (uint32_t colour : colours)
    keys.push_back({colour});
  for (auto [comm, communicator] : llvm::enumerate(communicators)) {
    if (uses[comm] == Use::None)
      continue;
    for (auto [group, members] : llvm::enumerate(communicator.groups))
      for (auto [place, member] : llvm::enumerate(members)) {
        // Group colours contain the communicator: no rank in one group has the key of another one in none.
        keys[member].push_back(groupColours[comm][group]);
        if (uses[comm] == Use::Transfers)
          keys[member].push_back(place);
      }
  }
  Interner intern;
  for (auto [colour, key] : llvm::zip(colours, keys))
    colour = intern(std::move(key));
  return intern.size();
}

RankPartition Refiner::run() {
  size_t before = 0, now = 0;
  do {
    before = now;
    colourGroups();
    now = colourRanks();
  } while (now > before);
  RankPartition result{colours, {}, groupColours};
  // Colours are numbered in the order of their lowest ranks.
  for (auto [rank, colour] : llvm::enumerate(colours))
    if (colour == result.representatives.size())
      result.representatives.push_back(rank);
  return result;
}

RankPartition par::partitionRanks(const Bundle &bundle, const Hardware &hardware) {
  return Refiner(bundle, hardware).run();
}

RankPartition par::separateRanks(const Bundle &bundle) {
  RankPartition result;
  result.classOf.resize(bundle.manifest.ranks.size());
  std::iota(result.classOf.begin(), result.classOf.end(), 0);
  result.representatives = result.classOf;
  for (const Communicator &communicator : bundle.manifest.communicators) {
    std::vector<uint32_t> &groups = result.groupClassOf.emplace_back(communicator.groups.size());
    std::iota(groups.begin(), groups.end(), 0);
  }
  return result;
}
