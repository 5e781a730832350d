// Adds the microbatches of all replicas in one order, which no number of replicas changes. A rank of `dp` has
// microbatch (i, r) in its run i; all of them are added in the order (0, 0), (0, 1), ..., (1, 0), ..., that of their
// samples:
//
//     dp 4    run 0: ((x0 + x1) + x2) + x3    run 1: ((s + x4) + x5) + x6) + x7
//     dp 2    run 0: x0 + x1    run 1: (s + x2) + x3    run 2: (s + x4) + x5    ...
//
// So ranks add after each microbatch, not after the last one. Each adds up a part of the elements, whose sum so far it
// keeps: it receives that part of all ranks' values (an exchange), and the sums are gathered after the last microbatch.
//
//     %x = backward                                  %x = backward
//     %s = load @sum                                 %p = all_to_all %x over ["dp"]       P parts
//     %t = add %s, %x                          ->    %s = load @sum.part
//     store %t to @sum                               %t = add (add %s, %p[0]), %p[1] ...
//     (last) %r = all_reduce %t; store %r            store %t to @sum.part
//                                                    (last) %r = all_gather %t; store %r to @sum
//
// A member with one replica adds what it has stored before, so that no matmul adds within its own sum. Sums over
// replicas that are no sums of microbatches (statistics within forward, norms of shards) differ with the number of
// replicas, and are refused.
#include "par/Base/PlanPlace.h"
#include "par/Dialect/Par.h"
#include "par/Phases/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ORDERMICROBATCHESPASS
#include "par/Phases/Kernels/Passes.h.inc"

namespace {

/// The value that a block stores to a buffer of a sum: reduce(load(buffer) + leaf), without those that are null.
struct Stored {
  StoreOp store;
  LoadOp load;
  Value leaf;
  AllReduceOp reduce;
};

/// A buffer in which microbatches are added up.
struct OrderedSum {
  BufferOp buffer;
  SmallVector<Stored> stored;
  AllReduceOp reduce; ///< over the replicas; null: there is one
  bool adds = false;

  bool isOrdered() { return adds && isa<FloatType>(buffer.getTensorType().getElementType()); }
};

/// Works on one program.
class Orderer {
public:
  Orderer(ProgramOp program, ArrayRef<std::string> over)
      : program(program), mesh(getMesh(program, program.getFirstStage())) {
    for (StringAttr axis : mesh.getNames())
      if (llvm::is_contained(over, axis.str()))
        replicas.push_back(axis);
  }

  /// The op that adds replicas in an order of its own; null: there is none.
  Operation *run();

private:
  void collectSums();
  bool reducesReplicas(AllReduceOp reduce) const;
  void order(OrderedSum &sum);
  Value exchange(Value leaf, ArrayAttr axes, int64_t members);
  void keepApart(OrderedSum &sum);
  Operation *findOther();

  ProgramOp program;
  MeshAttr mesh;
  SmallVector<StringAttr> replicas;
  llvm::MapVector<StringRef, OrderedSum> sums;
};

} // namespace

static Stored readStore(StoreOp store) {
  Stored stored{store, {}, store.getOperand(), {}};
  auto reduce = stored.leaf.getDefiningOp<AllReduceOp>();
  if (reduce && reduce.getKind() == ReduceKind::sum && reduce->getNumResults() == 1 && stored.leaf.hasOneUse()) {
    stored.reduce = reduce;
    stored.leaf = reduce.getInputs().front();
  }
  auto isOwn = [&](Value value) {
    auto load = value.getDefiningOp<LoadOp>();
    return load && load.getBuffer() == store.getBuffer() ? load : LoadOp();
  };
  if (LoadOp load = isOwn(stored.leaf))
    return {store, load, Value(), stored.reduce};
  if (auto add = stored.leaf.getDefiningOp<AddOp>())
    for (unsigned operand : {0, 1})
      if (LoadOp load = isOwn(add->getOperand(operand)))
        return {store, load, add->getOperand(1 - operand), stored.reduce};
  return stored;
}

