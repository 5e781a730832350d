// Ranks folded by an equitable partition against every rank by itself, on random bundles of up to 64 ranks: all
// timestamps are the same.
#include "ToyBundles.h"
#include "par/Simulator/Simulator.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <iostream>
#include <random>

using namespace par;
using namespace par::format;

namespace {

/// A job of one to four roles, whose ranks run a random sequence of local work, collectives, transfers and groups of
/// collectives on several queues. Every rank has its part of the sequence in its order, so that nothing waits for ever.
class RandomJob {
public:
  explicit RandomJob(uint32_t seed) : random(seed) {}
  Bundle build();

private:
  /// A communicator, and which roles take part in it; of transfers the sender's role and the receiver's.
  struct Link {
    std::string name;
    std::vector<uint32_t> roles;
    uint32_t senders = 0; ///< of each receiver; 0: collectives
  };

  uint32_t below(uint32_t limit) { return random() % limit; }
  bool oneIn(uint32_t count) { return below(count) == 0; }
  std::vector<uint32_t> shuffled(std::vector<uint32_t> list) {
    std::shuffle(list.begin(), list.end(), random);
    return list;
  }

  void placeRanks();
  void addCollectives(const std::string &name);
  void addTransfers(const std::string &name);
  void addStep();
  void addLocal(toy::ProgramBuilder &program);
  void addCommunication(const Link &link);
  std::string aBuffer() { return "b" + std::to_string(below(4)); }

  std::mt19937 random;
  Bundle bundle;
  std::vector<std::vector<uint32_t>> ranksOf; ///< of each role
  std::vector<toy::ProgramBuilder> programs;
  std::vector<Link> links;
  uint32_t events = 0;
};

} // namespace

void RandomJob::placeRanks() {
  uint32_t roles = 1 + below(4);
  bool equal = !oneIn(3);
  uint32_t width = 1 + below(16);
  std::vector<uint32_t> roleOf;
  for (uint32_t role = 0; role < roles; ++role)
    roleOf.insert(roleOf.end(), equal ? width : 1 + below(16), role);
  if (oneIn(3))
    roleOf = shuffled(roleOf);
  ranksOf.resize(roles);
  for (auto [rank, role] : llvm::enumerate(roleOf)) {
    bundle.manifest.ranks.push_back({role, {uint32_t(rank)}});
    ranksOf[role].push_back(rank);
  }
}

/// Groups of all ranks of one or two roles, in the order of ranks or in none, of one size or of several.
void RandomJob::addCollectives(const std::string &name) {
  Link link{name, {below(ranksOf.size())}};
  if (uint32_t other = below(ranksOf.size()); other != link.roles[0] && oneIn(2))
    link.roles.push_back(other);
  std::vector<uint32_t> all;
  for (uint32_t role : link.roles)
    llvm::append_range(all, ranksOf[role]);
  if (oneIn(2))
    all = shuffled(all);
  RankGroups::Lists groups;
  bool equal = !oneIn(3);
  for (size_t at = 0, size = 1 + below(8); at < all.size(); at += size) {
    if (!equal)
      size = 1 + below(8);
    groups.emplace_back(all.begin() + at, all.begin() + std::min(all.size(), at + size));
  }
  bundle.manifest.communicators.push_back({name, groups});
  links.push_back(std::move(link));
}

/// Groups of one or two senders and then a receiver; the senders that are left over send to no rank.
void RandomJob::addTransfers(const std::string &name) {
  uint32_t from = below(ranksOf.size()), to = below(ranksOf.size());
  if (from == to)
    return;
  if (ranksOf[from].size() < ranksOf[to].size())
    std::swap(from, to);
  std::vector<uint32_t> senders = oneIn(3) ? shuffled(ranksOf[from]) : ranksOf[from];
  uint32_t each = senders.size() >= 2 * ranksOf[to].size() && oneIn(2) ? 2 : 1;
  RankGroups::Lists groups;
  auto sender = senders.begin();
  for (uint32_t receiver : ranksOf[to]) {
    groups.emplace_back(sender, sender + each).push_back(receiver);
    sender += each;
  }
  for (; sender != senders.end(); ++sender)
    groups.push_back({*sender});
  bundle.manifest.communicators.push_back({name, groups});
  links.push_back({name, {from, to}, each});
}

