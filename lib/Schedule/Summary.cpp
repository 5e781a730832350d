#include "par/Schedule/Schedule.h"

#include "par/Interfaces/Cost.h"

using namespace mlir;

namespace par {

static int64_t bytesOf(BufferOp buffer) {
  return getByteSize(buffer.getTensorType()) * static_cast<int64_t>(buffer.getDepth());
}

/// Whether a block runs a fragment of one of these kinds.
static bool runsKind(BlockOp block, ArrayRef<FragmentKind> kinds) {
  return llvm::any_of(block.getOps<ExecOp>(), [&](ExecOp exec) {
    auto fragment = SymbolTable::lookupNearestSymbolFrom<FragmentOp>(block->getParentOfType<ModuleOp>(),
                                                                     exec.getFragmentAttr());
    return fragment && llvm::is_contained(kinds, fragment.getKind());
  });
}

static bool runsForward(BlockOp block) { return runsKind(block, {FragmentKind::forward}); }
static bool runsBackward(BlockOp block) {
  return runsKind(block, {FragmentKind::backward, FragmentKind::weight});
}

/// Buffers that a forward stores or loads and a backward loads.
static llvm::SmallDenseSet<StringRef> findSaved(ProgramOp program, EntryOp entry) {
  llvm::SmallDenseSet<StringRef> forward, backward, saved;
  for (auto name : entry.getBlocks().getAsRange<FlatSymbolRefAttr>()) {
    auto block = cast<BlockOp>(SymbolTable::lookupSymbolIn(program, name));
    bool ahead = runsForward(block), back = runsBackward(block);
    for (auto store : block.getOps<StoreOp>())
      if (ahead)
        forward.insert(store.getBuffer());
    for (auto load : block.getOps<LoadOp>()) {
      if (ahead)
        forward.insert(load.getBuffer());
      if (back)
        backward.insert(load.getBuffer());
    }
  }
  for (StringRef name : backward)
    if (forward.contains(name))
      saved.insert(name);
  return saved;
}

/// The most microbatches whose forward has begun and whose backward has not ended.
static int64_t countInFlight(ProgramOp program, EntryOp entry) {
  llvm::SmallDenseSet<int64_t> open;
  size_t most = 0;
  for (auto [name, microbatch] :
       llvm::zip(entry.getBlocks().getAsRange<FlatSymbolRefAttr>(), entry.getMicrobatches())) {
    auto block = cast<BlockOp>(SymbolTable::lookupSymbolIn(program, name));
    if (runsForward(block))
      open.insert(microbatch);
    most = std::max<size_t>(most, open.size());
    if (runsBackward(block))
      open.erase(microbatch);
  }
  return most;
}

SmallVector<StageSummary> summarizePrograms(ModuleOp module, StringRef entryName) {
  SmallVector<StageSummary> result;
  for (ProgramOp program : module.getOps<ProgramOp>()) {
    StageSummary &summary = result.emplace_back();
    summary.stage = program.getStage().str();
    auto entry = dyn_cast_or_null<EntryOp>(SymbolTable::lookupSymbolIn(program, entryName));
    llvm::SmallDenseSet<StringRef> saved;
    if (entry)
      saved = findSaved(program, entry);
    for (BufferOp buffer : program.getOps<BufferOp>()) {
      bool state = buffer.getKind() == BufferKind::state || buffer.getKind() == BufferKind::hyper;
      (state ? summary.stateBytes : summary.otherBytes) += bytesOf(buffer);
      if (buffer.getKind() == BufferKind::temp && saved.contains(buffer.getSymName()))
        summary.savedBytes += bytesOf(buffer);
    }
    if (entry)
      summary.inFlight = countInFlight(program, entry);
  }
  return result;
}

} // namespace par
