#include "par/Dialect/Attention.h"
#include "par/Kernels/Passes.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_KEEPHEADSPASS
#include "par/Kernels/Passes.h.inc"

namespace {

/// A buffer in which one block keeps a value for others.
struct Kept {
  BufferOp buffer;
  StoreOp store;
  SmallVector<LoadOp> loads;
  bool settled = false; ///< what it holds others read too, or it is gone
};

/// The slices, reshapes and transposes behind which a value stands; the last one first.
struct Source {
  Value value;
  SmallVector<Operation *> moves;
};

} // namespace

static bool isAttention(Operation *op) { return isa<AttentionOp, AttentionGradOp>(op); }

/// Values that are stored once and read elsewhere.
static SmallVector<Kept> findKept(ProgramOp program) {
  llvm::MapVector<StringRef, Kept> found;
  for (auto buffer : program.getOps<BufferOp>())
    if (buffer.getKind() == BufferKind::temp && !buffer.getOf())
      found[buffer.getSymName()] = {buffer, {}, {}};
  llvm::StringMap<unsigned> stores;
  program.walk([&](Operation *op) {
    if (auto store = dyn_cast<StoreOp>(op)) {
      ++stores[store.getBuffer()];
      found[store.getBuffer()].store = store;
    } else if (auto load = dyn_cast<LoadOp>(op)) {
      found[load.getBuffer()].loads.push_back(load);
    }
  });
  SmallVector<Kept> kept;
  for (auto &[name, one] : found)
    if (one.buffer && stores[name] == 1 && llvm::none_of(one.loads, [&, store = one.store](LoadOp load) {
          return load->getBlock() == store->getBlock();
        }))
      kept.push_back(std::move(one));
  return kept;
}

/// The one transpose by which all read a value but attentions and the store.
static TransposeOp findTranspose(Kept &kept) {
  TransposeOp found;
  for (Operation *user : kept.store.getOperand().getUsers()) {
    if (isAttention(user) || user == kept.store.getOperation())
      continue;
    auto transpose = dyn_cast<TransposeOp>(user);
    if (!transpose || found)
      return {};
    found = transpose;
  }
  return found;
}

/// Keeps what the transpose makes of an attention's result; who read the result reads it through the inverse.
static void keepTransposed(Kept &kept, TransposeOp transpose) {
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  SmallVector<int64_t> inverse = invertPermutationVector(permutation);
  transpose->moveAfter(kept.store.getOperand().getDefiningOp());
  kept.store.getOperandMutable().assign(transpose.getResult());
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

/// Where heads that attentions alone read come from; or the value of `kept` that another one is, under another shape.
static std::optional<Source> findSource(Kept &one, const llvm::DenseMap<Value, Kept *> &kept) {
  Source source{one.store.getOperand(), {}};
  bool forAttention = llvm::any_of(source.value.getUsers(), isAttention) &&
                      llvm::all_of(source.value.getUsers(), [&](Operation *user) {
                        return isAttention(user) || user == one.store.getOperation();
                      });
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

static uint64_t bytesOf(Value value) {
  auto type = getTensorType(value.getType());
  return uint64_t(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
}

/// Reads what a part holds from the buffer of its source.
static void readFrom(BufferOp buffer, Value source, Kept &part, ArrayRef<Operation *> moves) {
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

static bool haveSameSlots(BufferOp a, BufferOp b) { return a.getIndex() == b.getIndex() && a.getDepth() == b.getDepth(); }

/// Keeps a source in place of all that is moved out of it, if it is kept already or no larger than they are.
static void keepSource(Value source, Kept *owner, ArrayRef<std::pair<Kept *, SmallVector<Operation *>>> all) {
  Kept *first = owner ? owner : all.front().first;
  if (first->settled)
    return;
  SmallVector<std::pair<Kept *, ArrayRef<Operation *>>> parts;
  uint64_t bytes = 0;
  for (auto &[part, moves] : all)
    if (!part->settled && haveSameSlots(part->buffer, first->buffer)) {
      parts.push_back({part, moves});
      bytes += bytesOf(part->store.getOperand());
    }
  if (!owner && bytes < bytesOf(source))
    return;
  for (auto &[part, moves] : parts) {
    readFrom(first->buffer, source, *part, moves);
    part->settled = true;
    if (part == first)
      continue;
    part->store.erase();
    part->buffer.erase();
  }
  first->settled = true;
  first->store.getOperandMutable().assign(source);
  first->buffer.setType(getTensorType(source.getType()));
}

static void keepSources(MutableArrayRef<Kept> kept) {
  llvm::DenseMap<Value, Kept *> owners;
  for (Kept &one : kept)
    owners[one.store.getOperand()] = &one;
  llvm::MapVector<Value, SmallVector<std::pair<Kept *, SmallVector<Operation *>>>> bySource;
  for (Kept &one : kept)
    if (std::optional<Source> source = findSource(one, owners))
      bySource[source->value].push_back({&one, source->moves});
  for (auto &[source, parts] : bySource)
    keepSource(source, owners.lookup(source), parts);
}

namespace {
struct KeepHeadsPass : impl::KeepHeadsPassBase<KeepHeadsPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      SmallVector<Kept> kept = findKept(program);
      for (Kept &one : kept)
        if (isa_and_nonnull<AttentionOp>(one.store.getOperand().getDefiningOp()))
          if (TransposeOp transpose = findTranspose(one))
            keepTransposed(one, transpose);
      keepSources(kept);
    }
  }
};
} // namespace

} // namespace par