void RandomJob::addLocal(toy::ProgramBuilder &program) {
  static const char *queues[] = {"compute", "copy", "data"};
  std::string queue = queues[below(3)], buffer = aBuffer();
  if (!oneIn(3)) {
    program.fill(queue, 1, 0, buffer);
    return;
  }
  std::string event = "e" + std::to_string(events++);
  program.event(event);
  program.signal(queue, event);
  program.wait(queues[below(3)], event);
}

void RandomJob::addCommunication(const Link &link) {
  uint64_t n = oneIn(4) ? 0 : below(64); // an empty shard takes no time where messages have no latency
  std::string queue = oneIn(2) ? "data" : "pipe", buffer = aBuffer();
  if (link.senders) {
    programs[link.roles[0]].send(queue, link.name, link.senders, n, buffer, 1);
    for (uint32_t sender = 0; sender < link.senders; ++sender)
      programs[link.roles[1]].recv(queue, link.name, sender, n, buffer, 1);
    return;
  }
  uint32_t count = 1 + oneIn(3); // two are a group
  auto kind = CollKind(below(3));
  for (uint32_t role : link.roles) {
    if (count > 1)
      programs[role].group(queue, count);
    for (uint32_t each = 0; each < count; ++each)
      programs[role].collective(queue, link.name, kind, n, buffer, 1);
  }
}

void RandomJob::addStep() {
  if (!links.empty() && oneIn(2))
    addCommunication(links[below(links.size())]);
  else
    addLocal(programs[below(programs.size())]);
}

Bundle RandomJob::build() {
  placeRanks();
  for (uint32_t count = below(4), each = 0; each < count; ++each)
    addCollectives("group" + std::to_string(each));
  for (uint32_t count = below(4), each = 0; each < count; ++each)
    addTransfers("pair" + std::to_string(each));
  for (uint32_t role = 0; role < ranksOf.size(); ++role) {
    toy::ProgramBuilder &program = programs.emplace_back("role" + std::to_string(role),
                                                         std::vector<std::string>{"compute", "copy", "data", "pipe"});
    for (int64_t buffer = 0; buffer < 4; ++buffer)
      program.buffer("b" + std::to_string(buffer), format::BufferKind::Temp, {int64_t(1) << buffer});
    for (const Link &link : links)
      if (llvm::is_contained(link.roles, role))
        program.comm(link.name, "data");
  }
  uint32_t blocks = 1 + below(3), microbatches = 1 + below(4);
  for (uint32_t block = 0; block < blocks; ++block) {
    for (toy::ProgramBuilder &program : programs)
      program.block("block" + std::to_string(block));
    for (uint32_t steps = 5 + below(30), step = 0; step < steps; ++step)
      addStep();
  }
  for (uint32_t microbatch = 0; microbatch < microbatches; ++microbatch)
    for (uint32_t block = 0; block < blocks; ++block)
      for (toy::ProgramBuilder &program : programs)
        program.run("train", "block" + std::to_string(block), microbatch);
  for (const toy::ProgramBuilder &program : programs)
    bundle.programs.push_back(program.program);
  return bundle;
}

/// 1 byte a ns; links of another host take longer.
static Hardware hardwareOf(uint32_t seed) {
  Hardware hardware;
  hardware.f32 = hardware.f64 = int64_t(1) << 30;
  hardware.memory = hardware.link = 1000;
  hardware.latency = seed % 3;
  hardware.ranks = seed % 5 == 0 ? 0 : 1 + seed % 8;
  hardware.hostLink = hardware.ranks && seed % 2 ? 300 : 0;
  hardware.hostLatency = 7 * hardware.latency;
  hardware.share = seed % 4 * 100;
  hardware.hostShare = seed % 3 * 50;
  if (hardware.hostLink && seed % 7 < 3)
    hardware.wider = {{2 * hardware.ranks, 200, 11, 30}};
  return hardware;
}

static auto fieldsOf(const PlayedInstruction &node) {
  return std::tuple(node.queue, node.block, node.instruction, node.run, node.communication, node.start, node.duration,
                    node.waited);
}

