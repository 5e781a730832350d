// Random programs: one global order of communications, of which every rank posts its part, with groups, on three queues
// and with random pauses. With any timing, all end with the values that the order gives.
#include "Harness.h"

#include <random>

using namespace par;
using namespace par::test;

namespace {

constexpr uint32_t worldSize = 6;
constexpr uint64_t bufferElements = 6 * 4000; // elements of a communicator's buffer at each rank
/// Communications of a group run at once: each has a part of the buffer to itself.
constexpr uint64_t partElements = bufferElements / 5;

/// One communication of the global order. Communications with the same `unit` are one group at every rank.
struct Global {
  uint32_t communicator, unit;
  Op op; // Send: from member `from` to member `to`
  CollKind kind;
  uint32_t root, from, to;
  uint64_t n;
  uint64_t at; // where in the buffer
};

const std::vector<Members> memberTable = {{"all", {0, 1, 2, 3, 4, 5}}, {"left", {0, 1, 2}},
                                          {"right", {5, 4, 3}},        {"pairs", {1, 4}},
                                          {"across", {2, 3, 0}},       {"line", {0, 1, 2, 3, 4, 5}}};
/// By communicator.
constexpr uint32_t queueOfComm[] = {0, 1, 1, 2, 3, 2};

std::vector<Global> randomOrder(std::mt19937 &random, uint32_t units) {
  const CollKind kinds[] = {CollKind::AllReduce, CollKind::AllGather, CollKind::ReduceScatter,
                            CollKind::AllToAll,  CollKind::Broadcast, CollKind::Reduce};
  std::vector<Global> order;
  for (uint32_t unit = 0; unit < units; ++unit) {
    uint32_t communicator = random() % memberTable.size(), size = uint32_t(memberTable[communicator].ranks.size());
    uint32_t many = random() % 4 ? 1 : 1 + random() % 5;
    for (uint32_t i = 0; i < many; ++i) {
      Global g{communicator,
               unit,
               random() % 2 ? Op::Coll : Op::Send,
               kinds[random() % 6],
               uint32_t(random() % size),
               uint32_t(random() % size),
               0,
               random() % 3 ? random() % 50 : random() % (many == 1 ? 4000 : partElements / 6),
               i * partElements};
      g.to = (g.from + 1 + random() % (size - 1)) % size;
      order.push_back(g);
    }
  }
  return order;
}

/// Applies one communication to the buffers of all members.
void apply(const Global &g, std::vector<std::vector<int32_t>> &buffers) {
  const std::vector<uint32_t> &ranks = memberTable[g.communicator].ranks;
  size_t size = ranks.size();
  std::vector<std::vector<int32_t>> old;
  for (uint32_t rank : ranks)
    old.push_back(buffers[rank]);
  std::vector<int32_t> sum(g.n * size);
  for (const std::vector<int32_t> &member : old)
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] = int32_t(uint32_t(sum[i]) + uint32_t(member[g.at + i]));
  for (size_t m = 0; m < size; ++m)
    for (uint64_t i = 0; i < g.n; ++i) {
      std::vector<int32_t> &mine = buffers[ranks[m]];
      if (g.op == Op::Send)
        mine[g.at + i] = m == g.to ? old[g.from][g.at + i] : mine[g.at + i];
      else if (g.kind == CollKind::AllReduce || (g.kind == CollKind::Reduce && m == g.root))
        mine[g.at + i] = sum[i];
      else if (g.kind == CollKind::Broadcast)
        mine[g.at + i] = old[g.root][g.at + i];
      else if (g.kind == CollKind::ReduceScatter)
        mine[g.at + m * g.n + i] = sum[m * g.n + i];
      for (size_t q = 0; q < size && g.op == Op::Coll; ++q)
        if (g.kind == CollKind::AllGather)
          mine[g.at + q * g.n + i] = old[q][g.at + q * g.n + i];
        else if (g.kind == CollKind::AllToAll)
          mine[g.at + q * g.n + i] = old[q][g.at + m * g.n + i];
    }
}

