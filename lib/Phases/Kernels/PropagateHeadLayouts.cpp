// Stores attention heads between blocks in the layout in which the attention calls read and write them, so that no
// block transposes them. All stores of a value must carry the same layout ops.
#include "AttentionCall.h"
#include "Values.h"

#include "par/Dialect/Attention.h"
#include "par/Phases/Kernels/Passes.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_PROPAGATEHEADLAYOUTSPASS
#include "par/Phases/Kernels/Passes.h.inc"

namespace {

/// A buffer in which a block keeps a value for others; several blocks where a microbatch has one of its own.
struct StoredValue {
  BufferOp buffer;
  SmallVector<StoreOp> stores;
  SmallVector<LoadOp> loads;
  bool settled = false; ///< its value has other users, or it is gone
};

/// A value, and the chain of slices, reshapes and transposes after it; the last one first.
struct Source {
  Value value;
  SmallVector<Operation *> moves;
};

/// The buffers that hold a value.
using Owners = llvm::DenseMap<Value, SmallVector<StoredValue *, 1>>;

/// Parts sliced from one value, or from the same value in several blocks.
struct Moved {
  SmallVector<Value> sources; ///< for each store
  SmallVector<std::pair<StoredValue *, SmallVector<Operation *>>> parts;
};

} // namespace

/// Values that are stored once in a block and read in others.
static SmallVector<StoredValue> findKept(ProgramOp program) {
  llvm::MapVector<StringRef, StoredValue> found;
  for (auto buffer : program.getOps<BufferOp>())
    if (buffer.getKind() == BufferKind::temp && !buffer.getOf())
      found[buffer.getSymName()] = {buffer, {}, {}};
  program.walk([&](Operation *op) {
    if (auto store = dyn_cast<StoreOp>(op))
      found[store.getBuffer()].stores.push_back(store);
    else if (auto load = dyn_cast<LoadOp>(op))
      found[load.getBuffer()].loads.push_back(load);
  });
  SmallVector<StoredValue> kept;
  for (auto &[name, one] : found) {
    llvm::SmallPtrSet<Block *, 2> blocks;
    bool once = llvm::all_of(one.stores, [&](StoreOp store) { return blocks.insert(store->getBlock()).second; });
    bool elsewhere = llvm::none_of(one.loads, [&](LoadOp load) { return blocks.contains(load->getBlock()); });
    if (one.buffer && !one.stores.empty() && !one.loads.empty() && once && elsewhere)
      kept.push_back(std::move(one));
  }
  return kept;
}

/// The one transpose by which all read an attention's result but attentions and the store.
static TransposeOp findTranspose(StoreOp store) {
  Value result = store.getOperand();
  return isa_and_nonnull<AttentionOp>(result.getDefiningOp()) ? findOneTranspose(result, store) : TransposeOp();
}

/// The transposes of all stores, if they have the same permutation; else empty.
static SmallVector<TransposeOp> findTransposes(StoredValue &kept) {
  SmallVector<TransposeOp> found;
  for (StoreOp store : kept.stores) {
    TransposeOp transpose = findTranspose(store);
    if (!transpose || (!found.empty() && transpose.getPermutation() != found.front().getPermutation()))
      return {};
    found.push_back(transpose);
  }
  return found;
}

/// Stores the transposed result of an attention; other users of the result read the inverse transpose.
static void keepTransposed(StoredValue &kept, ArrayRef<TransposeOp> transposes) {
  TransposeOp transpose = transposes.front();
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  SmallVector<int64_t> inverse = invertPermutationVector(permutation);
  for (auto [store, own] : llvm::zip_equal(kept.stores, transposes)) {
    own->moveAfter(store.getOperand().getDefiningOp());
    store.getOperandMutable().assign(own->getResult(0));
  }
  kept.buffer.setType(transpose.getType());
  for (LoadOp load : kept.loads) {
    Value loaded = load.getResult();
    loaded.setType(transpose.getType());
    OpBuilder builder(load->getContext());
    builder.setInsertionPointAfter(load);
    Value back = TransposeOp::create(builder, load.getLoc(), loaded, inverse);
    for (OpOperand &use : llvm::make_early_inc_range(loaded.getUses())) {
      auto again = dyn_cast<TransposeOp>(use.getOwner());
      if (use.getOwner() == back.getDefiningOp())
        continue;
      if (!again || again.getPermutation() != permutation) {
        use.set(back);
        continue;
      }
      again.replaceAllUsesWith(loaded);
      again.erase();
    }
    if (back.use_empty())
      back.getDefiningOp()->erase();
  }
}