static void expectSameTimes(const Simulation &folded, const Simulation &all) {
  EXPECT_EQ(folded.step, all.step);
  ASSERT_EQ(folded.ranks.size(), all.ranks.size());
  for (uint32_t rank = 0; rank < all.ranks.size(); ++rank) {
    auto ofFolded = folded.instructionsOf(rank), ofAll = all.instructionsOf(rank);
    ASSERT_EQ(ofFolded.size(), ofAll.size());
    for (auto [one, other] : llvm::zip(ofFolded, ofAll))
      ASSERT_EQ(fieldsOf(one), fieldsOf(other)) << "rank " << rank;
    const RankTime &one = folded.ranks[rank], &other = all.ranks[rank];
    EXPECT_EQ(std::tuple(one.compute, one.communication, one.core, one.idle),
              std::tuple(other.compute, other.communication, other.core, other.idle));
  }
  ASSERT_EQ(folded.memory.size(), all.memory.size());
  for (auto [one, other] : llvm::zip(folded.memory, all.memory))
    EXPECT_TRUE(llvm::equal(one, other, [](const MemorySample &a, const MemorySample &b) {
      return a.time == b.time && a.bytes == b.bytes;
    }));
}

static size_t classesOf(const Simulation &simulation) { return simulation.classBegins.size() - 1; }

TEST(Folding, EveryTimestampIsThatOfAllRanks) {
  constexpr uint32_t first = 1, last = 400;
  size_t ranks = 0, classes = 0, partly = 0;
  for (uint32_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Bundle bundle = RandomJob(seed).build();
    Hardware hardware = hardwareOf(seed);
    auto folded = simulate(bundle, "train", hardware), all = simulate(bundle, "train", hardware, Folding::None);
    ASSERT_TRUE(folded && all);
    ASSERT_EQ(classesOf(*all), all->ranks.size());
    expectSameTimes(*folded, *all);
    if (HasFatalFailure())
      return;
    ranks += all->ranks.size();
    classes += classesOf(*folded);
    partly += classesOf(*folded) > bundle.programs.size() && classesOf(*folded) < all->ranks.size();
  }
  std::cout << "seeds " << first << " to " << last << ": " << ranks << " ranks in " << classes << " classes\n";
  // Neither is all folded to one class a role, nor nothing.
  EXPECT_LT(2 * classes, ranks);
  EXPECT_GT(partly, (last - first) / 4);
}

// Ranks that share cores, or whose communication takes their engine, are each their own class.
TEST(Folding, NotWhereCommunicationTakesTurns) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Bundle bundle = RandomJob(seed).build();
    Hardware hardware = hardwareOf(seed);
    hardware.overlap = seed % 2;
    hardware.cores = hardware.overlap ? 2 : 0;
    auto simulation = simulate(bundle, "train", hardware);
    ASSERT_TRUE(bool(simulation));
    EXPECT_EQ(classesOf(*simulation), simulation->ranks.size());
  }
}

/// Classes of a stack of two stages on hosts of so many ranks.
static size_t classesOfStack(uint32_t dp, uint32_t tp, int64_t ranksOfHost) {
  Hardware hardware = hardwareOf(1);
  hardware.ranks = ranksOfHost;
  hardware.hostLink = ranksOfHost ? 300 : 0;
  toy::Stack stack;
  stack.dp = dp;
  stack.tp = tp;
  auto simulation = simulate(toy::stack(stack), "train", hardware);
  return simulation ? classesOf(*simulation) : 0;
}

TEST(Folding, ClassesAreRolesWhereHostsAreAlike) {
  EXPECT_EQ(classesOfStack(4, 2, 0), 2u);
  EXPECT_EQ(classesOfStack(4, 2, 2), 2u); // tp within a host, dp between hosts
  EXPECT_EQ(classesOfStack(4, 2, 8), 2u);
  // Each stage has 3, 3 and 2 of its 8 ranks on a host: pairs of tp lie on one host or on two.
  EXPECT_GT(classesOfStack(4, 2, 3), 2u);
}

// The number of instructions played does not grow with the replicas.
TEST(Folding, SixteenThousandRanks) {
  auto instructions = [](uint32_t dp) {
    toy::Stack stack;
    stack.stages = 4;
    stack.dp = dp;
    stack.tp = 8;
    Hardware hardware = hardwareOf(1);
    hardware.ranks = 8;
    auto simulation = simulate(toy::stack(stack), "train", hardware);
    EXPECT_EQ(simulation->ranks.size(), 32 * dp);
    return simulation->instructions.size();
  };
  EXPECT_EQ(instructions(512), instructions(2));
}
