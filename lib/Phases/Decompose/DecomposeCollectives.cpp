// Splits an all-gather with the matmuls that read it, and a matmul with the reduce-scatter of its result, into chunks,
// so that one chunk's collective overlaps with another's matmul (Wang et al. 2023, "Overlap communication with
// dependent computation via decomposition"; here with the collectives of the runtime, not a ring of sends). The split
// is along a dim of the gathered (scattered) tensor. Along another dim than the gathered one a chunk is a slice. Along
// the gathered dim it is the same part of each member's shard, so that each chunk is again a gather (scatter) of all
// members.
//
// It does not follow a value through other ops to a matmul. It does not split collectives at the fragment's begin or
// end, which overlap with compute without chunks. It does not move the ends of collectives, as -par-split-collectives
// does for all.
#include "Chunks.h"
#include "PairTime.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Interfaces/Timed.h"
#include "par/Phases/Decompose/HostLevels.h"
#include "par/Phases/Decompose/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_DECOMPOSECOLLECTIVESPASS
#include "par/Phases/Decompose/Passes.h.inc"

namespace {

/// The place of a split dim of a matmul's operand in its other operand and in its result; absent if it is in neither.
struct Place {
  std::optional<int64_t> other, result;
};

/// A matmul with one of its operands.
struct Reader {
  DotOp dot;
  bool left; ///< the operand is lhs

  Value other() { return left ? dot.getRhs() : dot.getLhs(); }
  Place placeOf(int64_t dim);
};

struct Pair {
  Operation *collective = nullptr;
  SmallVector<Reader>
      readers; ///< of a gather; of a scatter its matmul, once for each operand that the split may be along
  Cut cut;
  int64_t chunks = 1;
  Operation *fit = nullptr; ///< the slice after the gather or the pad before the scatter, if any
};

class Decomposer {
public:
  Decomposer(FragmentOp fragment, StageGroups &groups, int64_t chunks)
      : fragment(fragment), costs(groups.costs), groups(groups), asked(chunks) {}
  void run();

private:
  std::optional<Pair> findGather(AllGatherOp gather);
  std::optional<Pair> findScatter(ReduceScatterOp scatter);
  void consider(std::optional<std::pair<int64_t, Pair>> &best, Pair pair, PairCost cost, int64_t whole);
  void cutGather(const Pair &pair);
  void cutScatter(const Pair &pair);
  RankGroup groupOf(ArrayAttr axes) {
    auto stage = SymbolTable::lookupNearestSymbolFrom<StageOp>(fragment, fragment.getStageAttr());
    return groups.widest(stage, getAxes(axes));
  }
  int64_t membersOf(ArrayAttr axes) { return getMesh(fragment, fragment.getStageAttr()).getSize(getAxes(axes)); }

  FragmentOp fragment;
  const CostTable &costs;
  StageGroups &groups;
  int64_t asked; ///< 0: as many as save time
};

} // namespace

Place Reader::placeOf(int64_t dim) {
  ArrayRef<int64_t> contracting = left ? dot.getLhsContracting() : dot.getRhsContracting(),
                    batching = left ? dot.getLhsBatching() : dot.getRhsBatching();
  if (auto at = llvm::find(contracting, dim); at != contracting.end())
    return {(left ? dot.getRhsContracting() : dot.getLhsContracting())[at - contracting.begin()], std::nullopt};
  if (auto at = llvm::find(batching, dim); at != batching.end())
    return {(left ? dot.getRhsBatching() : dot.getLhsBatching())[at - batching.begin()], at - batching.begin()};
  SmallVector<int64_t> free = left ? dot.getLhsFree() : dot.getRhsFree();
  int64_t before = batching.size() + (left ? 0 : dot.getLhsFree().size());
  return {std::nullopt, before + (llvm::find(free, dim) - free.begin())};
}

/// The matmul of one chunk of an operand, and of the other operand's chunk if it has the dim too.
static Value multiplyChunk(OpBuilder &builder, Reader reader, Value mine, Cut cut, int64_t chunk, int64_t chunks) {
  DotOp dot = reader.dot;
  Place place = reader.placeOf(cut.dim);
  Value other = reader.other();
  if (place.other)
    other = takeChunk(builder, dot.getLoc(), other, {*place.other, cut.parts}, chunk, chunks);
  SmallVector<int64_t> shape(dot.getType().getShape());
  if (place.result)
    shape[*place.result] /= chunks;
  auto made = DotOp::create(builder, dot.getLoc(), dot.getType().clone(shape), reader.left ? mine : other,
                            reader.left ? other : mine, dot.getLhsContracting(), dot.getRhsContracting(),
                            dot.getLhsBatching(), dot.getRhsBatching());
  return made;
}

