#include "par/Phases/Schedule/Schedule.h"

#include "par/Dialect/Interfaces/Cost.h"

using namespace mlir;

namespace par {

static int64_t bytesOf(BufferOp buffer) {
  return getByteSize(buffer.getTensorType()) * static_cast<int64_t>(buffer.getDepth());
}

/// The stage of the first fragment of one of these kinds that a block runs; null if it runs none.
static Attribute stageOfKind(BlockOp block, ArrayRef<FragmentKind> kinds) {
  for (auto exec : block.getOps<ExecOp>()) {
    auto fragment =
        SymbolTable::lookupNearestSymbolFrom<FragmentOp>(block->getParentOfType<ModuleOp>(), exec.getFragmentAttr());
    if (fragment && llvm::is_contained(kinds, fragment.getKind()))
      return fragment.getStageAttr();
  }
  return {};
}

static Attribute runsForward(BlockOp block) { return stageOfKind(block, {FragmentKind::forward}); }
static Attribute runsBackward(BlockOp block) {
  return stageOfKind(block, {FragmentKind::backward, FragmentKind::weight});
}

namespace {

/// A block that an entry runs, and the stages of which it runs a forward and a backward (null: of none).
struct RunBlock {
  BlockOp block;
  Attribute forward, backward;
};

} // namespace

/// The blocks of an entry by name, each once however often it runs.
static llvm::MapVector<Attribute, RunBlock> findBlocks(ProgramOp program, EntryOp entry) {
  llvm::MapVector<Attribute, RunBlock> blocks;
  SymbolTable names(program);
  for (auto name : entry.getBlocks().getAsRange<FlatSymbolRefAttr>())
    if (auto [found, fresh] = blocks.insert({name, {}}); fresh) {
      auto block = names.lookup<BlockOp>(name.getAttr());
      found->second = {block, runsForward(block), runsBackward(block)};
    }
  return blocks;
}

/// Buffers that a forward stores or loads and a backward loads.
static llvm::SmallDenseSet<StringRef> findSaved(const llvm::MapVector<Attribute, RunBlock> &blocks) {
  llvm::SmallDenseSet<StringRef> forward, backward, saved;
  for (auto &[name, run] : blocks) {
    auto block = BlockOp(run.block);
    bool ahead(run.forward), back(run.backward);
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

/// Maximum number of microbatches whose forward on a stage has begun and whose backward there has not ended, all stages
/// of the program together.
static int64_t countInFlight(const llvm::MapVector<Attribute, RunBlock> &blocks, EntryOp entry) {
  llvm::SmallDenseSet<std::pair<Attribute, int64_t>> open;
  size_t most = 0;
  for (auto [name, microbatch] : llvm::zip(entry.getBlocks(), entry.getMicrobatches())) {
    const RunBlock &run = blocks.find(name)->second;
    if (run.forward)
      open.insert({run.forward, microbatch});
    most = std::max<size_t>(most, open.size());
    if (run.backward)
      open.erase({run.backward, microbatch});
  }
  return most;
}

SmallVector<StageSummary> summarizePrograms(ModuleOp module, StringRef entryName) {
  SmallVector<StageSummary> result;
  for (ProgramOp program : module.getOps<ProgramOp>()) {
    StageSummary &summary = result.emplace_back();
    summary.stage = program.getRole();
    auto entry = dyn_cast_or_null<EntryOp>(SymbolTable::lookupSymbolIn(program, entryName));
    llvm::MapVector<Attribute, RunBlock> blocks;
    if (entry)
      blocks = findBlocks(program, entry);
    llvm::SmallDenseSet<StringRef> saved = findSaved(blocks);
    for (BufferOp buffer : program.getOps<BufferOp>()) {
      bool state = buffer.getKind() == BufferKind::state || buffer.getKind() == BufferKind::hyperparameter;
      (state ? summary.stateBytes : summary.otherBytes) += bytesOf(buffer);
      if (buffer.getKind() == BufferKind::temp && saved.contains(buffer.getSymName()))
        summary.savedBytes += bytesOf(buffer);
    }
    if (entry)
      summary.inFlight = countInFlight(blocks, entry);
  }
  return result;
}

} // namespace par
