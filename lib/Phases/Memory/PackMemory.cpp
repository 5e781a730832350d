// Gives every buffer its offsets. On the device state comes first, then one pool that all other buffers share by their
// lives (Solver/Packing). On the host state comes first, then the temporary buffers: within an entry each has its own
// bytes, as copies to and from the host run on queues of their own.
#include "par/Dialect/Space.h"
#include "par/Phases/Memory/Arena.h"
#include "par/Phases/Memory/Passes.h"
#include "par/Solver/Pack/Packing.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

#include <atomic>
#include <thread>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_PACKMEMORYPASS
#include "par/Phases/Memory/Passes.h.inc"

static int64_t align(int64_t bytes) { return (bytes + arenaAlignment - 1) / arenaAlignment * arenaAlignment; }

/// Whether a buffer has no place in the pool: state, and whatever lies in the host's memory.
static bool isApart(BufferOp buffer) { return buffer.getKind() == BufferKind::state || isOnHost(buffer); }

/// Places the buffer's slots one after the other, and returns their end.
static int64_t placeSlots(BufferOp buffer, int64_t at) {
  SmallVector<int64_t> slots;
  for (uint64_t slot = 0; slot < buffer.getDepth(); ++slot) {
    slots.push_back(at);
    at += align(getByteSize(buffer.getTensorType()));
  }
  buffer.setAt(slots);
  return at;
}

/// The state of a space is packed from offset 0.
static int64_t placeState(ProgramOp program, bool onHost) {
  int64_t at = 0;
  for (BufferOp buffer : program.getOps<BufferOp>())
    if (buffer.getKind() == BufferKind::state && isOnHost(buffer) == onHost)
      at = placeSlots(buffer, at);
  return at;
}

/// The entries in which blocks touch a buffer.
static llvm::StringMap<llvm::SmallSetVector<Operation *, 2>> findEntries(ProgramOp program) {
  SymbolTable names(program);
  llvm::StringMap<llvm::SmallSetVector<Operation *, 2>> entries;
  for (EntryOp entry : program.getOps<EntryOp>())
    for (Attribute name : llvm::SmallSetVector<Attribute, 8>(entry.getBlocks().begin(), entry.getBlocks().end()))
      for (Operation &op : names.lookup<BlockOp>(cast<FlatSymbolRefAttr>(name).getAttr()).getBody().front()) {
        if (auto load = dyn_cast<LoadOp>(op))
          entries[load.getBuffer()].insert(entry);
        else if (auto store = dyn_cast<StoreOp>(op))
          entries[store.getBuffer()].insert(entry);
      }
  return entries;
}

/// Temporary buffers in host memory follow the state there. Entries run one after the other, so those of one share
/// their bytes with those of another.
static void placeOnHost(ProgramOp program) {
  int64_t state = placeState(program, /*onHost=*/true);
  auto entries = findEntries(program);
  llvm::DenseMap<Operation *, int64_t> ends; // by entry
  for (BufferOp buffer : program.getOps<BufferOp>()) {
    if (buffer.getKind() == BufferKind::state || !isOnHost(buffer))
      continue;
    int64_t at = state;
    for (Operation *entry : entries[buffer.getSymName()])
      at = std::max(at, ends.try_emplace(entry, state).first->second);
    int64_t end = placeSlots(buffer, at);
    for (Operation *entry : entries[buffer.getSymName()])
      ends[entry] = end;
  }
}

/// Lives of one slot, ascending and disjoint.
static std::vector<Life> merge(std::vector<Life> lives) {
  llvm::sort(lives, [](const Life &a, const Life &b) { return a.begin < b.begin; });
  std::vector<Life> merged;
  for (const Life &life : lives)
    if (!merged.empty() && life.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, life.end);
    else
      merged.push_back(life);
  return merged;
}

namespace {

/// The pool of a program that all other buffers share, after its state.
class Pool {
public:
  explicit Pool(ProgramOp program);
  /// Whether the same places fit both: names do not count.
  bool isLike(const Pool &other) const { return llvm::equal(problem.items, other.problem.items, areAlike); }
  /// Without a look at the program: pools of several are packed at once.
  void pack(PackingEffort effort, uint64_t comparisons) { packing.emplace(problem.solve(effort, comparisons)); }
  /// Writes the offsets, and returns the bytes of the pool.
  FailureOr<int64_t> place(int64_t base);

