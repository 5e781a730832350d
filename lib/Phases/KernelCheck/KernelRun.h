#pragma once

#include "GuardedBuffer.h"

#include "llvm/ADT/ArrayRef.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace par::kernel_check {

/// One call of generated code, on operands of its own.
struct KernelRun {
  /// How it ended: by itself, at a touch of memory that is not its own, at another trap, not in time, or (a GPU's) with
  /// threads that wait for others that never come.
  enum End { Unknown, Done, Outside, Trap, TooLong, Deadlock };

  using Pointers = std::vector<void *>;
  /// False: threads wait for ever.
  std::function<bool(void *const *, const uint64_t *)> call;
  std::vector<std::unique_ptr<GuardedBuffer>> operands;
  /// Operands that the code may only read.
  std::vector<bool> readOnly;
  std::vector<uint64_t> immediates;

  End end = Unknown;
  uint64_t address = 0; ///< Outside
  bool wrote = false;   ///< Outside
  int signal = 0;       ///< Trap
};

/// Makes the calls in processes of their own. They change nothing here except operands that are not read-only. False,
/// with the reason, if the system starts no process.
bool runApart(llvm::ArrayRef<KernelRun *> runs, std::string &reason);

} // namespace par::kernel_check
