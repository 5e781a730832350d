#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

#include <atomic>
#include <string>

namespace par::codegen {

/// A folder of code, by its ingredients: the source, and the builds of Par, MLIR and LLVM. Processes may share it and
/// it may be removed at any time. A file appears whole; one that does not match its name is compiled again; one that
/// cannot be read or written is compiled as without a cache. Threads may share one object.
class CodeCache {
public:
  /// An empty name: nothing is kept.
  explicit CodeCache(llvm::StringRef folder);
  /// Removes files unused for a week, and the oldest above 1 GiB.
  ~CodeCache();

  /// False without a folder, and where builds of the compiler cannot be told apart: then `get` makes all and reads
  /// nothing.
  bool keeps() const { return !compiler.empty(); }

  /// The result of `make` for these ingredients, computed or cached; a failure is not cached.
  llvm::FailureOr<std::string> get(llvm::ArrayRef<llvm::StringRef> ingredients,
                                   llvm::function_ref<llvm::FailureOr<std::string>()> make);

  /// How often `get` had to make nothing.
  unsigned found() const { return hits; }

private:
  std::string folder, compiler;
  std::atomic<unsigned> hits = 0;
};

} // namespace par::codegen
