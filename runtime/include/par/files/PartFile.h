// A file that gets its name when it is whole.
#pragma once

#include "par/comm/job/Control.h"

#include <string>

namespace par::core {

/// A file that several processes write under another name, FILE.HEX.tmp, until it is complete. Rank 0 makes it with a
/// random HEX, so that it overwrites no existing file and none of another job. Rank 0 renames it at the end; if a rank
/// fails before, it is removed, so that a full disk keeps no useless part. Parts that killed jobs left of the same file
/// are removed too: their locks are gone.
class PartFile {
public:
  /// Collective: every rank opens the file by name() afterwards. Throws Failure.
  PartFile(const std::string &whole, comm::Control &control);
  /// The same for one process.
  explicit PartFile(const std::string &whole);
  ~PartFile();
  PartFile(PartFile &&other) noexcept;
  /// The other name.
  const std::string &name() const { return path; }
  /// On rank 0, nothing on others; throws Failure.
  void giveName();

private:
  void make();
  void removeLeftOver() const;

  std::string whole, path;
  int descriptor = -1; ///< of the owner, who holds its lock
};

} // namespace par::core
