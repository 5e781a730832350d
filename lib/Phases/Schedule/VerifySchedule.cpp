// Gate of Schedule: the module holds only programs, accumulators say their variable, and each entry of all programs
// runs to its end with one communication at a time and no buffering.
#include "par/Dialect/Calls.h"
#include "par/Dialect/Par.h"
#include "par/Dialect/Parts.h"
#include "par/Phases/Schedule/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYSCHEDULEPASS
#include "par/Phases/Schedule/Passes.h.inc"

//===-- Ops allowed in a module --------------------------------------------------------------===//

static LogicalResult verifyPrograms(ModuleOp module) {
  for (StepOp step : module.getOps<StepOp>())
    return step.emitError() << "is left after Schedule";
  llvm::MapVector<Attribute, ProgramOp> of;
  for (ProgramOp program : module.getOps<ProgramOp>())
    for (auto stage : program.getStages().getAsRange<FlatSymbolRefAttr>())
      if (auto [at, first] = of.insert({stage.getAttr(), program}); !first)
        return program.emitError() << "is a second program of " << stage;
  for (StageOp stage : module.getOps<StageOp>()) {
    ProgramOp program = of.lookup(stage.getSymNameAttr());
    if (!program)
      return stage.emitError() << "has no program after Schedule";
    MeshAttr mesh = getMesh(program, program.getFirstStage());
    if (program.getRanks() != stage.getRanks() || mesh != stage.getMesh())
      return stage.emitError() << "lies on ranks " << stage.getRanks() << " with mesh " << stage.getMesh()
                               << ", its program @" << program.getSymName() << " on " << program.getRanks() << " with "
                               << mesh;
  }
  ProgramOp model;
  for (auto &[stage, program] : of) {
    if (!model)
      model = program;
    for (auto [one, other] : {std::pair(model, program), std::pair(program, model)})
      for (EntryOp entry : one.getOps<EntryOp>())
        if (!SymbolTable::lookupSymbolIn(other, entry.getSymNameAttr()))
          return entry.emitError() << "is no entry of @" << other.getSymName();
  }
  return success();
}

static LogicalResult verifyExec(ExecOp exec, const SymbolTable &symbols) {
  auto fragment = symbols.lookup<FragmentOp>(exec.getFragmentAttr().getAttr());
  if (!fragment)
    return exec.emitError() << "names " << exec.getFragmentAttr() << ", which is no fragment";
  auto program = exec->getParentOfType<ProgramOp>();
  if (!program.holds(fragment.getStageAttr()))
    return exec.emitError() << "runs a fragment of @" << fragment.getStage() << " on @" << program.getRole();
  if (!fragment.getLocal())
    return exec.emitError() << "runs a fragment that is not local";
  if (TypeRange(exec.getOperandTypes()) != TypeRange(fragment.getArgumentTypes()) ||
      TypeRange(exec.getResultTypes()) != TypeRange(fragment.getResultTypes()))
    return exec.emitError() << "does not have the fragment's type " << fragment.getFunctionType();
  return success();
}

/// A buffer that accumulates a gradient names its variable, and has the shape of its shard.
static LogicalResult verifyAccumulator(BufferOp buffer) {
  if (buffer.getKind() != BufferKind::temp || !buffer.getOf())
    return success();
  if (!buffer->getParentOfType<ModuleOp>().lookupSymbol<VariableOp>(*buffer.getOf()))
    return buffer.emitError() << "accumulates the gradient of \"" << *buffer.getOf() << "\", which is no variable";
  auto program = buffer->getParentOfType<ProgramOp>();
  auto dist = buffer.getDist() ? dyn_cast<DistType>(*buffer.getDist()) : DistType();
  if (!dist || !program.holds(dist.getStage()))
    return buffer.emitError() << "accumulates the gradient of \"" << *buffer.getOf()
                              << "\" without saying how it lies on @" << program.getRole();
  RankedTensorType local = dist.getSharding().getLocalType(dist.getTensor(), getMesh(program, dist.getStage()));
  if (local != buffer.getTensorType())
    return buffer.emitError() << "has type " << buffer.getTensorType() << ", a shard of " << dist << " has " << local;
  return success();
}

//===-- Playing an entry ---------------------------------------------------------------------===//