  const Pool *like = nullptr; ///< an earlier one with the same places, which is packed for both

private:
  static bool areAlike(const PackItem &a, const PackItem &b) { return a.size == b.size && a.lives == b.lives; }

  ProgramOp program;
  PackingProblem problem;
  SmallVector<std::pair<BufferOp, int64_t>> slots;
  std::optional<llvm::Expected<Packing>> packing;
};

} // namespace

Pool::Pool(ProgramOp program) : program(program) {
  llvm::DenseMap<std::pair<Operation *, int64_t>, std::vector<Life>> lives;
  for (const BufferUse &use : computeLives(program))
    lives[{use.buffer, use.slot}].push_back({use.begin, use.end + 1});
  problem.alignment = arenaAlignment;
  for (BufferOp buffer : program.getOps<BufferOp>())
    for (uint64_t slot = 0; !isApart(buffer) && slot < buffer.getDepth(); ++slot) {
      auto found = lives.find({buffer, static_cast<int64_t>(slot)});
      // A slot that no run touches still needs a place in the table.
      std::vector<Life> mine = found == lives.end() ? std::vector<Life>{{0, 1}} : merge(found->second);
      problem.items.push_back(
          {buffer.getSymName().str() + "." + std::to_string(slot), getByteSize(buffer.getTensorType()), mine});
      slots.push_back({buffer, static_cast<int64_t>(slot)});
    }
}

FailureOr<int64_t> Pool::place(int64_t base) {
  if (packing && !*packing) {
    program.emitError() << "cannot be packed: " << llvm::toString(packing->takeError());
    return failure();
  }
  const Packing &packed = **(like ? like->packing : packing);
  llvm::MapVector<Operation *, SmallVector<int64_t>> at;
  for (auto [slot, offset] : llvm::zip(slots, packed.offsets))
    at[slot.first].push_back(base + offset);
  for (auto &[buffer, offsets] : at)
    cast<BufferOp>(buffer).setAt(offsets);
  return packed.arena;
}

/// The pools to pack: stages of equal layers have equal ones.
static std::vector<Pool *> findDistinct(const std::vector<std::unique_ptr<Pool>> &pools) {
  std::vector<Pool *> distinct;
  for (const std::unique_ptr<Pool> &pool : pools) {
    auto like = llvm::find_if(distinct, [&](Pool *other) { return pool->isLike(*other); });
    if (like != distinct.end())
      pool->like = *like;
    else
      distinct.push_back(pool.get());
  }
  return distinct;
}

/// On all cores. A search is bounded by a count, not by time, so it ends alike on any. The pools of more stages than a
/// few share what these may take.
static void packAll(const std::vector<std::unique_ptr<Pool>> &pools, PackingEffort effort) {
  constexpr size_t few = 4;
  std::vector<Pool *> distinct = findDistinct(pools);
  uint64_t comparisons = packingComparisons * few / std::max(few, distinct.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < distinct.size(); i = next++)
      distinct[i]->pack(effort, comparisons);
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min<size_t>(std::thread::hardware_concurrency(), distinct.size()); ++i)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
}

namespace {
struct PackMemoryPass : impl::PackMemoryPassBase<PackMemoryPass> {
  using PackMemoryPassBase::PackMemoryPassBase;

  void runOnOperation() override {
    std::vector<std::unique_ptr<Pool>> pools;
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      pools.push_back(std::make_unique<Pool>(program));
    packAll(pools, greedy ? PackingEffort::Greedy : PackingEffort::Search);
    for (auto [program, packed] : llvm::zip(getOperation().getOps<ProgramOp>(), pools)) {
      placeOnHost(program);
      int64_t state = placeState(program, /*onHost=*/false);
      FailureOr<int64_t> pool = packed->place(state);
      if (failed(pool))
        return signalPassFailure();
      if (limit > 0 && state + *pool > limit) {
        program.emitError() << "needs " << state + *pool << " bytes a rank, the limit is " << limit.getValue()
                            << " (state " << state << ", pool " << *pool << ")";
        return signalPassFailure();
      }
    }
  }
};
} // namespace

} // namespace par
