#include "par/Dialect/Calls.h"
#include "par/Dialect/Parts.h"
#include "par/Dialect/Space.h"
#include "par/Memory/Arena.h"

#include <set>

using namespace mlir;

namespace par {

int64_t getBytes(RankedTensorType type) {
  int64_t width = (type.getElementType().getIntOrFloatBitWidth() + 7) / 8;
  return type.getNumElements() * width;
}

ArenaSize getArenaSize(ProgramOp program) {
  ArenaSize size;
  auto end = [&](BufferOp buffer, int64_t from) {
    int64_t last = from;
    if (std::optional<ArrayRef<int64_t>> slots = buffer.getAt())
      for (int64_t at : *slots)
        last = std::max(last, at + getBytes(buffer.getTensorType()));
    return (last + arenaAlignment - 1) / arenaAlignment * arenaAlignment;
  };
  int64_t whole = 0;
  for (BufferOp buffer : program.getOps<BufferOp>()) {
    if (isOnHost(buffer)) {
      size.host = end(buffer, size.host);
      continue;
    }
    whole = end(buffer, whole);
    if (buffer.getKind() == BufferKind::state)
      size.state = end(buffer, size.state);
  }
  size.pool = std::max(whole, size.state) - size.state;
  return size;
}

namespace {

/// Plays the entries and notes when each slot is written and read.
class Lives {
public:
  explicit Lives(ProgramOp program) : program(program), names(program) {}

  std::vector<BufferUse> run();

private:
  void runEntry(EntryOp entry);
  void runBlock(BlockOp block, RunIndex run);
  void read(BufferOp buffer, RunIndex run);
  void write(BufferOp buffer, RunIndex run, bool keeps);
  void send(BufferOp buffer, RunIndex run) { sent.insert(slotOf(buffer, run)); }
  void endEntry();
  std::pair<std::string, int64_t> slotOf(BufferOp buffer, RunIndex run) {
    return {buffer.getSymName().str(), run.slotOf(buffer)};
  }

  ProgramOp program;
  SymbolTable names;
  int64_t position = 0;
  std::map<std::pair<std::string, int64_t>, BufferUse> open;
  std::set<std::pair<std::string, int64_t>> fed; ///< inputs that this entry has fed, by microbatch
  /// What a queue of its own sends to another stage: nobody waits for its end but who writes it anew, so that it keeps its bytes.
  std::set<std::pair<std::string, int64_t>> sent;
  std::vector<BufferUse> done;
};

} // namespace

void Lives::read(BufferOp buffer, RunIndex run) {
  auto key = slotOf(buffer, run);
  auto [use, fresh] = open.try_emplace(key, BufferUse{key.first, key.second, position, position});
  use->second.end = position;
}

/// A write that keeps what was there (in place) goes on with the life; another one begins a new life.
void Lives::write(BufferOp buffer, RunIndex run, bool keeps) {
  auto key = slotOf(buffer, run);
  auto use = open.find(key);
  if (use != open.end() && !keeps) {
    if (sent.erase(key))
      use->second.end = position;
    done.push_back(use->second);
    open.erase(use);
  }
  auto [now, fresh] = open.try_emplace(key, BufferUse{key.first, key.second, position, position});
  now->second.end = position;
}

void Lives::runBlock(BlockOp block, RunIndex run) {
  // Inputs are fed where a block first needs them.
  for (LoadOp load : block.getOps<LoadOp>()) {
    auto buffer = cast<BufferOp>(names.lookup(load.getBuffer()));
    if (buffer.getKind() == BufferKind::input)
      read(buffer, run);
  }
  for (Operation &op : block.getBody().front()) {
    ++position;
    if (isa<LoadOp>(op))
      continue;
    std::set<StringRef> reads;
    for (Value operand : op.getOperands())
      if (BufferOp buffer = getBuffer(operand, names);
          buffer && isa_and_nonnull<LoadOp>(operand.getDefiningOp())) {
        read(buffer, run);
        reads.insert(buffer.getSymName());
        if (isa<SendOp, SendPartsOp>(op))
          send(buffer, run);
      }
    if (auto store = dyn_cast<StoreOp>(op)) {
      // The store of a result stands right behind the op that writes it; a store of a load is a copy.
      auto buffer = cast<BufferOp>(names.lookup(store.getBuffer()));
      if (isa_and_nonnull<LoadOp>(store.getOperand().getDefiningOp()))
        write(buffer, run, false);
      continue;
    }
    for (Value result : op.getResults())
      if (BufferOp buffer = getBuffer(result, names))
        write(buffer, run, reads.count(buffer.getSymName()) > 0);
  }
}

void Lives::endEntry() {
  for (auto &[key, use] : open) {
    if (sent.count(key))
      use.end = position;
    done.push_back(use);
  }
  open.clear();
  sent.clear();
}

void Lives::runEntry(EntryOp entry) {
  int64_t begin = position;
  for (auto [index, name] : llvm::enumerate(entry.getBlocks().getAsRange<FlatSymbolRefAttr>()))
    runBlock(cast<BlockOp>(names.lookup(name.getAttr())), {entry.getMicrobatches()[index], getVersion(entry, index)});
  endEntry();
  ++position;
  // The host writes hyper parameters before the entry, and they are read until its end.
  for (BufferOp buffer : program.getOps<BufferOp>())
    for (uint64_t slot = 0; buffer.getKind() == BufferKind::hyper && slot < buffer.getDepth(); ++slot)
      done.push_back({buffer.getSymName().str(), static_cast<int64_t>(slot), begin, position - 1});
}

std::vector<BufferUse> Lives::run() {
  for (EntryOp entry : program.getOps<EntryOp>())
    runEntry(entry);
  llvm::erase_if(done, [&](const BufferUse &use) {
    auto buffer = cast<BufferOp>(names.lookup(use.buffer));
    return buffer.getKind() == BufferKind::state || isOnHost(buffer);
  });
  return std::move(done);
}

std::vector<BufferUse> computeLives(ProgramOp program) { return Lives(program).run(); }

} // namespace par