void Orderer::collectSums() {
  for (BufferOp buffer : program.getOps<BufferOp>())
    if (buffer.getKind() == BufferKind::temp && buffer.getIndex() == SlotIndex::none)
      sums[buffer.getSymName()].buffer = buffer;
  for (BlockOp block : program.getOps<BlockOp>())
    for (StoreOp store : block.getOps<StoreOp>()) {
      auto found = sums.find(store.getBuffer());
      if (found == sums.end())
        continue;
      Stored stored = readStore(store);
      found->second.adds |= stored.load && stored.leaf;
      if (stored.reduce)
        found->second.reduce = stored.reduce;
      found->second.stored.push_back(stored);
    }
}

/// Whether the members of the group are the replicas in their order, each with its ranks of other axes.
bool Orderer::reducesReplicas(AllReduceOp reduce) const {
  SmallVector<StringAttr> axes = getAxes(reduce.getAxes());
  return axes.size() >= replicas.size() && ArrayRef(axes).take_front(replicas.size()) == ArrayRef(replicas);
}

static BufferOp makeBuffer(OrderedSum &sum, StringRef suffix, RankedTensorType type) {
  OpBuilder builder(sum.buffer);
  return BufferOp::create(builder, sum.buffer.getLoc(), (sum.buffer.getSymName() + suffix).str(), BufferKind::temp,
                          sum.buffer.getOfAttr(), /*sliced=*/false, SlotIndex::none, 1, type, TypeAttr(),
                          DenseI64ArrayAttr());
}

/// This rank's part of the leaf of each member: [members, part].
Value Orderer::exchange(Value leaf, ArrayAttr axes, int64_t members) {
  OpBuilder builder(leaf.getContext());
  builder.setInsertionPointAfterValue(leaf);
  Location loc = leaf.getLoc();
  auto type = cast<RankedTensorType>(leaf.getType());
  int64_t elements = type.getNumElements(), part = llvm::divideCeil(elements, members);
  Value flat = buildReshape(builder, loc, leaf, {elements});
  if (part * members != elements)
    flat = PadOp::create(builder, loc, flat, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{part * members - elements},
                         cast<TypedAttr>(builder.getFloatAttr(type.getElementType(), 0)));
  flat = buildReshape(builder, loc, flat, {members, part});
  return AllToAllOp::create(builder, loc, TypeRange(flat.getType()), ValueRange(flat), ArrayRef<int64_t>{0},
                            ArrayRef<int64_t>{0}, axes)
      ->getResult(0);
}

static Value addParts(OpBuilder &builder, Location loc, Value sum, Value parts) {
  auto type = cast<RankedTensorType>(parts.getType());
  int64_t members = type.getDimSize(0), part = type.getDimSize(1);
  for (int64_t member = 0; member < members; ++member) {
    Value row = SliceOp::create(builder, loc, parts, ArrayRef<int64_t>{member, 0}, ArrayRef<int64_t>{member + 1, part},
                                ArrayRef<int64_t>{1, 1});
    row = buildReshape(builder, loc, row, {part});
    sum = sum ? AddOp::create(builder, loc, sum, row).getResult() : row;
  }
  return sum;
}

/// The sum of all members' parts, in the shape of the buffer.
static Value gather(OpBuilder &builder, Location loc, Value part, RankedTensorType type, ArrayAttr axes,
                    int64_t members) {
  int64_t size = cast<RankedTensorType>(part.getType()).getDimSize(0);
  auto whole = RankedTensorType::get({size * members}, type.getElementType());
  Value all =
      AllGatherOp::create(builder, loc, TypeRange(whole), ValueRange(part), ArrayRef<int64_t>{0}, axes)->getResult(0);
  if (size * members != type.getNumElements())
    all = SliceOp::create(builder, loc, all, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{type.getNumElements()},
                          ArrayRef<int64_t>{1});
  return buildReshape(builder, loc, all, type.getShape());
}

static void eraseUnused(Value value) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  if (op && op->use_empty() && isa<AddOp, LoadOp, AllReduceOp>(op)) {
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    llvm::for_each(operands, eraseUnused);
  }
}

