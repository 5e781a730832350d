#pragma once

#include "par/Base/TypeSize.h"
#include "par/Dialect/Par.h"

#include <map>

namespace par {

/// Offsets are multiples of this.
inline constexpr int64_t arenaAlignment = 256;

/// Bytes of a program's arena: the state, then the pool. `lowerBound`: maximum of pool bytes alive at one position.
/// `host`: bytes of the arena in host memory.
struct ArenaSize {
  int64_t state = 0, pool = 0, lowerBound = 0, host = 0;
};
ArenaSize getArenaSize(ProgramOp program);

/// A buffer's slot that is alive from one position of a flattened entry to another, both included.
struct BufferUse {
  BufferOp buffer;
  int64_t slot;
  int64_t begin, end;
};

/// Lives of every slot of every buffer of the device that is not state, over all entries one after the other. Positions
/// count the ops of the blocks in the order in which they run.
std::vector<BufferUse> computeLives(ProgramOp program);

/// The buffer of a program value: the buffer from which it is loaded or to which it is stored. Null if there is none.
/// `names` is the program's table.
BufferOp getBuffer(mlir::Value value, const mlir::SymbolTable &names);

/// For every result of a program's op the operand whose bytes it takes over, or -1. `kernels` is the module's
/// table.
llvm::SmallVector<int64_t> getTiedOperands(mlir::Operation *op, const mlir::SymbolTable &kernels);

} // namespace par