/// Whether a value exists at the fragment's begin, except for a few ops: its gather overlaps with the compute before
/// its use.
static bool isThereAtBegin(Value value) {
  constexpr int few = 4;
  for (int passed = 0; passed < few; ++passed) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return true;
    if (op->getNumOperands() != 1 || isa<CollectiveOpInterface>(op))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

/// The matmul of a reader, cut along a dim of its operand.
static PairCost::Matmul costOfMatmul(Reader reader, int64_t dim) {
  auto isAmong = [dim](ArrayRef<int64_t> dims) { return llvm::is_contained(dims, dim); };
  DotOp dot = reader.dot;
  int64_t MatmulShape::*cut = reader.left ? &MatmulShape::m : &MatmulShape::n;
  if (isAmong(reader.left ? dot.getLhsContracting() : dot.getRhsContracting()))
    cut = &MatmulShape::k;
  else if (isAmong(reader.left ? dot.getLhsBatching() : dot.getRhsBatching()))
    cut = &MatmulShape::batch;
  return {shapeOf(dot), cut};
}

/// Bytes moved by copies around a collective along `dim`. Ranks' blocks are contiguous in the right order only if no
/// dim but the one of the chunks precedes `dim`.
static int64_t bytesAround(Type whole, int64_t dim, int64_t cutDim = 0, int64_t chunks = 1) {
  int64_t before = 1;
  for (int64_t size : getTensorType(whole).getShape().take_front(dim))
    before *= size;
  return before > (cutDim < dim ? chunks : 1) ? 2 * getByteSize(whole) : 0;
}

/// Keeps the pair if a number of chunks divides the split dim: the number asked for, or the fastest one that takes less
/// time than `whole`. The first of equal pairs stays.
void Decomposer::consider(std::optional<std::pair<int64_t, Pair>> &best, Pair pair, PairCost cost, int64_t whole) {
  auto gather = dyn_cast<AllGatherOp>(pair.collective);
  Type type = gather ? gather.getResult(0).getType() : pair.collective->getOperand(0).getType();
  int64_t along = gather ? gather.getDims()[0] : cast<ReduceScatterOp>(pair.collective).getDims()[0];
  constexpr int64_t tried[] = {2, 4, 8, 16};
  for (int64_t chunks : asked ? ArrayRef<int64_t>(asked) : ArrayRef<int64_t>(tried)) {
    int64_t extent = pair.cut.extent(type);
    if (extent < chunks || extent % chunks != 0)
      continue;
    cost.around = bytesAround(type, along, pair.cut.dim, chunks);
    int64_t time = pairTime(cost, chunks, costs);
    if ((!asked && time >= whole) || (best && best->first <= time))
      continue;
    pair.chunks = chunks;
    best = {time, pair};
  }
}

/// A gather that only matmuls read, the first of which keeps the split dim. A later one that contracts it sums the
/// chunks' results, so its result must be as wide as sums are (the gradient of a weight).
std::optional<Pair> Decomposer::findGather(AllGatherOp gather) {
  if (gather.getNumResults() != 1 || isThereAtBegin(gather.getInputs()[0]))
    return std::nullopt;
  Value whole = gather.getResult(0), shard = gather.getInputs()[0];
  SliceOp trim = trimOf(gather);
  Pair pair{gather, {}, {}, 1, trim};
  PairCost cost{format::CollKind::AllGather, getByteSize(shard.getType()), groupOf(gather.getAxes()), {}, 0, 0};
  for (OpOperand &use : (trim ? Value(trim) : whole).getUses()) {
    auto dot = dyn_cast<DotOp>(use.getOwner());
    if (!dot || dot.getLhs() == dot.getRhs())
      return std::nullopt;
    pair.readers.push_back({dot, use.getOperandNumber() == 0});
    cost.products.push_back({shapeOf(dot)});
  }
  if (pair.readers.empty())
    return std::nullopt;
  llvm::sort(pair.readers, [](const Reader &a, const Reader &b) { return a.dot->isBeforeInBlock(b.dot); });
  std::optional<std::pair<int64_t, Pair>> best;
  int64_t gathered = gather.getDims()[0];
  cost.around = bytesAround(whole.getType(), gathered);
  int64_t inOne = pairTime(cost, 1, costs);
  for (int64_t dim = 0; dim < getTensorType(whole.getType()).getRank(); ++dim) {
    pair.cut = {dim, dim == gathered ? cost.group.members : 1};
    bool kept = pair.readers.front().placeOf(dim).result.has_value(), narrow = false;
    PairCost mine = cost;
    mine.moved = 2 * cost.bytes;
    mine.moves = 1;
    mine.products.clear();
    for (Reader reader : pair.readers) {
      mine.products.push_back(costOfMatmul(reader, dim));
      Place place = reader.placeOf(dim);
      Type element = reader.dot.getType().getElementType();
      narrow |= !place.result && !element.isF32() && !element.isF64();
      if (place.other)
        mine.moved += 2 * getByteSize(reader.other().getType());
      mine.moved += place.result ? 2 * getByteSize(reader.dot.getType()) : 0;
      mine.moves += place.other ? 1 : 0;
    }
    if (kept && !narrow && !(trim && dim == gathered))
      consider(best, pair, mine, inOne);
  }
  return best ? std::optional(best->second) : std::nullopt;
}

/// A scatter that is the only user of a matmul, and whose result is used inside the fragment.
std::optional<Pair> Decomposer::findScatter(ReduceScatterOp scatter) {
  PadOp filled = scatter.getNumResults() == 1 ? filledBy(scatter) : PadOp();
  Value given = filled ? filled.getOperand() : scatter.getInputs()[0];
  auto dot = scatter.getNumResults() == 1 ? given.getDefiningOp<DotOp>() : DotOp();
  if (!dot || !dot->hasOneUse() || dot.getLhs() == dot.getRhs() || scatter.getKind() != ReduceKind::sum ||
      llvm::all_of(scatter->getUsers(), [](Operation *user) { return isa<ReturnOp>(user); }))
    return std::nullopt;
  Value shard = scatter.getResult(0);
  PairCost cost{format::CollKind::ReduceScatter, getByteSize(shard.getType()), groupOf(scatter.getAxes()), {}, 0, 0};
  cost.products.push_back({shapeOf(dot)});
  std::optional<std::pair<int64_t, Pair>> best;
  cost.around = bytesAround(dot.getType(), scatter.getDims()[0]);
  int64_t inOne = pairTime(cost, 1, costs);
  for (bool left : {true, false}) {
    Reader reader{dot, left};
    Value operand = left ? dot.getLhs() : dot.getRhs();
    for (int64_t dim = 0; dim < getTensorType(operand.getType()).getRank(); ++dim) {
      Place place = reader.placeOf(dim);
      if (!place.result || (place.other && !left)) // a dim in both operands was tried
        continue;
      if (filled && *place.result == scatter.getDims()[0])
        continue;
      PairCost mine = cost;
      mine.products = {costOfMatmul(reader, dim)};
      mine.moved = 2 * (getByteSize(operand.getType()) + cost.bytes);
      mine.moves = 1;
      if (place.other) {
        mine.moved += 2 * getByteSize(reader.other().getType());
        ++mine.moves;
      }
      int64_t parts = *place.result == scatter.getDims()[0] ? cost.group.members : 1;
      consider(best, {scatter, {reader}, {*place.result, parts}, 1, filled}, mine, inOne);
    }
  }
  return best ? std::optional(best->second) : std::nullopt;
}

void Decomposer::cutGather(const Pair &pair) {
  auto gather = cast<AllGatherOp>(pair.collective);
  OpBuilder builder(gather);
  Location loc = gather.getLoc();
  // In a shard the chunk of each member is one piece.
  Cut ofShard{pair.cut.dim, 1};
  SmallVector<Value> gathered;
  for (int64_t chunk = 0; chunk < pair.chunks; ++chunk) {
    Value shard = takeChunk(builder, loc, gather.getInputs()[0], ofShard, chunk, pair.chunks);
    SmallVector<int64_t> shape(getTensorType(shard.getType()).getShape());
    shape[gather.getDims()[0]] *= membersOf(gather.getAxes());
    Type type = getTensorType(shard.getType()).clone(shape);
    Value whole = AllGatherOp::create(builder, loc, type, shard, gather.getDims(), gather.getAxes()).getResult(0);
    gathered.push_back(fitChunk(builder, pair.fit, whole, gather.getDims()[0]));
  }
  for (Reader reader : pair.readers) {
    DotOp dot = reader.dot;
    builder.setInsertionPoint(dot);
    Place place = reader.placeOf(pair.cut.dim);
    SmallVector<Value> made;
    for (auto [chunk, value] : llvm::enumerate(gathered))
      made.push_back(multiplyChunk(builder, reader, value, pair.cut, chunk, pair.chunks));
    Value whole = made.front();
    if (place.result)
      whole = joinChunks(builder, dot.getLoc(), made, {*place.result, pair.cut.parts});
    else
      for (Value more : ArrayRef(made).drop_front())
        whole = AddOp::create(builder, dot.getLoc(), whole, more);
    dot.replaceAllUsesWith(whole);
    dot.erase();
  }
  if (pair.fit)
    pair.fit->erase();
  gather.erase();
}

void Decomposer::cutScatter(const Pair &pair) {
  auto scatter = cast<ReduceScatterOp>(pair.collective);
  Reader reader = pair.readers.front();
  DotOp dot = reader.dot;
  OpBuilder builder(scatter);
  Location loc = scatter.getLoc();
  // The split is along a dim of the result; finds the operand's dim.
  Value operand = reader.left ? dot.getLhs() : dot.getRhs();
  Cut ofOperand{0, pair.cut.parts};
  while (reader.placeOf(ofOperand.dim).result != pair.cut.dim)
    ++ofOperand.dim;
  SmallVector<Value> scattered;
  for (int64_t chunk = 0; chunk < pair.chunks; ++chunk) {
    Value mine = takeChunk(builder, dot.getLoc(), operand, ofOperand, chunk, pair.chunks);
    Value product = multiplyChunk(builder, reader, mine, ofOperand, chunk, pair.chunks);
    Value made = fitChunk(builder, pair.fit, product, scatter.getDims()[0]);
    SmallVector<int64_t> shape(getTensorType(made.getType()).getShape());
    shape[scatter.getDims()[0]] /= membersOf(scatter.getAxes());
    Type type = getTensorType(made.getType()).clone(shape);
    scattered.push_back(
        ReduceScatterOp::create(builder, loc, type, made, scatter.getKind(), scatter.getDims(), scatter.getAxes())
            .getResult(0));
  }
  scatter.getResult(0).replaceAllUsesWith(joinChunks(builder, loc, scattered, {pair.cut.dim, 1}));
  scatter.erase();
  if (pair.fit)
    pair.fit->erase();
  dot.erase();
}

/// Gathers first: a matmul that reads a gather and is scattered too is then several matmuls, none of which feeds the
/// scatter by itself.
void Decomposer::run() {
  for (auto gather : llvm::make_early_inc_range(fragment.getBlock().getOps<AllGatherOp>()))
    if (std::optional<Pair> pair = findGather(gather))
      cutGather(*pair);
  for (auto scatter : llvm::make_early_inc_range(fragment.getBlock().getOps<ReduceScatterOp>()))
    if (std::optional<Pair> pair = findScatter(scatter))
      cutScatter(*pair);
}

namespace {
struct DecomposeCollectivesPass : impl::DecomposeCollectivesPassBase<DecomposeCollectivesPass> {
  using DecomposeCollectivesPassBase::DecomposeCollectivesPassBase;

  void runOnOperation() override {
    auto costs = CostTable::find(hardware);
    if (!costs) {
      getOperation().emitError() << llvm::toString(costs.takeError());
      return signalPassFailure();
    }
    // Without overlap of compute and communication chunks only add time.
    if (chunks == 1 || (chunks == 0 && !costs->hardware().overlap))
      return;
    StageGroups groups(*costs);
    for (FragmentOp fragment : getOperation().getOps<FragmentOp>())
      if (fragment.getLocal())
        Decomposer(fragment, groups, chunks).run();
  }
};
} // namespace

} // namespace par