void Orderer::order(OrderedSum &sum) {
  RankedTensorType type = sum.buffer.getTensorType();
  ArrayAttr axes = sum.reduce.getAxes();
  int64_t members = mesh.getSize(getAxes(axes));
  auto partType =
      RankedTensorType::get({int64_t(llvm::divideCeil(type.getNumElements(), members))}, type.getElementType());
  BufferOp part = makeBuffer(sum, ".part", partType);
  for (Stored &stored : sum.stored) {
    StoreOp store = stored.store;
    OpBuilder builder(store);
    Location loc = store.getLoc();
    Value value;
    if (stored.load)
      value = LoadOp::create(builder, loc, partType, part.getSymName());
    if (stored.leaf)
      value = addParts(builder, loc, value, exchange(stored.leaf, axes, members));
    Value before = store.getOperand();
    if (stored.reduce)
      StoreOp::create(builder, loc, gather(builder, loc, value, type, axes, members), sum.buffer.getSymName());
    else
      StoreOp::create(builder, loc, value, part.getSymName());
    store.erase();
    eraseUnused(before);
  }
}

/// The value of a microbatch goes through memory before it is added.
void Orderer::keepApart(OrderedSum &sum) {
  BufferOp leaf = makeBuffer(sum, ".leaf", sum.buffer.getTensorType());
  for (Stored &stored : sum.stored) {
    if (!stored.leaf || !stored.load)
      continue;
    // A sum over other axes, of parts of a matmul, stays.
    Operation *reader = stored.reduce ? stored.reduce.getOperation() : stored.store.getOperation();
    OpBuilder builder(reader);
    Location loc = stored.store.getLoc();
    StoreOp::create(builder, loc, stored.leaf, leaf.getSymName());
    Value again = LoadOp::create(builder, loc, leaf.getTensorType(), leaf.getSymName());
    Value sumSoFar = LoadOp::create(builder, loc, leaf.getTensorType(), sum.buffer.getSymName());
    Value before = reader->getOperand(0);
    reader->setOperand(0, AddOp::create(builder, loc, sumSoFar, again));
    eraseUnused(before);
  }
}

/// A sum of floats over replicas that is left, but those of a step's only microbatch.
Operation *Orderer::findOther() {
  auto isFloat = [](Value value) { return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()); };
  auto ofReplicas = [&](ArrayAttr axes) {
    return llvm::any_of(getAxes(axes), [&](StringAttr axis) { return llvm::is_contained(replicas, axis); });
  };
  for (BlockOp block : program.getOps<BlockOp>())
    for (Operation &op : block.getBody().front()) {
      auto reduce = dyn_cast<AllReduceOp>(op);
      auto scatter = dyn_cast<ReduceScatterOp>(op);
      bool adds = (reduce && reduce.getKind() == ReduceKind::sum) || (scatter && scatter.getKind() == ReduceKind::sum);
      if (!adds || !llvm::any_of(op.getOperands(), isFloat) || !ofReplicas(op.getAttrOfType<ArrayAttr>("axes")))
        continue;
      bool storedAlone = reduce && op.getResult(0).hasOneUse() && isa<StoreOp>(*op.getResult(0).user_begin());
      if (!storedAlone || !reducesReplicas(reduce))
        return &op;
    }
  return nullptr;
}

Operation *Orderer::run() {
  collectSums();
  for (auto &[name, sum] : sums) {
    if (!sum.isOrdered())
      continue;
    if (replicas.empty())
      keepApart(sum);
    else if (!sum.reduce || !reducesReplicas(sum.reduce))
      return sum.stored.front().store;
    else
      order(sum);
  }
  return findOther();
}

namespace {
struct OrderMicrobatchesPass : impl::OrderMicrobatchesPassBase<OrderMicrobatchesPass> {
  using OrderMicrobatchesPassBase::OrderMicrobatchesPassBase;

  void runOnOperation() override {
    SmallVector<std::string> over(this->over.begin(), this->over.end());
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      if (Operation *other = Orderer(program, over).run()) {
        InFlightDiagnostic error = emitError(placeInPlan(&getContext(), place));
        error << "collectives.sums: microbatches cannot order a sum over replicas that is not one of microbatches, as "
                 "of sharded gradients, their norm, or statistics within forward; say zero: 0, or sums: ranks";
        error.attachNote(other->getLoc()) << "the sum";
        return signalPassFailure();
      }
  }
};
} // namespace

} // namespace par