namespace {

/// One program's way through an entry, op by op.
struct ProgramCursor {
  ProgramCursor(ProgramOp program, StringRef name) : program(program) {
    SymbolTable names(program);
    entry = names.lookup<EntryOp>(name);
    for (BlockOp block : program.getOps<BlockOp>()) {
      blocks[block.getSymNameAttr()] = block;
      for (auto load : block.getOps<LoadOp>())
        buffers[load] = names.lookup<BufferOp>(load.getBuffer());
      for (auto store : block.getOps<StoreOp>())
        buffers[store] = names.lookup<BufferOp>(store.getBuffer());
    }
    enter();
  }

  ProgramOp program;
  EntryOp entry;
  size_t run = 0;
  Block::iterator next, end;
  /// (buffer, slot) -> microbatch that stored it last.
  llvm::DenseMap<std::pair<Operation *, int64_t>, int64_t> stored;
  /// By name, and of each load and store: an entry runs a block thousands of times.
  llvm::DenseMap<Attribute, BlockOp> blocks;
  llvm::DenseMap<Operation *, BufferOp> buffers;

  int64_t microbatch() { return entry.getMicrobatches()[run]; }
  RunIndex index() { return {microbatch(), getVersion(entry, run)}; }
  bool done() { return run >= entry.getBlocks().size(); }
  void enter() {
    while (!done()) {
      BlockOp block = blocks.lookup(cast<FlatSymbolRefAttr>(entry.getBlocks()[run]).getAttr());
      next = block.getBody().front().begin();
      end = block.getBody().front().end();
      if (next != end)
        return;
      ++run;
    }
  }
  void step() {
    if (++next == end) {
      ++run;
      enter();
    }
  }
};

/// Executes an entry of all programs with one communication at a time on each, rendezvous and no buffers.
class ScheduleRun {
public:
  ScheduleRun(ModuleOp module, StringRef entry) {
    for (ProgramOp program : module.getOps<ProgramOp>())
      walks.emplace_back(program, entry);
  }

  LogicalResult play() {
    for (bool progress = true; progress;) {
      progress = false;
      for (ProgramCursor &walk : walks)
        while (!walk.done() && !isCommunication(*walk.next)) {
          if (failed(access(walk)))
            return failure();
          walk.step();
          progress = true;
        }
      auto met = meet();
      if (failed(met))
        return failure();
      progress |= *met;
    }
    for (ProgramCursor &walk : walks)
      if (!walk.done())
        return walk.next->emitError() << "waits for ever in entry @" << walk.entry.getSymName() << ", microbatch "
                                      << walk.microbatch();
    return success();
  }

private:
  static bool isCommunication(Operation &op) {
    return isa<SendOp, RecvOp, SendPartsOp, RecvPartsOp, WorldAllReduceOp>(op);
  }

  LogicalResult access(ProgramCursor &walk) {
    auto load = dyn_cast<LoadOp>(*walk.next);
    if (!load && !isa<StoreOp>(*walk.next))
      return success();
    BufferOp buffer = walk.buffers.lookup(&*walk.next);
    int64_t slot = walk.index().slotOf(buffer);
    if (!load) {
      walk.stored[{buffer, slot}] = walk.index().of(buffer);
      return success();
    }
    if (buffer.getKind() != BufferKind::temp)
      return success();
    auto found = walk.stored.find({buffer, slot});
    if (found == walk.stored.end())
      return load.emitError() << "loads from @" << load.getBuffer() << ", which is not stored in entry @"
                              << walk.entry.getSymName();
    if (buffer.getIndex() == SlotIndex::version && found->second != walk.index().version)
      return load.emitError() << "of version " << walk.index().version << " finds in slot " << slot << " of @"
                              << load.getBuffer() << " version " << found->second;
    if (buffer.getIndex() == SlotIndex::microbatch && found->second != walk.microbatch())
      return load.emitError() << "of microbatch " << walk.microbatch() << " finds in slot " << slot << " of @"
                              << load.getBuffer() << " a value of microbatch " << found->second;
    return success();
  }

