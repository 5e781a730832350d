#pragma once

#include "par/Dialect/Calls.h"
#include "par/Interpreter/Interpreter.h"

#include <map>

namespace par::interp {

/// The buffers of one program on all ranks of its stage, slot by slot. After Memory their bytes are tracked: a store to
/// one buffer invalidates other buffers in the same bytes.
class Storage {
public:
  explicit Storage(ProgramOp program);

  /// The shards that a load reads, one a rank. Fails with an error at `load` if the slot is empty, holds another
  /// microbatch's value, or another buffer has overwritten the bytes.
  mlir::FailureOr<llvm::SmallVector<Tensor>> load(LoadOp load, RunIndex run);
  void store(StoreOp store, RunIndex run, llvm::ArrayRef<Tensor> shards);

  /// Gives a slot its value before the entry begins.
  void fill(BufferOp buffer, RunIndex run, llvm::ArrayRef<Tensor> shards);
  /// Contents of a buffer without slots as another type; empty if nothing is stored.
  llvm::SmallVector<Tensor> peek(BufferOp buffer, int64_t slot, mlir::RankedTensorType type);
  /// Fails with an error at `user` if the bytes of a loaded value have changed since the load; only after Memory has
  /// placed the buffer.
  mlir::LogicalResult checkStillThere(mlir::Operation *user, LoadOp load, RunIndex run);

  BufferOp lookup(llvm::StringRef name) { return byName.lookup(name); }
  /// Buffers that were stored to, each once, in program order.
  llvm::SmallVector<BufferOp> stored();

private:
  struct Slot {
    llvm::SmallVector<Tensor> shards;
    int64_t number = 0;      ///< microbatch or version that stored it
    int64_t version = 0;     ///< counts changes of the slot
    std::string overwritten; ///< name of the buffer that took the bytes
    bool stored = false;
  };
  Slot &slotOf(BufferOp buffer, RunIndex run);
  void put(BufferOp buffer, RunIndex run, llvm::ArrayRef<Tensor> shards);
  void takeBytes(BufferOp buffer, int64_t slot);

  ProgramOp program;
  llvm::StringMap<BufferOp> byName;
  std::map<std::pair<mlir::Operation *, int64_t>, Slot> slots;
  llvm::DenseMap<mlir::Operation *, int64_t> loaded; ///< version that each load has given last
};

} // namespace par::interp
