#include "par/Schedule/Schedule.h"

using namespace mlir;

namespace par {

static int64_t bytesOf(BufferOp buffer) {
  RankedTensorType type = buffer.getTensorType();
  int64_t element = std::max<int64_t>(type.getElementTypeBitWidth() / 8, 1);
  return type.getNumElements() * element * static_cast<int64_t>(buffer.getDepth());
}

/// Buffers of temporaries that one block of the entry stores and another one loads, by microbatch.
static llvm::SmallDenseSet<StringRef> savedBuffers(ProgramOp program, EntryOp entry) {
  llvm::SmallDenseMap<StringRef, BlockOp> storedBy;
  llvm::SmallDenseSet<StringRef> saved;
  for (auto name : entry.getBlocks().getAsRange<FlatSymbolRefAttr>()) {
    auto block = cast<BlockOp>(SymbolTable::lookupSymbolIn(program, name));
    for (auto load : block.getOps<LoadOp>())
      if (auto found = storedBy.find(load.getBuffer()); found != storedBy.end() && found->second != block)
        saved.insert(load.getBuffer());
    for (auto store : block.getOps<StoreOp>())
      storedBy[store.getBuffer()] = block;
  }
  return saved;
}

/// The most microbatches whose forward has begun and whose backward has not ended.
static int64_t countInFlight(ProgramOp program, EntryOp entry) {
  auto runs = [&](FlatSymbolRefAttr name, ArrayRef<FragmentKind> kinds) {
    auto block = cast<BlockOp>(SymbolTable::lookupSymbolIn(program, name));
    return llvm::any_of(block.getOps<ExecOp>(), [&](ExecOp exec) {
      auto fragment =
          SymbolTable::lookupNearestSymbolFrom<FragmentOp>(program->getParentOp(), exec.getFragmentAttr());
      return fragment && llvm::is_contained(kinds, fragment.getKind());
    });
  };
  llvm::SmallDenseSet<int64_t> open;
  size_t most = 0;
  for (auto [name, microbatch] :
       llvm::zip(entry.getBlocks().getAsRange<FlatSymbolRefAttr>(), entry.getMicrobatches())) {
    if (runs(name, {FragmentKind::forward}))
      open.insert(microbatch);
    most = std::max<size_t>(most, open.size());
    if (runs(name, {FragmentKind::backward, FragmentKind::weight}))
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
      saved = savedBuffers(program, entry);
    for (BufferOp buffer : program.getOps<BufferOp>()) {
      bool state = buffer.getKind() == BufferKind::state || buffer.getKind() == BufferKind::hyper;
      (state ? summary.stateBytes : summary.otherBytes) += bytesOf(buffer);
      if (buffer.getKind() == BufferKind::temp && saved.contains(buffer.getSymName()) &&
          buffer.getIndex() == SlotIndex::mb)
        summary.savedBytes += bytesOf(buffer);
    }
    if (!entry)
      continue;
    summary.inFlight = countInFlight(program, entry);
  }
  return result;
}

} // namespace par
