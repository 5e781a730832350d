#include "par/Schedule/Schedule.h"

#include "par/Interfaces/Cost.h"

using namespace mlir;

namespace par {

static int64_t bytesOf(BufferOp buffer) {
  return getByteSize(buffer.getTensorType()) * static_cast<int64_t>(buffer.getDepth());
}

/// The stage of the first fragment of one of these kinds that a block runs; null if it runs none.
static Attribute stageOfKind(BlockOp block, ArrayRef<FragmentKind> kinds) {
  for (auto exec : block.getOps<ExecOp>()) {
    auto fragment = SymbolTable::lookupNearestSymbolFrom<FragmentOp>(block->getParentOfType<ModuleOp>(),
                                                                     exec.getFragmentAttr());
    if (fragment && llvm::is_contained(kinds, fragment.getKind()))
      return fragment.getStageAttr();
  }
  return {};
}

static Attribute runsForward(BlockOp block) { return stageOfKind(block, {FragmentKind::forward}); }
static Attribute runsBackward(BlockOp block) {
  return stageOfKind(block, {FragmentKind::backward, FragmentKind::weight});
}

/// Buffers that a forward stores or loads and a backward loads.
static llvm::SmallDenseSet<StringRef> findSaved(ProgramOp program, EntryOp entry) {
  llvm::SmallDenseSet<StringRef> forward, backward, saved;
  for (auto name : entry.getBlocks().getAsRange<FlatSymbolRefAttr>()) {
    auto block = cast<BlockOp>(SymbolTable::lookupSymbolIn(program, name));
    bool ahead(runsForward(block)), back(runsBackward(block));
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

/// The most microbatches whose forward on a stage has begun and whose backward there has not ended, all stages of the
/// program together.
static int64_t countInFlight(ProgramOp program, EntryOp entry) {
  llvm::SmallDenseSet<std::pair<Attribute, int64_t>> open;
  size_t most = 0;
  for (auto [name, microbatch] :
       llvm::zip(entry.getBlocks().getAsRange<FlatSymbolRefAttr>(), entry.getMicrobatches())) {
    auto block = cast<BlockOp>(SymbolTable::lookupSymbolIn(program, name));
    if (Attribute stage = runsForward(block))
      open.insert({stage, microbatch});
    most = std::max<size_t>(most, open.size());
    if (Attribute stage = runsBackward(block))
      open.erase({stage, microbatch});
  }
  return most;
}

SmallVector<StageSummary> summarizePrograms(ModuleOp module, StringRef entryName) {
  SmallVector<StageSummary> result;
  for (ProgramOp program : module.getOps<ProgramOp>()) {
    StageSummary &summary = result.emplace_back();
    summary.stage = program.getRole();
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
