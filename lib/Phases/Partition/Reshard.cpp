// Builds a path between shardings as ops. A collective that splits or joins one dim, over axes in the mesh's order, is
// the op with that dim. Any other works on blocks: the axes of its group become leading dims of block numbers, are
// merged into one dim for the collective, and move back to their places:
//
//     [R * s, n] sharded over "b", "a" (mesh: "a", "b")  ->  [b, a, s, n]  ->  [a, b, s, n]  ->  [a * b, s, n]
#include "par/Phases/Partition/Reshard.h"
#include "par/Base/TypeSize.h"

#include "par/Phases/Propagate/FactorAxes.h"

using namespace mlir;

namespace par {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

ArrayAttr axesInOrder(OpBuilder &builder, ArrayRef<StringAttr> axes, MeshAttr mesh) {
  SmallVector<Attribute> ordered;
  for (StringAttr name : mesh.getNames())
    if (llvm::is_contained(axes, name))
      ordered.push_back(name);
  return builder.getArrayAttr(ordered);
}

Value buildMask(OpBuilder &builder, Location loc, Value local, int64_t dim, int64_t size, ArrayRef<StringAttr> axes,
                double neutral) {
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

//===-- Paths --------------------------------------------------------------------------------===//

static AxisList numbersOf(ArrayRef<StringAttr> axes, MeshAttr mesh) {
  AxisList numbers;
  for (StringAttr axis : axes)
    numbers.push_back(llvm::find(mesh.getNames(), axis) - mesh.getNames().begin());
  return numbers;
}

const ReshardPath &ReshardPaths::find(RankedTensorType global, ShardingAttr from, ShardingAttr to, MeshAttr mesh) {
  auto [at, fresh] = known.try_emplace(
      {global.getAsOpaquePointer(), from.getAsOpaquePointer(), to.getAsOpaquePointer(), mesh.getAsOpaquePointer()});
  if (!fresh)
    return at->second;
  ReshardProblem problem;
  problem.costs = table;
  problem.ranks = ranks;
  problem.element = getElementBytes(global.getElementType());
  for (auto [name, size] : llvm::zip(mesh.getNames(), mesh.getSizes()))
    problem.axes.push_back({name.str(), size});
  for (int64_t dim = 0; dim < global.getRank(); ++dim)
    problem.dims.push_back({std::max<int64_t>(global.getDimSize(dim), 1), numbersOf(from.getAxes(dim), mesh),
                            numbersOf(to.getAxes(dim), mesh)});
  for (StringAttr axis : from.getUnreduced())
    if (!llvm::is_contained(to.getUnreduced(), axis))
      llvm::append_range(problem.sums, numbersOf({axis}, mesh));
  // There always is a path: gather, reduce, and slice.
  return at->second = llvm::cantFail(problem.solve());
}

int64_t ReshardPaths::reduceTime(int64_t bytes, MeshAttr mesh, ArrayRef<StringAttr> axes) const {
  ReshardProblem problem;
  problem.costs = table;
  problem.ranks = ranks;
  for (auto [name, size] : llvm::zip(mesh.getNames(), mesh.getSizes()))
    problem.axes.push_back({name.str(), size});
  return table.collective(format::CollKind::AllReduce, bytes, problem.groupOf(numbersOf(axes, mesh))).ns;
}

//===-- Ops ----------------------------------------------------------------------------------===//

namespace {

/// Axes that a move appends to dims or removes from them.
struct BlockAxes {
  BlockAxes(const ReshardState &fewer, const ReshardState &more) {
    for (auto [dim, lists] : llvm::enumerate(llvm::zip(fewer.axes, more.axes)))
      ofDim.push_back(appendedAxes(std::get<0>(lists), std::get<1>(lists)));
  }
  /// The dim, if it is the only one, and its axes are in the mesh's order.
  std::optional<int64_t> onlyDim() const {
    std::optional<int64_t> only;
    for (auto [dim, axes] : llvm::enumerate(ofDim)) {
      if (axes.empty())
        continue;
      if (only || !llvm::is_sorted(axes))
        return std::nullopt;
      only = dim;
    }
    return only;
  }
  std::vector<AxisList> ofDim;
};

/// The value on its way from one sharding to the other.
class Resharder {
public:
  Resharder(OpBuilder &builder, Location loc, Value local, MeshAttr mesh)
      : builder(builder), loc(loc), value(local), mesh(mesh) {}

  /// One move over the axes of its group.
  void move(const ReshardMove &move, const ReshardState &before);
  void keepOnFirst(StringAttr axis);
  Value get() const { return value; }

private:
  int64_t sizeOf(const AxisList &axes) const;
  SmallVector<StringAttr> namesOf(const AxisList &axes) const;
  void padTo(int64_t dim, int64_t size);
  void cutTo(int64_t dim, int64_t size);
  void slice(const BlockAxes &cut, const ReshardState &after);
  void allReduce(ArrayAttr group);
  void reduceScatter(ArrayAttr group, const BlockAxes &cut);
  void allToAll(ArrayAttr group, const BlockAxes &cut, const BlockAxes &joined);
  void allGather(ArrayAttr group, const BlockAxes &joined);
  void blocksToFront(const BlockAxes &cut);
  void blocksFromFront(const BlockAxes &joined);
  void give(Operation *op) { value = op->getResult(0); }
  RankedTensorType typeWith(std::optional<int64_t> grow, std::optional<int64_t> shrink, int64_t by) const;

  OpBuilder &builder;
  Location loc;
  Value value;
  MeshAttr mesh;
};

} // namespace

int64_t Resharder::sizeOf(const AxisList &axes) const {
  int64_t product = 1;
  for (unsigned axis : axes)
    product *= mesh.getSizes()[axis];
  return product;
}

SmallVector<StringAttr> Resharder::namesOf(const AxisList &axes) const {
  SmallVector<StringAttr> names;
  for (unsigned axis : axes)
    names.push_back(mesh.getNames()[axis]);
  return names;
}

/// Pads the end of a dim with zeros.
void Resharder::padTo(int64_t dim, int64_t size) {
  RankedTensorType type = typeOf(value);
  if (type.getDimSize(dim) >= size)
    return;
  SmallVector<int64_t> low(type.getRank(), 0), high(type.getRank(), 0);
  high[dim] = size - type.getDimSize(dim);
  value = PadOp::create(builder, loc, value, low, high, cast<TypedAttr>(builder.getZeroAttr(type.getElementType())));
}

void Resharder::cutTo(int64_t dim, int64_t size) {
  RankedTensorType type = typeOf(value);
  if (type.getDimSize(dim) <= size)
    return;
  SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()), strides(type.getRank(), 1);
  limits[dim] = size;
  value = SliceOp::create(builder, loc, value, starts, limits, strides);
}

/// The value's type with one dim times the group and one divided by it.
RankedTensorType Resharder::typeWith(std::optional<int64_t> grow, std::optional<int64_t> shrink, int64_t by) const {
  SmallVector<int64_t> shape(typeOf(value).getShape());
  if (grow)
    shape[*grow] *= by;
  if (shrink)
    shape[*shrink] /= by;
  return typeOf(value).clone(shape);
}

/// The axes of the blocks, in the mesh's order.
static AxisList sortedAxes(const BlockAxes &blocks) {
  AxisList all;
  for (const AxisList &axes : blocks.ofDim)
    all.insert(all.end(), axes.begin(), axes.end());
  llvm::sort(all);
  return all;
}

/// Dims of the block numbers come before their dims: [a, b, s, n] for rows over "a", "b". `shape` is that of one block;
/// `places` gets the position of each axis.
static SmallVector<int64_t> splitShape(const BlockAxes &blocks, ArrayRef<int64_t> shape, ArrayRef<int64_t> sizes,
                                       DenseMap<unsigned, int64_t> &places, SmallVector<int64_t> &dims) {
  SmallVector<int64_t> split;
  for (auto [axes, size] : llvm::zip(blocks.ofDim, shape)) {
    for (unsigned axis : axes) {
      places[axis] = split.size();
      split.push_back(sizes[axis]);
    }
    dims.push_back(split.size());
    split.push_back(size);
  }
  return split;
}

/// [.., R * s, ..] becomes [R of all dims, .., s, ..].
void Resharder::blocksToFront(const BlockAxes &cut) {
  SmallVector<int64_t> shape(typeOf(value).getShape()), order, dims;
  for (auto [axes, size] : llvm::zip(cut.ofDim, shape))
    size /= sizeOf(axes);
  DenseMap<unsigned, int64_t> places;
  SmallVector<int64_t> split = splitShape(cut, shape, mesh.getSizes(), places, dims), turned;
  AxisList group = sortedAxes(cut);
  for (unsigned axis : group)
    order.push_back(places[axis]);
  order.append(dims);
  for (int64_t dim : order)
    turned.push_back(split[dim]);
  value = buildReshape(builder, loc, value, split);
  value = TransposeOp::create(builder, loc, typeOf(value).clone(turned), value, order);
  shape.insert(shape.begin(), sizeOf(group));
  value = buildReshape(builder, loc, value, shape);
}

/// [R of all dims, .., s, ..] becomes [.., R * s, ..].
void Resharder::blocksFromFront(const BlockAxes &joined) {
  SmallVector<int64_t> shape(typeOf(value).getShape().drop_front()), order, dims, apart;
  DenseMap<unsigned, int64_t> places;
  SmallVector<int64_t> split = splitShape(joined, shape, mesh.getSizes(), places, dims);
  AxisList group = sortedAxes(joined);
  for (unsigned axis : group)
    apart.push_back(mesh.getSizes()[axis]);
  apart.append(shape);
  // Each dim of `split` is an axis of the group or a dim of the block.
  for (int64_t place = 0, end = split.size(), dim = 0; place < end; ++place) {
    auto axis = llvm::find_if(group, [&](unsigned axis) { return places[axis] == place; });
    order.push_back(axis != group.end() ? axis - group.begin() : int64_t(group.size()) + dim++);
  }
  value = buildReshape(builder, loc, value, apart);
  value = TransposeOp::create(builder, loc, typeOf(value).clone(split), value, order);
  for (auto [axes, size] : llvm::zip(joined.ofDim, shape))
    size *= sizeOf(axes);
  value = buildReshape(builder, loc, value, shape);
}

/// Slices this rank's shard.
void Resharder::slice(const BlockAxes &cut, const ReshardState &after) {
  for (auto [dim, axes] : llvm::enumerate(cut.ofDim)) {
    if (axes.empty())
      continue;
    Value start = buildShardStart(builder, loc, namesOf(axes), after.shard[dim]);
    value = DynamicSliceOp::create(builder, loc, value, start, dim, after.shard[dim]);
  }
}

void Resharder::allReduce(ArrayAttr group) {
  give(AllReduceOp::create(builder, loc, TypeRange{value.getType()}, value,
                           ReduceKindAttr::get(builder.getContext(), ReduceKind::sum), group));
}

void Resharder::reduceScatter(ArrayAttr group, const BlockAxes &cut) {
  std::optional<int64_t> dim = cut.onlyDim();
  if (!dim)
    blocksToFront(cut);
  give(ReduceScatterOp::create(builder, loc,
                               TypeRange{typeWith(std::nullopt, dim.value_or(0), sizeOf(sortedAxes(cut)))}, value,
                               ReduceKindAttr::get(builder.getContext(), ReduceKind::sum),
                               builder.getDenseI64ArrayAttr(dim.value_or(0)), group));
  if (!dim)
    value = buildReshape(builder, loc, value, typeOf(value).getShape().drop_front());
}

void Resharder::allToAll(ArrayAttr group, const BlockAxes &cut, const BlockAxes &joined) {
  std::optional<int64_t> split = cut.onlyDim(), concat = joined.onlyDim();
  bool plain = split && concat;
  if (!plain)
    blocksToFront(cut);
  RankedTensorType type = plain ? typeWith(concat, split, sizeOf(sortedAxes(cut))) : typeOf(value);
  give(AllToAllOp::create(builder, loc, TypeRange{type}, value, builder.getDenseI64ArrayAttr(plain ? *split : 0),
                          builder.getDenseI64ArrayAttr(plain ? *concat : 0), group));
  if (!plain)
    blocksFromFront(joined);
}

void Resharder::allGather(ArrayAttr group, const BlockAxes &joined) {
  std::optional<int64_t> dim = joined.onlyDim();
  if (!dim) {
    SmallVector<int64_t> shape(typeOf(value).getShape());
    shape.insert(shape.begin(), 1);
    value = buildReshape(builder, loc, value, shape);
  }
  give(AllGatherOp::create(builder, loc, TypeRange{typeWith(dim.value_or(0), std::nullopt, sizeOf(sortedAxes(joined)))},
                           value, builder.getDenseI64ArrayAttr(dim.value_or(0)), group));
  if (!dim)
    blocksFromFront(joined);
}

void Resharder::move(const ReshardMove &move, const ReshardState &before) {
  BlockAxes cut(before, move.after), joined(move.after, before);
  for (auto [dim, axes] : llvm::enumerate(cut.ofDim))
    if (!axes.empty())
      padTo(dim, move.after.shard[dim] * sizeOf(axes));
  ArrayAttr group = axesInOrder(builder, namesOf(move.axes), mesh);
  switch (move.kind) {
  case ReshardKind::Slice:
    slice(cut, move.after);
    break;
  case ReshardKind::AllReduce:
    allReduce(group);
    break;
  case ReshardKind::ReduceScatter:
    reduceScatter(group, cut);
    break;
  case ReshardKind::AllToAll:
    allToAll(group, cut, joined);
    break;
  case ReshardKind::AllGather:
    allGather(group, joined);
    break;
  }
  for (auto [dim, axes] : llvm::enumerate(joined.ofDim))
    if (!axes.empty())
      cutTo(dim, move.after.shard[dim]);
}

/// Makes a replicated value unreduced over an axis: the axis' first ranks keep it, the others have zeros.
void Resharder::keepOnFirst(StringAttr axis) {
  RankedTensorType type = typeOf(value);
  Value at = buildBroadcast(builder, loc, buildShardStart(builder, loc, {axis}, 1), {}, type.getShape());
  Value first =
      CompareOp::create(builder, loc, Predicate::eq, at, buildSplat(builder, loc, type.clone(builder.getI64Type()), 0));
  value = SelectOp::create(builder, loc, type, first, value, buildSplat(builder, loc, type, 0));
}

Value buildReshard(OpBuilder &builder, Location loc, Value local, RankedTensorType global, ShardingAttr from,
                   ShardingAttr to, MeshAttr mesh, ReshardPaths &paths) {
  if (from == to)
    return local;
  Resharder resharder(builder, loc, local, mesh);
  ReshardState now;
  for (const Axes &axes : getDimAxes(from))
    now.axes.push_back(numbersOf(axes, mesh));
  for (const ReshardMove &move : paths.find(global, from, to, mesh).moves) {
    resharder.move(move, now);
    now = move.after;
  }
  for (StringAttr axis : to.getUnreduced())
    if (!llvm::is_contained(from.getUnreduced(), axis))
      resharder.keepOnFirst(axis);
  return resharder.get();
}

} // namespace par
