#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

#include <atomic>
#include <string>

namespace par::codegen {

/// A folder that keeps code by all that it depends on: what it is made of, and the builds of Par, MLIR and LLVM that
/// make it. Processes may share it and it may be removed at any time: a file appears whole, one that does not hold what
/// was written under its name is made again, and what cannot be read or written is made as without a cache. Threads may
/// share one object.
class CodeCache {
public:
  /// An empty name: nothing is kept.
  explicit CodeCache(llvm::StringRef folder);
  /// Forgets what nobody used for a week, and the oldest above 1 GiB.
  ~CodeCache();

  /// False without a folder, and where builds of the compiler cannot be told apart: then `get` makes all and reads
  /// nothing.
  bool keeps() const { return !compiler.empty(); }

  /// What `make` made of these ingredients, now or earlier; its failure is not kept.
  llvm::FailureOr<std::string> get(llvm::ArrayRef<llvm::StringRef> ingredients,
                                   llvm::function_ref<llvm::FailureOr<std::string>()> make);

  /// How often `get` had to make nothing.
  unsigned found() const { return hits; }

private:
  std::string folder, compiler;
  std::atomic<unsigned> hits = 0;
};

} // namespace par::codegen
