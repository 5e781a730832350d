#include "par/Partition/Reshard.h"

#include "par/Propagate/FactorAxes.h"

using namespace mlir;

namespace par {

static ArrayAttr axesAttr(OpBuilder &builder, ArrayRef<StringAttr> axes) {
  return builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
}

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static int64_t divideUp(int64_t size, int64_t by) { return (size + by - 1) / by; }

Value buildMask(OpBuilder &builder, Location loc, Value local, int64_t dim, int64_t size,
                ArrayRef<StringAttr> axes, double neutral) {
  RankedTensorType type = typeOf(local);
  auto indices = type.clone(builder.getI64Type());
  Value start = buildShardStart(builder, loc, axes, type.getDimSize(dim));
  Value first = buildBroadcast(builder, loc, start, {}, type.getShape());
  Value within = IotaOp::create(builder, loc, indices, dim);
  Value index = AddOp::create(builder, loc, indices, within, first);
  Value limit = buildSplat(builder, loc, indices, size);
  Value real = CompareOp::create(builder, loc, Predicate::lt, index, limit);
  return SelectOp::create(builder, loc, type, real, local, buildSplat(builder, loc, type, neutral));
}

namespace {

/// The value on its way from one sharding to the other.
class Resharder {
public:
  Resharder(OpBuilder &builder, Location loc, Value local, RankedTensorType global, ShardingAttr from,
            ShardingAttr to, MeshAttr mesh)
      : builder(builder), loc(loc), value(local), global(global), mesh(mesh), now(getDimAxes(from)),
        target(getDimAxes(to)), sums(from.getUnreduced()) {
    keptSums.append(to.getUnreduced().begin(), to.getUnreduced().end());
  }

  Value run() {
    reduce();
    for (int64_t dim = 0, end = now.size(); dim < end; ++dim)
      removeAxes(dim);
    for (int64_t dim = 0, end = now.size(); dim < end; ++dim)
      addAxes(dim);
    keepOnFirst();
    return value;
  }

private:
  int64_t shards(int64_t dim) { return mesh.getSize(now[dim]); }
  void padTo(int64_t dim, int64_t size);
  void cutTo(int64_t dim, int64_t size);
  void reduce();
  bool scatter(StringAttr axis);
  void removeAxes(int64_t dim);
  void gather(int64_t dim, size_t keep);
  bool moveAxis(int64_t dim);
  void addAxes(int64_t dim);
  void keepOnFirst();
  bool divides(int64_t dim, ArrayRef<StringAttr> axes) {
    return global.getDimSize(dim) % mesh.getSize(axes) == 0;
  }

  OpBuilder &builder;
  Location loc;
  Value value;
  RankedTensorType global;
  MeshAttr mesh;
  SmallVector<Axes> now, target;
  Axes sums, keptSums;
};

} // namespace

/// Pads the end of a dim with zeros.
void Resharder::padTo(int64_t dim, int64_t size) {
  RankedTensorType type = typeOf(value);
  if (type.getDimSize(dim) >= size)
    return;
  SmallVector<int64_t> low(type.getRank(), 0), high(type.getRank(), 0);
  high[dim] = size - type.getDimSize(dim);
  value = PadOp::create(builder, loc, value, low, high,
                        cast<TypedAttr>(builder.getZeroAttr(type.getElementType())));
}

void Resharder::cutTo(int64_t dim, int64_t size) {
  RankedTensorType type = typeOf(value);
  if (type.getDimSize(dim) <= size)
    return;
  SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()), strides(type.getRank(), 1);
  limits[dim] = size;
  value = SliceOp::create(builder, loc, value, starts, limits, strides);
}

/// A sum over `axis` that becomes the next axis of a dim.
bool Resharder::scatter(StringAttr axis) {
  for (int64_t dim = 0, end = now.size(); dim < end; ++dim) {
    Axes longer = now[dim];
    longer.push_back(axis);
    if (!startsWith(target[dim], longer) || (!now[dim].empty() && !divides(dim, longer)))
      continue;
    int64_t group = mesh.getSize(axis);
    int64_t shard = divideUp(global.getDimSize(dim), mesh.getSize(longer));
    padTo(dim, shard * group);
    SmallVector<int64_t> shape(typeOf(value).getShape());
    shape[dim] = shard;
    value = ReduceScatterOp::create(builder, loc, TypeRange{typeOf(value).clone(shape)}, value,
                                    ReduceKindAttr::get(builder.getContext(), ReduceKind::sum),
                                    builder.getDenseI64ArrayAttr(dim), axesAttr(builder, {axis}))
                .getResult(0);
    now[dim] = longer;
    return true;
  }
  return false;
}

