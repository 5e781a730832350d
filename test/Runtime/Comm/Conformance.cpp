// Every communicator does the same: values of all collectives, element types, counts and groups.
#include "Harness.h"

#include <bit>
#include <cstring>
#include <numeric>

using namespace par;
using namespace par::test;

namespace {

// How the tests see an element type: as doubles that the type holds exactly.
struct Element {
  DType type;
  double (*load)(const std::byte *);
  void (*store)(std::byte *, double);
};

template <typename T>
Element plain(DType type) {
  return {type, [](const std::byte *p) { return double(*reinterpret_cast<const T *>(p)); },
          [](std::byte *p, double x) { *reinterpret_cast<T *>(p) = T(x); }};
}

const Element elementTypes[] = {
    plain<float>(DType::F32),
    plain<double>(DType::F64),
    plain<_Float16>(DType::F16),
    {DType::BF16,
     [](const std::byte *p) {
       return double(std::bit_cast<float>(uint32_t(*reinterpret_cast<const uint16_t *>(p)) << 16));
     },
     [](std::byte *p, double x) {
       *reinterpret_cast<uint16_t *>(p) = uint16_t(std::bit_cast<uint32_t>(float(x)) >> 16);
     }},
    plain<int64_t>(DType::I64),
    plain<int32_t>(DType::I32),
    plain<int16_t>(DType::I16),
    plain<int8_t>(DType::I8),
    plain<uint8_t>(DType::U8),
    plain<uint8_t>(DType::I1),
};

// Small whole numbers: sums of eight and products of them are exact in every type; booleans for i1.
double valueAt(DType type, uint32_t rank, uint64_t i) {
  uint64_t mixed = (i * 2654435761u + rank * 40503u) >> 3;
  if (type == DType::I1)
    return double(mixed % 2);
  return double(mixed % 4 + 1);
}

double combined(Reduction reduction, DType type, double a, double b) {
  switch (reduction) {
  case Reduction::Max:
    return std::max(a, b);
  case Reduction::Min:
    return std::min(a, b);
  case Reduction::Prod:
    return type == DType::I1 ? double(a && b) : a * b;
  default:
    return type == DType::I1 ? double(a || b) : a + b;
  }
}

/// One collective of the suite, run by one rank.
struct Case {
  Control &control;
  Endpoint &endpoint;
  const Members &members;
  uint32_t communicator;
  const Element &element;
  uint64_t n;
  uint64_t tag;

  size_t size() const { return format::sizeOf(element.type); }
  uint32_t count() const { return uint32_t(members.ranks.size()); }
  uint32_t self() const {
    return uint32_t(std::find(members.ranks.begin(), members.ranks.end(), endpoint.rank()) - members.ranks.begin());
  }
  std::byte *in() const { return endpoint.arena().data(); }
  std::byte *out() const { return endpoint.arena().data() + endpoint.arena().size() / 2; }

  void fill(std::byte *to, uint64_t elements, uint64_t from = 0) const {
    for (uint64_t i = 0; i < elements; ++i)
      element.store(to + i * size(), valueAt(element.type, endpoint.rank(), from + i));
  }
  void poison(std::byte *to, uint64_t elements) const { std::memset(to, 0x5a, elements * size()); }

  void run(CollKind kind, Reduction reduction, const std::byte *from, std::byte *to, uint32_t root = 0) const {
    Communication c;
    c.kind = kind;
    c.reduction = reduction;
    c.type = element.type;
    c.communicator = communicator;
    c.peer = root;
    c.tag = tag;
    c.n = n;
    c.in = from;
    c.out = to;
    c.id = "test:0";
    endpoint.wait(endpoint.post(communicator, {&c, 1}));
  }

