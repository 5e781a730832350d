// Stores a carried value to its variable where the value is computed.
//
// Schedule keeps carried values in temporary buffers, which a block after the last microbatch copies to the variables.
// A value that one run of a block computes needs no copy: the variable's old value is loaded before, and
// nothing else reads it between.
#include "par/Dialect/Par.h"
#include "par/Phases/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_CARRYINPLACEPASS
#include "par/Phases/Kernels/Passes.h.inc"

namespace {

/// load @temp, store to @variable, in the block `writer`.
struct Copy {
  LoadOp load;
  StoreOp store;
  BlockOp writer;
};

/// Carried values of one program.
class InPlace {
public:
  explicit InPlace(ProgramOp program) : program(program), names(program) {}

  void run();

private:
  bool moveStore(Copy copy);
  bool runsOnceBefore(BlockOp maker, BlockOp writer, StringRef variable);
  void eraseEmpty(BlockOp block);
  BufferOp bufferOf(StringRef name) { return cast<BufferOp>(names.lookup(name)); }

  ProgramOp program;
  SymbolTable names;
};

} // namespace

static bool touches(BlockOp block, StringRef buffer) {
  return llvm::any_of(block.getBody().front(), [&](Operation &op) {
    auto load = dyn_cast<LoadOp>(op);
    auto store = dyn_cast<StoreOp>(op);
    return (load && load.getBuffer() == buffer) || (store && store.getBuffer() == buffer);
  });
}

/// The only op of a kind in the program that accesses the buffer, if there is one.
template <typename Access>
static Access findOnly(ProgramOp program, StringRef buffer) {
  SmallVector<Access> found;
  program.walk([&](Access access) {
    if (access.getBuffer() == buffer)
      found.push_back(access);
  });
  return found.size() == 1 ? found.front() : Access();
}

/// Whether every entry that runs one of the blocks runs each once, the maker first, and no block between them touches
/// the variable.
bool InPlace::runsOnceBefore(BlockOp maker, BlockOp writer, StringRef variable) {
  for (EntryOp entry : program.getOps<EntryOp>()) {
    SmallVector<StringRef> runs = llvm::map_to_vector(entry.getBlocks().getAsRange<FlatSymbolRefAttr>(),
                                                      [](auto name) { return name.getValue(); });
    auto makes = llvm::find(runs, maker.getSymName()), writes = llvm::find(runs, writer.getSymName());
    if (makes == runs.end() && writes == runs.end())
      continue;
    if (llvm::count(runs, maker.getSymName()) != 1 || llvm::count(runs, writer.getSymName()) != 1 || makes > writes)
      return false;
    for (auto between = std::next(makes); between != writes; ++between)
      if (touches(cast<BlockOp>(names.lookup(*between)), variable))
        return false;
  }
  return true;
}

/// Stores to the variable at once; true if that is as good.
bool InPlace::moveStore(Copy copy) {
  StringRef variable = copy.store.getBuffer(), temporary = copy.load.getBuffer();
  BufferOp kept = bufferOf(variable), buffer = bufferOf(temporary);
  if (kept.getKind() != BufferKind::state || buffer.getKind() != BufferKind::temp || kept.getDepth() != 1 ||
      buffer.getDepth() != 1 || kept.getType() != buffer.getType() || !copy.load->hasOneUse() ||
      findOnly<LoadOp>(program, temporary) != copy.load)
    return false;
  StoreOp made = findOnly<StoreOp>(program, temporary);
  auto maker = made ? dyn_cast<BlockOp>(made->getParentOp()) : BlockOp();
  if (!maker || maker == copy.writer || !runsOnceBefore(maker, copy.writer, variable))
    return false;
  for (Operation &op : maker.getBody().front()) {
    auto load = dyn_cast<LoadOp>(op);
    auto store = dyn_cast<StoreOp>(op);
    if ((store && store.getBuffer() == variable) ||
        (load && load.getBuffer() == variable && made->isBeforeInBlock(load)))
      return false;
  }
  made.setBuffer(variable);
  copy.store->erase();
  copy.load->erase();
  names.erase(buffer);
  return true;
}

/// Takes a block that does nothing out of the entries.
void InPlace::eraseEmpty(BlockOp block) {
  if (!block.getBody().front().empty())
    return;
  for (EntryOp entry : program.getOps<EntryOp>()) {
    SmallVector<Attribute> runs;
    SmallVector<int64_t> microbatches;
    for (auto [run, microbatch] : llvm::zip(entry.getBlocks(), entry.getMicrobatches()))
      if (cast<FlatSymbolRefAttr>(run).getAttr() != block.getSymNameAttr()) {
        runs.push_back(run);
        microbatches.push_back(microbatch);
      }
    entry.setBlocksAttr(ArrayAttr::get(entry.getContext(), runs));
    entry.setMicrobatches(microbatches);
  }
  names.erase(block);
}

void InPlace::run() {
  for (BlockOp block : llvm::to_vector(program.getOps<BlockOp>())) {
    SmallVector<Copy> copies;
    for (auto store : block.getOps<StoreOp>())
      if (auto load = store.getOperand().getDefiningOp<LoadOp>(); load && load->getBlock() == store->getBlock())
        copies.push_back({load, store, block});
    bool moved = false;
    for (Copy copy : copies)
      moved |= moveStore(copy);
    if (moved)
      eraseEmpty(block);
  }
}

namespace {
struct CarryInPlacePass : impl::CarryInPlacePassBase<CarryInPlacePass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      InPlace(program).run();
  }
};
} // namespace

} // namespace par
