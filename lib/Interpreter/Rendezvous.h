#pragma once

#include "Storage.h"

#include "par/Dialect/Parts.h"

#include <set>

namespace par::interp {

/// One role's way through an entry; its ranks are in lock step.
struct ProgramCursor {
  ProgramCursor(ProgramOp program, EntryOp entry)
      : program(program), entry(entry), mesh(getMesh(program, program.getFirstStage())),
        values(program.getRanks().size()), storage(program) {
    enter();
  }

  int64_t microbatch() { return entry.getMicrobatches()[run]; }
  RunIndex index() { return {microbatch(), getVersion(entry, run)}; }
  bool done() { return run >= entry.getBlocks().size(); }
  bool communicates() {
    return !done() && llvm::isa<SendOp, RecvOp, SendPartsOp, RecvPartsOp, WorldAllReduceOp>(*next);
  }
  /// Advances to the first op of the next block that has one.
  void enter() {
    for (; !done(); ++run) {
      auto block = llvm::cast<BlockOp>(
          mlir::SymbolTable::lookupSymbolIn(program, llvm::cast<mlir::FlatSymbolRefAttr>(entry.getBlocks()[run])));
      next = block.getBody().front().begin();
      end = block.getBody().front().end();
      for (RankValues &rank : values)
        rank.clear();
      if (next != end)
        return;
    }
  }
  void step() {
    if (++next != end)
      return;
    ++run;
    enter();
  }
  /// The shards of a value on all ranks.
  llvm::SmallVector<Tensor> shards(mlir::Value value) {
    llvm::SmallVector<Tensor> result;
    for (RankValues &rank : values)
      result.push_back(rank.lookup(value));
    return result;
  }

  ProgramOp program;
  EntryOp entry;
  MeshAttr mesh;
  llvm::SmallVector<RankValues> values;
  Storage storage;
  std::set<std::pair<mlir::Operation *, int64_t>> fed;                        ///< input buffers and microbatches
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<Tensor>> accumulators; ///< last stored values of gradients'
                                                                              ///< buffers
  size_t run = 0;
  mlir::Block::iterator next, end;
};

/// Runs the first communication that is possible, and returns whether there was one. Fails with an error at a send or
/// reduction that does not match its peers.
mlir::FailureOr<bool> meet(llvm::MutableArrayRef<ProgramCursor> walks);

/// An error with one note a role that has not come to its end; success if all have.
mlir::LogicalResult reportDeadlock(llvm::MutableArrayRef<ProgramCursor> walks);

} // namespace par::interp