/// This rank's part of a global communication, in place on the communicator's buffer; false if it takes none.
bool partOf(const Global &g, uint64_t tag, uint32_t rank, int32_t *buffer, Communication &c) {
  const std::vector<uint32_t> &ranks = memberTable[g.communicator].ranks;
  size_t self = size_t(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  if (self == ranks.size() || (g.op == Op::Send && self != g.from && self != g.to))
    return false;
  c.op = g.op == Op::Coll ? Op::Coll : self == g.from ? Op::Send : Op::Recv;
  c.kind = g.kind;
  c.type = DType::I32;
  c.communicator = g.communicator;
  c.peer = g.op == Op::Coll ? g.root : self == g.from ? g.to : g.from;
  c.tag = tag;
  c.n = g.n;
  c.in = c.out = buffer + g.at;
  c.id = "random:0";
  return true;
}

int32_t firstValue(uint32_t communicator, uint32_t rank, uint64_t i) {
  return int32_t((communicator * 7919 + rank * 104729 + i * 31) % 10007);
}

int play(Control &control, const std::vector<Global> &order, uint32_t seed) {
  auto endpoint = control.connect(memberTable, memberTable.size() * bufferElements * 4);
  auto *memory = reinterpret_cast<int32_t *>(endpoint->arena().data());
  for (uint32_t t = 0; t < memberTable.size(); ++t)
    for (uint64_t i = 0; i < bufferElements; ++i)
      memory[t * bufferElements + i] = firstValue(t, control.rank(), i);
  std::mt19937 random(seed * 100 + control.rank());
  Operation last, lastOf[4];
  for (size_t i = 0; i < order.size();) {
    std::vector<Communication> unit;
    uint32_t number = order[i].unit, communicator = order[i].communicator;
    for (; i < order.size() && order[i].unit == number; ++i)
      if (Communication c; partOf(order[i], i, control.rank(), memory + communicator * bufferElements, c))
        unit.push_back(c);
    if (!unit.empty())
      last = lastOf[queueOfComm[communicator]] = endpoint->post(queueOfComm[communicator], unit);
    if (random() % 8 == 0)
      endpoint->wait(last);
    else if (random() % 16 == 0)
      usleep(random() % 300);
    else if (random() % 2)
      endpoint->poll();
  }
  for (Operation operation : lastOf)
    endpoint->wait(operation);

  std::vector<std::vector<std::vector<int32_t>>> buffers(memberTable.size());
  for (uint32_t t = 0; t < memberTable.size(); ++t)
    for (uint32_t rank = 0; rank < worldSize; ++rank) {
      buffers[t].emplace_back(bufferElements);
      for (uint64_t i = 0; i < bufferElements; ++i)
        buffers[t][rank][i] = firstValue(t, rank, i);
    }
  for (const Global &g : order)
    apply(g, buffers[g.communicator]);
  for (uint32_t t = 0; t < memberTable.size(); ++t)
    for (uint64_t i = 0; i < bufferElements; ++i)
      expectEqual(memory[t * bufferElements + i], buffers[t][control.rank()][i],
                  "rank " + std::to_string(control.rank()) + ", " + memberTable[t].name + ", element " +
                      std::to_string(i));
  return 0;
}

class RandomPrograms : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(Comm, RandomPrograms, testing::Values(Transport::inproc, Transport::shm, Transport::tcp),
                         transportName);

} // namespace

TEST_P(RandomPrograms, EndAndAgreeWithTheOrder) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    std::mt19937 random(seed);
    std::vector<Global> order = randomOrder(random, 150);
    ASSERT_EQ(runJob(jobOf(GetParam(), worldSize), [&](Control &control) { return play(control, order, seed); }), 0)
        << "seed " << seed;
  }
}
