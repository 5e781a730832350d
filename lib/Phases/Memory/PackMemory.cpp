#include "par/Dialect/Space.h"
#include "par/Phases/Memory/Arena.h"
#include "par/Phases/Memory/Passes.h"
#include "par/Solver/Pack/Packing.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_PACKMEMORYPASS
#include "par/Phases/Memory/Passes.h.inc"

static int64_t align(int64_t bytes) { return (bytes + arenaAlignment - 1) / arenaAlignment * arenaAlignment; }

/// Whether a buffer shares no bytes with others: state, and whatever lies in the host's memory.
static bool isAlone(BufferOp buffer) { return buffer.getKind() == BufferKind::state || isOnHost(buffer); }

/// Unshared buffers of a space are packed from offset 0.
static int64_t placeAlone(ProgramOp program, bool onHost) {
  int64_t at = 0;
  for (BufferOp buffer : program.getOps<BufferOp>()) {
    if (!isAlone(buffer) || isOnHost(buffer) != onHost)
      continue;
    SmallVector<int64_t> slots;
    for (uint64_t slot = 0; slot < buffer.getDepth(); ++slot) {
      slots.push_back(at);
      at += align(getByteSize(buffer.getTensorType()));
    }
    buffer.setAt(slots);
  }
  return at;
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

/// All other buffers share one pool after the state.
static FailureOr<int64_t> placePool(ProgramOp program, int64_t base) {
  llvm::DenseMap<std::pair<Operation *, int64_t>, std::vector<Life>> lives;
  for (const BufferUse &use : computeLives(program))
    lives[{use.buffer, use.slot}].push_back({use.begin, use.end + 1});
  PackingProblem problem;
  problem.alignment = arenaAlignment;
  SmallVector<std::pair<BufferOp, int64_t>> slots;
  for (BufferOp buffer : program.getOps<BufferOp>())
    for (uint64_t slot = 0; !isAlone(buffer) && slot < buffer.getDepth(); ++slot) {
      auto found = lives.find({buffer, static_cast<int64_t>(slot)});
      // A slot that no run touches still needs a place in the table.
      std::vector<Life> mine = found == lives.end() ? std::vector<Life>{{0, 1}} : merge(found->second);
      problem.items.push_back(
          {buffer.getSymName().str() + "." + std::to_string(slot), getByteSize(buffer.getTensorType()), mine});
      slots.push_back({buffer, static_cast<int64_t>(slot)});
    }
  llvm::Expected<Packing> packing = problem.solve();
  if (!packing) {
    program.emitError() << "cannot be packed: " << llvm::toString(packing.takeError());
    return failure();
  }
  llvm::MapVector<Operation *, SmallVector<int64_t>> at;
  for (auto [slot, offset] : llvm::zip(slots, packing->offsets))
    at[slot.first].push_back(base + offset);
  for (auto &[buffer, offsets] : at)
    cast<BufferOp>(buffer).setAt(offsets);
  return packing->arena;
}

namespace {
struct PackMemoryPass : impl::PackMemoryPassBase<PackMemoryPass> {
  using PackMemoryPassBase::PackMemoryPassBase;

  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      placeAlone(program, /*onHost=*/true);
      int64_t state = placeAlone(program, /*onHost=*/false);
      FailureOr<int64_t> pool = placePool(program, state);
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
