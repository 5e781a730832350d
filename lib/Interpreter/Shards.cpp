#include "par/Base/Indexing.h"
#include "par/Interpreter/Interpreter.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace mlir;

namespace par::interp {

static constexpr int64_t poison = std::numeric_limits<int64_t>::min() / 4;

/// A quiet NaN whose payload arithmetic preserves, so that padding differs from a NaN of the model.
static constexpr uint64_t paddingBits = 0x7FF8'5041'4444'494Eull;
static double paddingNan() { return std::bit_cast<double>(paddingBits); }

static bool isPadding(double x) { return (std::bit_cast<uint64_t>(x) & ~(1ull << 63)) == paddingBits; }
static bool isPadding(int64_t x) { return x < poison + (1ll << 40) && x > poison - (1ll << 40); }

/// First global index of a rank's shard in every dim.
static SmallVector<int64_t> startsOf(ShardingAttr sharding, MeshAttr mesh, ArrayRef<int64_t> shard, int64_t rank) {
  SmallVector<int64_t> starts;
  for (auto [dim, size] : llvm::enumerate(shard))
    starts.push_back(mesh.getIndex(rank, sharding.getAxes(dim)) * size);
  return starts;
}

/// Calls visit(offset in the whole, offset in the shard, is padding) for every element of a shard.
template <typename Visit>
static void forShard(ArrayRef<int64_t> whole, ArrayRef<int64_t> shard, ArrayRef<int64_t> starts, Visit visit) {
  SmallVector<int64_t> strides = getStrides(whole);
  int64_t at = 0;
  forEachIndex(shard, strides, [&](ArrayRef<int64_t> index, int64_t offset) {
    bool padding = false;
    for (size_t dim = 0; dim < index.size(); ++dim) {
      padding |= starts[dim] + index[dim] >= whole[dim];
      offset += starts[dim] * strides[dim];
    }
    visit(offset, at++, padding);
  });
}

Tensor seeAs(const Tensor &tensor, RankedTensorType type) {
  if (tensor.getSize() == type.getNumElements())
    return tensor.withType(type);
  Tensor seen(type);
  for (int64_t i = 0, held = tensor.getSize(), end = seen.getSize(); i < end; ++i)
    if (seen.isFloat())
      seen.mutableFloats()[i] = i < held ? tensor.floats()[i] : paddingNan();
    else
      seen.mutableInts()[i] = i < held ? tensor.ints()[i] : poison;
  return seen;
}

SmallVector<Tensor> distribute(const Tensor &whole, ShardingAttr sharding, MeshAttr mesh) {
  SmallVector<Tensor> shards;
  RankedTensorType local = sharding.getLocalType(whole.getType(), mesh);
  for (int64_t rank = 0, end = mesh.getRanks(); rank < end; ++rank) {
    Tensor shard(local);
    int64_t summand = mesh.getIndex(rank, sharding.getUnreduced()), last = mesh.getSize(sharding.getUnreduced()) - 1;
    // 1/2, 1/4, ..., the last two equal: the sum is exact.
    double share = std::ldexp(1.0, -static_cast<int>(std::min(summand + 1, last)));
    SmallVector<int64_t> starts = startsOf(sharding, mesh, local.getShape(), rank);
    forShard(whole.getShape(), local.getShape(), starts, [&](int64_t from, int64_t to, bool padding) {
      if (shard.isFloat())
        shard.mutableFloats()[to] = padding ? paddingNan() : share * whole.floats()[from];
      else
        shard.mutableInts()[to] = padding ? poison : summand ? 0 : whole.ints()[from];
    });
    shards.push_back(shard);
  }
  return shards;
}

namespace {
/// Replicas may differ in the last bits where each rank has added in its own order.
bool agree(double x, double y, double scale) {
  if (std::isnan(x) || std::isnan(y))
    return std::isnan(x) == std::isnan(y);
  return x == y || std::fabs(x - y) <= 1e-11 * scale;
}
} // namespace

/// Whether the value is only what each rank has, one after the other: a residual of recomputation, which may be any
/// local value, with padding in it. Were such padding to reach a result, it would differ from one device's.
static bool isStack(RankedTensorType type, ArrayRef<int64_t> shard, ShardingAttr sharding, MeshAttr mesh) {
  return type.getRank() > 0 && sharding.getAxes(0).size() == mesh.getNames().size() &&
         type.getDimSize(0) == shard[0] * mesh.getRanks();
}

FailureOr<Tensor> collect(Operation *at, ArrayRef<Tensor> shards, RankedTensorType type, ShardingAttr sharding,
                          MeshAttr mesh) {
  Tensor whole(type);
  double scale = 0;
  if (whole.isFloat())
    for (const Tensor &shard : shards)
      for (double x : shard.floats())
        if (std::isfinite(x))
          scale = std::max(scale, std::fabs(x));
  // The axes that neither shard nor reduce the value: members along them must agree with the first one.
  SmallVector<StringAttr> replicas;
  for (StringAttr axis : mesh.getNames())
    if (!sharding.uses(axis))
      replicas.push_back(axis);
  for (ArrayRef<int64_t> group : mesh.getGroups(replicas)) {
    const Tensor &first = shards[group.front()];
    SmallVector<int64_t> starts = startsOf(sharding, mesh, first.getShape(), group.front());
    int64_t wrong = -1, leak = -1;
    forShard(type.getShape(), first.getShape(), starts, [&](int64_t to, int64_t from, bool padding) {
      if (padding)
        return;
      for (int64_t rank : group) {
        if (first.isFloat() ? !agree(first.floats()[from], shards[rank].floats()[from], scale)
                            : first.ints()[from] != shards[rank].ints()[from])
          wrong = rank;
        if (first.isFloat() ? isPadding(shards[rank].floats()[from]) : isPadding(shards[rank].ints()[from]))
          leak = rank;
      }
      if (whole.isFloat())
        whole.mutableFloats()[to] += first.floats()[from];
      else
        whole.mutableInts()[to] += first.ints()[from];
    });
    if (leak >= 0 && !isStack(type, first.getShape(), sharding, mesh))
      return at->emitError() << "padding has reached the shard of rank " << leak << " of the stage, of " << type;
    if (wrong >= 0)
      return at->emitError() << "ranks " << group.front() << " and " << wrong
                             << " of the stage hold different replicas of " << type;
  }
  return whole;
}

} // namespace par::interp
