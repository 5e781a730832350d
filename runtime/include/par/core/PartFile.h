// A file that gets its name when it is whole.
#pragma once

#include <string>
#include <utility>

namespace par::core {

/// A file that several processes write under another name until it is whole. Its owner gives it its own name then; where
/// a rank fails before, it is removed: a disk that is full is not filled further by what nobody can read.
class PartFile {
public:
  /// `owns`: in one of the processes.
  PartFile(const std::string &whole, bool owns) : whole(whole), path(whole + ".tmp"), owns(owns) {}
  ~PartFile();
  PartFile(PartFile &&other) noexcept
      : whole(std::move(other.whole)), path(std::move(other.path)), owns(std::exchange(other.owns, false)) {}
  /// The other name.
  const std::string &name() const { return path; }
  /// In the owner's process; throws Failure.
  void giveName();

private:
  std::string whole, path;
  bool owns;
};

} // namespace par::core
