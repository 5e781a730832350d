// The bytes that an instruction reads and writes.
#pragma once

#include "verify/Model.h"

namespace par::verify {

/// Effect on bytes. `Lose`: they are undefined afterwards.
enum class Touch : uint8_t { Read, Write, Lose };

/// Bytes [offset, offset + bytes) of the slot that `slot` selects in `root` (never an alias).
struct ByteAccess {
  Touch touch;
  uint32_t operand; ///< index into the instruction's operands
  uint32_t root;
  format::SlotExpr slot;
  uint64_t offset, bytes;
};

/// Accesses of `it` on the rank that is member `member` of `members` of its communicator (0 of 1 if it is not a
/// collective). All reads precede all writes. Strided operands of matmuls count with their whole extent.
std::vector<ByteAccess> accessesOf(const format::Program &program, const format::Instruction &it, uint32_t member,
                                   uint32_t members);

} // namespace par::verify
