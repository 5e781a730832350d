// Transfers between two shardings: the rectangle that each rank sends to each other one.
#include "par/Solver/Reshard/Exchange.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

using namespace par;

namespace {

using Index = std::vector<int64_t>;

int64_t product(const Index &sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

int64_t shardOf(int64_t size, int64_t parts) { return (size + parts - 1) / parts; }

/// The index at a place in row-major order.
Index unflatten(int64_t place, const Index &sizes) {
  Index index(sizes.size());
  for (size_t dim = sizes.size(); dim-- > 0; place /= sizes[dim])
    index[dim] = place % sizes[dim];
  return index;
}

/// The members that hold each part, in order.
std::map<Index, std::vector<unsigned>> holdersOf(const ExchangeSide &side) {
  std::map<Index, std::vector<unsigned>> holders;
  for (unsigned member = 0; member < side.index.size(); ++member)
    holders[side.index[member]].push_back(member);
  return holders;
}

class ExchangeBuilder {
public:
  ExchangeBuilder(const ExchangeSide &from, const ExchangeSide &to) : from(from), to(to) {}

  bool addDim(int64_t size, int64_t a, int64_t b);
  Exchange take();

private:
  void group(const Index &block, const std::map<Index, std::vector<unsigned>> &senders,
             const std::map<Index, std::vector<unsigned>> &receivers);

  const ExchangeSide &from, &to;
  Exchange result;
  Index cuts;   ///< slices of a sender's shard along each dim
  Index blocks; ///< shards of the coarser side along each dim
};

} // namespace

/// Whether each of `b` parts consists of some of `a` parts; only the last part of the whole may be padded.
static bool isFiner(int64_t size, int64_t a, int64_t b) {
  return a % b == 0 && (b == 1 || shardOf(size, b) == a / b * shardOf(size, a));
}

bool Exchange::nests(int64_t size, int64_t a, int64_t b) { return isFiner(size, a, b) || isFiner(size, b, a); }

/// One dim of `size` elements in `a` parts there and `b` here; false if neither side's shards make up the other's.
bool ExchangeBuilder::addDim(int64_t size, int64_t a, int64_t b) {
  if (!Exchange::nests(size, a, b))
    return false;
  int64_t given = shardOf(size, a), taken = shardOf(size, b);
  bool finer = isFiner(size, a, b);
  result.grid.push_back(finer ? a / b : 1);
  cuts.push_back(finer ? 1 : b / a);
  blocks.push_back(std::min(a, b));
  result.piece.push_back(finer ? given : taken);
  result.padded.push_back(finer ? given : b / a * taken);
  return true;
}

/// The groups of one block, that is of one shard of the coarser side: one group for each sender of the same part that
/// is needed.
void ExchangeBuilder::group(const Index &block, const std::map<Index, std::vector<unsigned>> &senders,
                            const std::map<Index, std::vector<unsigned>> &receivers) {
  auto inside = [&](const Index &sizes, int64_t place) {
    Index index = unflatten(place, sizes);
    for (size_t dim = 0; dim < index.size(); ++dim)
      index[dim] += block[dim] * sizes[dim];
    return index;
  };
  size_t copies = senders.at(inside(result.grid, 0)).size(), wanted = receivers.at(inside(cuts, 0)).size();
  for (size_t copy = 0; copy < std::min(copies, wanted); ++copy) {
    std::vector<unsigned> members;
    for (int64_t piece = 0; piece < product(result.grid); ++piece)
      members.push_back(senders.at(inside(result.grid, piece))[copy]);
    for (size_t turn = copy; turn < wanted; turn += copies)
      for (int64_t slice = 0; slice < product(cuts); ++slice)
        members.push_back(from.index.size() + receivers.at(inside(cuts, slice))[turn]);
    result.groups.push_back(std::move(members));
  }
}

Exchange ExchangeBuilder::take() {
  auto senders = holdersOf(from), receivers = holdersOf(to);
  for (int64_t block = 0; block < product(blocks); ++block)
    group(unflatten(block, blocks), senders, receivers);
  result.senders = product(result.grid);
  size_t most = 0;
  for (const std::vector<unsigned> &members : result.groups)
    most = std::max(most, members.size() - result.senders);
  for (int64_t slice = 0; slice < product(cuts); ++slice) {
    result.slices.push_back(unflatten(slice, cuts));
    for (size_t dim = 0; dim < cuts.size(); ++dim)
      result.slices.back()[dim] *= result.piece[dim];
  }
  for (size_t number = 0; number < most; ++number)
    result.sends.push_back({unsigned(number % result.slices.size()), unsigned(result.senders + number)});
  return std::move(result);
}

std::optional<Exchange> Exchange::find(const std::vector<int64_t> &shape, const ExchangeSide &from,
                                       const ExchangeSide &to) {
  ExchangeBuilder builder(from, to);
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (!builder.addDim(shape[dim], from.parts[dim], to.parts[dim]))
      return std::nullopt;
  return builder.take();
}
