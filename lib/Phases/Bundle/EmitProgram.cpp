// Emits the program of one role: its buffers, blocks and entries. An input is fed by the block that first loads it;
// scratch memory is one buffer as large as the largest kernel needs.
#include "EmitProgram.h"
#include "AdvanceSends.h"
#include "Layouts.h"
#include "par/Base/Provenance.h"
#include "par/Dialect/Calls.h"
#include "par/Dialect/Parts.h"
#include "par/Dialect/Space.h"

#include <set>

using namespace mlir;

namespace par {

BundleTables::BundleTables(ModuleOp module, const CompiledKernels &compiled)
    : module(module), names(module), gpu(compiled.device == "cuda"), communicators(module) {
  for (const KernelInfo &info : compiled.kernels)
    generated[info.kernel] = &info;
}

int32_t BundleTables::provenanceOf(Location location) {
  std::optional<Provenance> known = getProvenance(location);
  if (!known)
    return -1;
  std::string line = describe(*known);
  if (line.empty())
    line = (known->path.empty() ? known->node : known->path).str(); // a model without modules
  if (line.empty())
    return -1;
  auto [found, fresh] = provenanceIndex.try_emplace(line, provenance.size());
  if (fresh)
    provenance.push_back(line);
  return found->second;
}

//===-- Tables -------------------------------------------------------------------------------===//

static format::BufferKind kindOf(BufferKind kind) {
  switch (kind) {
  case BufferKind::state:
    return format::BufferKind::State;
  case BufferKind::temp:
    return format::BufferKind::Temp;
  case BufferKind::input:
    return format::BufferKind::Input;
  case BufferKind::hyperparameter:
    return format::BufferKind::Hyper;
  }
  llvm_unreachable("all kinds are handled");
}

static format::Index indexOf(SlotIndex index) {
  if (index == SlotIndex::none)
    return format::Index::None;
  return index == SlotIndex::microbatch ? format::Index::Mb : format::Index::Ver;
}

/// A name that an operand can be written by ("r predict.input.my_input~3"): a graph may call its tensors as it likes.
std::string ProgramEmitter::nameOf(BufferOp buffer) const {
  std::string name = tableName(buffer.getSymName());
  for (char &c : name)
    if (static_cast<unsigned char>(c) < 0x80 &&
        (!llvm::isPrint(c) || c == ' ' || c == '@' || c == '"')) // other scripts stay
      c = '_';
  return name == tableName(buffer.getSymName()) ? name : name + "~" + std::to_string(out.buffers.size());
}

void ProgramEmitter::emitBuffers() {
  for (BufferOp buffer : program.getOps<BufferOp>()) {
    format::Buffer made;
    made.name = nameOf(buffer);
    made.space = isOnHost(buffer) ? format::Space::Host : format::Space::Dev;
    made.kind = kindOf(buffer.getKind());
    made.type = dtypeOf(buffer.getTensorType().getElementType());
    made.shape = shapeOf(buffer.getTensorType());
    made.index = indexOf(buffer.getIndex());
    if (made.kind == format::BufferKind::State || made.kind == format::BufferKind::Hyper)
      made.tensor = buffer.getOf().value_or(buffer.getSymName());
    made.at.assign(buffer.getAt()->begin(), buffer.getAt()->end());
    buffers[buffer] = out.buffers.size();
    out.buffers.push_back(std::move(made));
  }
}

uint32_t ProgramEmitter::comm(const std::string &name) {
  auto same = llvm::find_if(out.comms, [&](const format::Comm &comm) { return comm.name == name; });
  if (same == out.comms.end())
    same = out.comms.insert(same, {name, queue});
  return same - out.comms.begin();
}

/// Scratch memory of all kernels: one last buffer, as large as the largest request.
uint32_t ProgramEmitter::scratch(uint64_t bytes) {
  uint32_t index = out.findBuffer("scratch");
  if (index == format::noIndex) {
    format::Buffer made;
    made.name = "scratch";
    made.type = format::DType::U8;
    made.shape = {0};
    made.at = {out.arena.state + out.arena.pool};
    index = out.buffers.size();
    out.buffers.push_back(std::move(made));
  }
  format::Buffer &buffer = out.buffers[index];
  buffer.shape[0] = std::max<int64_t>(buffer.shape[0], bytes);
  uint64_t end = llvm::alignTo(buffer.at[0] + buffer.shape[0], arenaAlignment);
  out.arena.pool = end - out.arena.state;
  return index;
}

//===-- Instructions -------------------------------------------------------------------------===//

format::Instruction &ProgramEmitter::append(Operation *op, format::Op kind) {
  format::Instruction &made = out.blocks.back().instructions.emplace_back();
  made.op = kind;
  made.queue = queue;
  made.provenance = tables.provenanceOf(op->getLoc());
  return made;
}

format::Operand ProgramEmitter::operand(format::Access access, BufferOp buffer) const {
  format::Operand made;
  made.access = access;
  made.buffer = buffers.lookup(buffer);
  format::Index index = out.buffers[made.buffer].index;
  if (index != format::Index::None)
    made.slot.base = index == format::Index::Mb ? format::SlotExpr::Mb : format::SlotExpr::Ver;
  return made;
}

format::Operand ProgramEmitter::part(format::Access access, BufferOp buffer, uint64_t offset, RankedTensorType type) {
  format::Operand made = operand(access, buffer);
  if (offset == 0 && type.getNumElements() == buffer.getTensorType().getNumElements())
    return made;
  std::string name = (out.buffers[made.buffer].name + "." + Twine(offset) + "." + Twine(getByteSize(type))).str();
  uint32_t known = out.findBuffer(name);
  if (known == format::noIndex) {
    format::Buffer alias = out.buffers[made.buffer];
    alias.name = name;
    alias.shape = shapeOf(type);
    alias.at.clear();
    alias.tensor.clear();
    alias.of = made.buffer;
    alias.offset = offset;
    known = out.buffers.size();
    out.buffers.push_back(std::move(alias));
  }
  made.buffer = known;
  return made;
}

void ProgramEmitter::emitCopy(StoreOp store, LoadOp load) {
  BufferOp from = bufferOf(load), to = names.lookup<BufferOp>(store.getBuffer());
  if (from == to)
    return;
  format::Instruction &copy = append(store, format::Op::Copy);
  copy.operands = {part(format::Access::Read, from, 0, load.getType()),
                   part(format::Access::Write, to, 0, load.getType())};
  copy.n = load.getType().getNumElements();
}

LogicalResult ProgramEmitter::emitOp(Operation *op) {
  if (isa<LoadOp>(op))
    return success();
  if (auto store = dyn_cast<StoreOp>(op)) {
    if (auto load = store.getOperand().getDefiningOp<LoadOp>())
      emitCopy(store, load);
    return success();
  }
  if (auto fetch = dyn_cast<FetchOp>(op)) {
    format::Instruction &made = append(op, format::Op::Fetch);
    RankedTensorType type = getTensorType(fetch.getOperand().getType());
    made.operands = {part(format::Access::Read, bufferOf(fetch.getOperand()), 0, type)};
    made.name = fetch.getName();
    return success();
  }
  if (auto launch = dyn_cast<LaunchOp>(op))
    return emitLaunch(launch);
  if (auto send = dyn_cast<SendOp>(op))
    return emitSend(send);
  if (auto recv = dyn_cast<RecvOp>(op))
    return emitRecv(recv);
  if (auto send = dyn_cast<SendPartsOp>(op)) {
    emitParts(op, send.getOperands(), send.getPeers(), send.getGroups(), send.getTag());
    return success();
  }
  if (auto recv = dyn_cast<RecvPartsOp>(op)) {
    emitParts(op, recv.getResults(), recv.getPeers(), recv.getGroups(), recv.getTag());
    return success();
  }
  if (auto reduce = dyn_cast<WorldAllReduceOp>(op))
    return emitWorldAllReduce(reduce);
  if (auto done = dyn_cast<DoneOp>(op)) {
    emitDone(done);
    return success();
  }
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return collective.getQueue().empty()
               ? emitCollective(collective, tables.communicators.overAxes(getAxes(collective.getAxes())))
               : emitBeside(collective);
  return op->emitError() << "is left in a program that is to be a bundle; Kernels puts such ops into kernels";
}

//===-- Inputs -------------------------------------------------------------------------------===//

/// Plays the entries: an input is fed by the block that first loads it, for its microbatch or once an entry.
void ProgramEmitter::findFeeds() {
  for (EntryOp entry : program.getOps<EntryOp>()) {
    std::set<std::pair<Operation *, int64_t>> fed;
    for (auto [name, microbatch] :
         llvm::zip(entry.getBlocks().getAsRange<FlatSymbolRefAttr>(), entry.getMicrobatches())) {
      auto block = names.lookup<BlockOp>(name.getValue());
      for (LoadOp load : block.getOps<LoadOp>()) {
        BufferOp buffer = bufferOf(load);
        if (buffer.getKind() != BufferKind::input)
          continue;
        if (fed.insert({buffer, buffer.getSliced() ? microbatch : 0}).second)
          feeds[block].insert(buffer);
      }
    }
  }
}

void ProgramEmitter::emitFeeds(BlockOp block) {
  for (Operation *op : feeds[block]) {
    auto buffer = cast<BufferOp>(op);
    format::Instruction &feed = append(op, format::Op::Feed);
    feed.operands = {operand(format::Access::Write, buffer)};
    feed.name = buffer.getOf().value_or(buffer.getSymName());
  }
}

//===-- Blocks and entries -------------------------------------------------------------------===//

LogicalResult ProgramEmitter::emitBlock(BlockOp block) {
  out.blocks.push_back({block.getSymName().str(), {}});
  emitFeeds(block);
  for (Operation &op : block.getBody().front())
    if (failed(emitOp(&op)))
      return failure();
  return success();
}

void ProgramEmitter::emitEntry(EntryOp entry) {
  format::Entry made{entry.getSymName().str(), {}};
  for (auto [index, name] : llvm::enumerate(entry.getBlocks().getAsRange<FlatSymbolRefAttr>())) {
    // par.entry verifies the name
    made.runs.push_back({out.findBlock(name.getValue()), entry.getMicrobatches()[index], getVersion(entry, index)});
  }
  out.entries.push_back(std::move(made));
}

FailureOr<format::Program> ProgramEmitter::emit() {
  for (BufferOp buffer : program.getOps<BufferOp>())
    if (!buffer.getAt())
      return buffer.emitError() << "has no offsets; a bundle is made after Memory";
  out.name = tableName(program.getRole());
  ArenaSize arena = getArenaSize(program);
  out.arena = {static_cast<uint64_t>(arena.state), static_cast<uint64_t>(arena.pool),
               static_cast<uint64_t>(arena.host)};
  out.queues = {"compute"};
  emitBuffers();
  findFeeds();
  for (BlockOp block : program.getOps<BlockOp>())
    if (failed(emitBlock(block)))
      return failure();
  for (format::Block &block : out.blocks) {
    dropEmpty(block);
    emitWaits(block);
    giveCopiesQueues(block);
  }
  giveTransfersQueues();
  for (EntryOp entry : program.getOps<EntryOp>())
    emitEntry(entry);
  advanceSends(out);
  return std::move(out);
}

} // namespace par