  /// value(member, i) is the expected to[i].
  void expect(const std::byte *to, uint64_t elements, const std::function<double(uint64_t)> &value,
              const std::string &what) const {
    for (uint64_t i = 0; i < elements; ++i)
      if (element.load(to + i * size()) != value(i))
        expectEqual(element.load(to + i * size()), value(i),
                    what + " " + std::string(format::toString(element.type)) + " n " + std::to_string(n) + " on " +
                        members.name + " of " + std::to_string(count()) + ": element " + std::to_string(i) +
                        " at rank " + std::to_string(endpoint.rank()));
  }
  double of(uint32_t member, uint64_t i) const { return valueAt(element.type, members.ranks[member], i); }
  double reduced(Reduction reduction, uint64_t i) const {
    double value = of(0, i);
    for (uint32_t m = 1; m < count(); ++m)
      value = combined(reduction, element.type, value, of(m, i));
    return value;
  }
};

void reductions(const Case &c) {
  for (Reduction reduction : {Reduction::Sum, Reduction::Max, Reduction::Min, Reduction::Prod}) {
    // 4^8 does not fit the small types.
    if (reduction == Reduction::Prod && c.count() > 2 && format::sizeOf(c.element.type) < 4 &&
        c.element.type != DType::I1)
      continue;
    auto expected = [&](uint64_t i) { return c.reduced(reduction, i); };
    c.fill(c.in(), c.n);
    c.run(CollKind::AllReduce, reduction, c.in(), c.in());
    c.expect(c.in(), c.n, expected, "all_reduce");

    uint32_t root = c.count() - 1;
    c.fill(c.in(), c.n);
    c.run(CollKind::Reduce, reduction, c.in(), c.in(), root);
    if (c.self() == root)
      c.expect(c.in(), c.n, expected, "reduce");
    else
      c.expect(c.in(), c.n, [&](uint64_t i) { return c.of(c.self(), i); }, "operand of reduce");

    auto part = [&](uint64_t i) { return c.reduced(reduction, c.self() * c.n + i); };
    c.fill(c.in(), c.n * c.count());
    c.poison(c.out(), c.n);
    c.run(CollKind::ReduceScatter, reduction, c.in(), c.out());
    c.expect(c.out(), c.n, part, "reduce_scatter");
    c.expect(c.in(), c.n * c.count(), [&](uint64_t i) { return c.of(c.self(), i); }, "operand of reduce_scatter");
    c.run(CollKind::ReduceScatter, reduction, c.in(), c.in());
    c.expect(c.in() + c.self() * c.n * c.size(), c.n, part, "reduce_scatter in place");
  }
}

void copyingKinds(const Case &c) {
  uint64_t n = c.n, all = n * c.count();
  auto gathered = [&](uint64_t i) { return c.of(uint32_t(i / n), i % n); };
  c.fill(c.in(), n);
  c.poison(c.out(), all);
  c.run(CollKind::AllGather, Reduction::Sum, c.in(), c.out());
  c.expect(c.out(), all, gathered, "all_gather");
  c.poison(c.in(), all);
  c.fill(c.in() + c.self() * n * c.size(), n);
  c.run(CollKind::AllGather, Reduction::Sum, c.in(), c.in());
  c.expect(c.in(), all, gathered, "all_gather in place");

  for (uint32_t root = 0; root < c.count(); ++root) {
    c.fill(c.in(), n);
    c.run(CollKind::Broadcast, Reduction::Sum, c.in(), c.in(), root);
    c.expect(c.in(), n, [&](uint64_t i) { return c.of(root, i); }, "broadcast");
  }

  auto exchanged = [&](uint64_t i) { return c.of(uint32_t(i / n), c.self() * n + i % n); };
  c.fill(c.in(), all);
  c.poison(c.out(), all);
  c.run(CollKind::AllToAll, Reduction::Sum, c.in(), c.out());
  c.expect(c.out(), all, exchanged, "all_to_all");
  c.run(CollKind::AllToAll, Reduction::Sum, c.in(), c.in());
  c.expect(c.in(), all, exchanged, "all_to_all in place");
}

class Conformance : public testing::TestWithParam<Transport> {};

void everyCollective(Control &control, uint64_t n, std::span<const Element> elements) {
  std::vector<Members> table = usualTable(control.world());
  std::unique_ptr<Endpoint> endpoint = control.connect(table, 2 * 8 * n * control.world() + 256);
  uint64_t tag = 0;
  for (const Element &element : elements)
    for (uint32_t i = 0; i < table.size(); ++i) {
      ++tag;
      if (std::find(table[i].ranks.begin(), table[i].ranks.end(), control.rank()) == table[i].ranks.end())
        continue;
      Case c{control, *endpoint, table[i], i, element, n, tag};
      reductions(c);
      copyingKinds(c);
    }
}

} // namespace

// All kinds, types and reductions, on the world, on parts of it and in another member order.
TEST_P(Conformance, SmallCollectives) {
  for (uint64_t n : {0, 1, 7, 129})
    ASSERT_EQ(runJob(jobOf(GetParam(), 4),
                     [&](Control &control) {
                       everyCollective(control, n, elementTypes);
                       return 0;
                     }),
              0)
        << "n = " << n;
}

// Beyond the limit below which payloads are copied first: members read each other's arenas.
TEST_P(Conformance, LargeCollectives) {
  ASSERT_EQ(runJob(jobOf(GetParam(), 3),
                   [](Control &control) {
                     everyCollective(control, 33001, elementTypes);
                     return 0;
                   }),
            0);
}

// Beyond the limit from which results are written past the caches, in parts that begin anywhere.
TEST_P(Conformance, StreamedCollectives) {
  ASSERT_EQ(runJob(jobOf(GetParam(), 2),
                   [](Control &control) {
                     everyCollective(control, 270001, std::span(elementTypes, 1));
                     return 0;
                   }),
            0);
}

// Eight ranks on however few cores there are.
TEST_P(Conformance, EightRanks) {
  const Element some[] = {elementTypes[0], elementTypes[3], elementTypes[4]};
  for (uint64_t n : {5, 9001})
    ASSERT_EQ(runJob(jobOf(GetParam(), 8),
                     [&](Control &control) {
                       everyCollective(control, n, some);
                       return 0;
                     }),
              0)
        << "n = " << n;
}

// A job of one rank has communicators of one member.
TEST_P(Conformance, OneRank) {
  ASSERT_EQ(runJob(jobOf(GetParam(), 1),
                   [](Control &control) {
                     std::vector<Members> table{{"all", {0}}};
                     auto endpoint = control.connect(table, 4096);
                     for (const Element &element : elementTypes) {
                       Case c{control, *endpoint, table[0], 0, element, 100, 1};
                       reductions(c);
                       copyingKinds(c);
                     }
                     return 0;
                   }),
            0);
}

INSTANTIATE_TEST_SUITE_P(Comm, Conformance, testing::Values(Transport::inproc, Transport::shm, Transport::tcp),
                         transportName);