  /// Lets a send and its receive, or all of a reduction, pass; true if any did.
  FailureOr<bool> meet() {
    for (ProgramCursor &walk : walks) {
      if (walk.done())
        continue;
      if (auto send = dyn_cast<SendOp>(*walk.next)) {
        ProgramCursor *peer = walkOf(send.getPeers());
        auto recv = peer && !peer->done() ? dyn_cast<RecvOp>(*peer->next) : RecvOp();
        if (!recv || walkOf(recv.getPeers()) != &walk)
          continue;
        if (recv.getTag() != send.getTag() || recv.getResultTypes() != send.getOperandTypes()) {
          InFlightDiagnostic error = send.emitError() << "of tag " << send.getTag() << " meets a receive of tag "
                                                      << recv.getTag() << " or of other types";
          error.attachNote(recv.getLoc()) << "received here";
          return error;
        }
        walk.step();
        peer->step();
        return true;
      }
      if (auto send = dyn_cast<SendPartsOp>(*walk.next)) {
        auto met = meetParts(walk, send);
        if (failed(met) || *met)
          return met;
      }
      if (auto reduce = dyn_cast<WorldAllReduceOp>(*walk.next)) {
        SmallVector<ProgramCursor *> members = membersOf(reduce);
        if (members.empty())
          continue;
        for (ProgramCursor *member : members)
          member->step();
        return true;
      }
    }
    return false;
  }

  /// Completes a send_parts if a peer waits at its receive.
  FailureOr<bool> meetParts(ProgramCursor &walk, SendPartsOp send) {
    for (ProgramCursor &peer : walks) {
      auto recv = peer.done() ? RecvPartsOp() : dyn_cast<RecvPartsOp>(*peer.next);
      if (!recv || recv.getTag() != send.getTag())
        continue;
      for (int64_t rank : peer.program.getRanks())
        for (unsigned part = 0; part < recv.getNumResults(); ++part)
          if (failed(verifyPart(send, recv, rank, part)))
            return failure();
      walk.step();
      peer.step();
      return true;
    }
    return false;
  }

  /// The rank from which a rank receives its part sends it, with the same type.
  LogicalResult verifyPart(SendPartsOp send, RecvPartsOp recv, int64_t rank, unsigned part) {
    int64_t from = recv.getPeerOf(rank, part);
    for (unsigned sent = 0; from >= 0 && sent < send.getNumOperands(); ++sent)
      if (send.getPeerOf(from, sent) == rank && send.getOperand(sent).getType() == recv.getResult(part).getType())
        return success();
    InFlightDiagnostic error = recv.emitError()
                               << "of tag " << recv.getTag() << ": no rank sends rank " << rank << " its part " << part
                               << " of type " << recv.getResult(part).getType();
    error.attachNote(send.getLoc()) << "sent here";
    return error;
  }

  ProgramCursor *walkOf(ArrayRef<int64_t> ranks) {
    for (ProgramCursor &walk : walks)
      if (walk.program.getRanks() == ranks)
        return &walk;
    return nullptr;
  }

  /// The programs of a reduction's first group, if all of them stand at it.
  SmallVector<ProgramCursor *> membersOf(WorldAllReduceOp reduce) {
    SmallVector<ProgramCursor *> members;
    for (int64_t rank : cast<DenseI64ArrayAttr>(reduce.getGroups()[0]).asArrayRef())
      for (ProgramCursor &walk : walks)
        if (llvm::is_contained(walk.program.getRanks(), rank)) {
          auto other = walk.done() ? WorldAllReduceOp() : dyn_cast<WorldAllReduceOp>(*walk.next);
          if (!other || other.getTag() != reduce.getTag() || other.getGroups() != reduce.getGroups())
            return {};
          members.push_back(&walk);
        }
    return members;
  }

  SmallVector<ProgramCursor> walks;
};

struct VerifySchedulePass : impl::VerifySchedulePassBase<VerifySchedulePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(verifyPrograms(module)))
      return signalPassFailure();
    for (ProgramOp program : module.getOps<ProgramOp>())
      for (BufferOp buffer : program.getOps<BufferOp>())
        if (failed(verifyAccumulator(buffer)))
          return signalPassFailure();
    SymbolTable symbols(module);
    WalkResult execs = module.walk([&](ExecOp exec) { return WalkResult(verifyExec(exec, symbols)); });
    if (execs.wasInterrupted())
      return signalPassFailure();
    auto programs = module.getOps<ProgramOp>();
    if (programs.empty())
      return;
    for (EntryOp entry : (*programs.begin()).getOps<EntryOp>())
      if (failed(ScheduleRun(module, entry.getSymName()).play()))
        return signalPassFailure();
  }
};

} // namespace

} // namespace par