void Resharder::reduce() {
  Axes rest;
  for (StringAttr axis : sums)
    if (!llvm::is_contained(keptSums, axis) && !scatter(axis))
      rest.push_back(axis);
  if (!rest.empty())
    value = AllReduceOp::create(builder, loc, TypeRange{value.getType()}, value,
                                ReduceKindAttr::get(builder.getContext(), ReduceKind::sum),
                                axesAttr(builder, rest))
                .getResult(0);
}

/// Gathers all but the first `keep` axes of a dim.
void Resharder::gather(int64_t dim, size_t keep) {
  Axes gone(ArrayRef(now[dim]).drop_front(keep));
  if (gone.empty())
    return;
  SmallVector<int64_t> shape(typeOf(value).getShape());
  shape[dim] *= mesh.getSize(gone);
  value = AllGatherOp::create(builder, loc, TypeRange{typeOf(value).clone(shape)}, value,
                              builder.getDenseI64ArrayAttr(dim), axesAttr(builder, gone))
              .getResult(0);
  now[dim].truncate(keep);
  cutTo(dim, divideUp(global.getDimSize(dim), shards(dim)));
}

/// The last axis of a dim, if it is next in another: one all-to-all.
bool Resharder::moveAxis(int64_t dim) {
  StringAttr axis = now[dim].back();
  for (int64_t to = 0, end = now.size(); to < end; ++to) {
    Axes longer = now[to];
    longer.push_back(axis);
    if (to == dim || !startsWith(target[to], longer) || !divides(to, longer) || !divides(dim, now[dim]))
      continue;
    int64_t group = mesh.getSize(axis);
    SmallVector<int64_t> shape(typeOf(value).getShape());
    shape[dim] *= group;
    shape[to] /= group;
    value = AllToAllOp::create(builder, loc, TypeRange{typeOf(value).clone(shape)}, value,
                               builder.getDenseI64ArrayAttr(to), builder.getDenseI64ArrayAttr(dim),
                               axesAttr(builder, {axis}))
                .getResult(0);
    now[dim].pop_back();
    now[to] = longer;
    return true;
  }
  return false;
}

/// Until what is left of a dim's axes begins the target's.
void Resharder::removeAxes(int64_t dim) {
  while (!startsWith(target[dim], now[dim]) && moveAxis(dim))
    ;
  if (startsWith(target[dim], now[dim]))
    return;
  size_t keep = 0;
  while (keep < now[dim].size() && keep < target[dim].size() && now[dim][keep] == target[dim][keep])
    ++keep;
  // Shards of an uneven dim are contiguous over all its axes at once: a part of them cannot be gathered
  // alone.
  if (!divides(dim, now[dim]))
    keep = 0;
  gather(dim, keep);
}

/// Cuts this rank's shard out.
void Resharder::addAxes(int64_t dim) {
  if (now[dim] == target[dim])
    return;
  if (!now[dim].empty() && !divides(dim, target[dim]))
    gather(dim, 0);
  Axes fresh(ArrayRef(target[dim]).drop_front(now[dim].size()));
  int64_t shard = divideUp(global.getDimSize(dim), mesh.getSize(target[dim]));
  padTo(dim, shard * mesh.getSize(fresh));
  Value start = buildShardStart(builder, loc, fresh, shard);
  value = DynamicSliceOp::create(builder, loc, value, start, dim, shard);
  now[dim] = target[dim];
}

/// What becomes a sum over an axis that it was none over counts on the axis' first ranks; elsewhere it is
/// zero.
void Resharder::keepOnFirst() {
  RankedTensorType type = typeOf(value);
  for (StringAttr axis : keptSums) {
    if (llvm::is_contained(sums, axis))
      continue;
    Value at = buildBroadcast(builder, loc, buildShardStart(builder, loc, {axis}, 1), {}, type.getShape());
    Value first = CompareOp::create(builder, loc, Predicate::eq, at,
                                    buildSplat(builder, loc, type.clone(builder.getI64Type()), 0));
    value = SelectOp::create(builder, loc, type, first, value, buildSplat(builder, loc, type, 0));
  }
}

Value buildReshard(OpBuilder &builder, Location loc, Value local, RankedTensorType global, ShardingAttr from,
                   ShardingAttr to, MeshAttr mesh) {
  if (from == to)
    return local;
  return Resharder(builder, loc, local, global, from, to, mesh).run();
}

} // namespace par
