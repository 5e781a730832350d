// A file that gets its name when it is whole.
#pragma once

#include "par/comm/job/Control.h"

#include <string>

namespace par::core {

/// A file that several processes write under another name until it is whole: FILE.HEX.tmp, which rank 0 makes anew, so
/// that neither what lies there under a name that one could guess is written over, nor what another job writes at the
/// same time. Rank 0 gives it its own name then; where a rank fails before, it is removed: a disk that is full is not
/// filled further by what nobody can read. What jobs that were killed left of the same file is removed too: their locks
/// are gone.
class PartFile {
public:
  /// Collective: every rank opens the file by name() afterwards. Throws Failure.
  PartFile(const std::string &whole, comm::Control &control);
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