/// The source of a stored value that only attention ops read, or the stored value of which it is a reshape.
static std::optional<Source> findSource(StoreOp store, const Owners &kept) {
  Source source{store.getOperand(), {}};
  bool forAttention = llvm::any_of(source.value.getUsers(), isAttention) &&
                      llvm::all_of(source.value.getUsers(),
                                   [&](Operation *user) { return isAttention(user) || user == store.getOperation(); });
  auto follows = [&](Operation *op) {
    return forAttention ? isa_and_nonnull<SliceOp, ReshapeOp, TransposeOp>(op) : isa_and_nonnull<ReshapeOp>(op);
  };
  for (Operation *op = source.value.getDefiningOp(); follows(op); op = source.value.getDefiningOp()) {
    source.moves.push_back(op);
    source.value = op->getOperand(0);
  }
  bool found = !source.moves.empty() && (forAttention || kept.contains(source.value));
  return found ? source : std::optional<Source>();
}

static bool isSameMove(Operation *a, Operation *b) {
  return a->getName() == b->getName() && a->getAttrDictionary() == b->getAttrDictionary() &&
         a->getOperandTypes() == b->getOperandTypes() && a->getResultTypes() == b->getResultTypes();
}

/// The sources of all stores, if the same layout ops follow each; else empty.
static SmallVector<Source> findSources(StoredValue &one, const Owners &kept) {
  SmallVector<Source> found;
  for (StoreOp store : one.stores) {
    std::optional<Source> source = findSource(store, kept);
    if (!source || (!found.empty() && !llvm::equal(source->moves, found.front().moves, isSameMove)))
      return {};
    found.push_back(*source);
  }
  return found;
}

/// Reads a part from the buffer of its source.
static void readFrom(BufferOp buffer, Value source, StoredValue &part, ArrayRef<Operation *> moves) {
  for (LoadOp load : part.loads) {
    OpBuilder builder(load);
    Value value = LoadOp::create(builder, load.getLoc(), getTensorType(source.getType()), buffer.getSymName());
    for (Operation *move : llvm::reverse(moves)) {
      Operation *copy = builder.clone(*move);
      copy->setOperand(0, value);
      value = copy->getResult(0);
    }
    load.replaceAllUsesWith(value);
    load.erase();
  }
}

static bool haveSameSlots(BufferOp a, BufferOp b) {
  return a.getIndex() == b.getIndex() && a.getDepth() == b.getDepth();
}

/// Keeps a source in place of all that is moved out of it, if it is kept already or no larger than they are.
static void keepSource(const Moved &moved, StoredValue *owner) {
  StoredValue *first = owner ? owner : moved.parts.front().first;
  if (first->settled)
    return;
  Value source = moved.sources.front();
  SmallVector<std::pair<StoredValue *, ArrayRef<Operation *>>> parts;
  uint64_t bytes = 0;
  for (auto &[part, moves] : moved.parts)
    if (!part->settled && haveSameSlots(part->buffer, first->buffer)) {
      parts.push_back({part, moves});
      bytes += bytesOf(part->stores.front().getOperand());
    }
  if (!owner && bytes < bytesOf(source))
    return;
  for (auto &[part, moves] : parts) {
    readFrom(first->buffer, source, *part, moves);
    part->settled = true;
    if (part == first)
      continue;
    for (StoreOp store : part->stores)
      store.erase();
    part->buffer.erase();
  }
  first->settled = true;
  for (auto [store, value] : llvm::zip_equal(first->stores, moved.sources))
    store.getOperandMutable().assign(value);
  first->buffer.setType(getTensorType(source.getType()));
}

/// The buffer that holds these values already, or null.
static StoredValue *findOwner(ArrayRef<Value> sources, const Owners &owners) {
  for (StoredValue *owner : owners.lookup(sources.front()))
    if (llvm::equal(owner->stores, sources, [](StoreOp store, Value value) { return store.getOperand() == value; }))
      return owner;
  return nullptr;
}

static void keepSources(MutableArrayRef<StoredValue> kept) {
  Owners owners;
  for (StoredValue &one : kept)
    for (StoreOp store : one.stores)
      owners[store.getOperand()].push_back(&one);
  llvm::MapVector<Value, SmallVector<Moved>> bySource; // of the first store
  for (StoredValue &one : kept) {
    SmallVector<Source> found = findSources(one, owners);
    if (found.empty())
      continue;
    auto sources = llvm::map_to_vector(found, [](const Source &source) { return source.value; });
    SmallVector<Moved> &all = bySource[sources.front()];
    auto same = llvm::find_if(all, [&](const Moved &moved) { return moved.sources == sources; });
    if (same == all.end())
      same = all.insert(all.end(), {sources, {}});
    same->parts.push_back({&one, found.front().moves});
  }
  for (auto &[source, all] : bySource)
    for (const Moved &moved : all)
      keepSource(moved, findOwner(moved.sources, owners));
}

namespace {
struct PropagateHeadLayoutsPass : impl::PropagateHeadLayoutsPassBase<PropagateHeadLayoutsPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      SmallVector<StoredValue> kept = findKept(program);
      for (StoredValue &one : kept)
        if (SmallVector<TransposeOp> transposes = findTransposes(one); !transposes.empty())
          keepTransposed(one, transposes);
      keepSources(kept);
    }
  }
};
} // namespace

} // namespace par
