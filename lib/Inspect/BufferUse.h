#pragma once

#include "par/format/Bundle.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace par {

enum class BufferUse { Params, Grads, States, Saved, Buffers };
llvm::StringRef toString(BufferUse use);

/// The uses of a program's buffers, from names that Schedule gave.
class BufferUses {
public:
  BufferUses(const format::Bundle &bundle, const format::Program &program);

  /// `buffer` is no alias, and on the device.
  BufferUse of(uint32_t buffer) const;
  /// Buffers that forward writes and backward reads before it writes them, each with the instruction that writes it
  /// first.
  const llvm::MapVector<uint32_t, const format::Instruction *> &saved() const { return kept; }

private:
  const format::Bundle &bundle;
  const format::Program &program;
  llvm::MapVector<uint32_t, const format::Instruction *> kept;
};

/// `bf16[2x64x256]`
std::string typeOf(const format::Buffer &buffer);

} // namespace par
