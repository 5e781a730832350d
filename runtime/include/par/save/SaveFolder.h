// The folder that --save names: DIR/STEP/ for each save, and beside them, for moments or after a kill, STEP.RUN.tmp
// (being written), STEP.RUN.old (moved aside while another one takes its name) and STEP.RUN.gone (being deleted). One
// job at a time owns it, by a lock on DIR/.lock that names who it is; what a dead owner left, its successor cleans up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace par::core {

/// The lock of a folder, held from construction to destruction, also by processes that this one forks meanwhile.
class FolderLock {
public:
  /// Throws Failure naming the owner where another job has it. `locks`: whether the file system is asked for a lock,
  /// which ends with its owner; one that has none goes by the text of the file, which the owner of a dead process on
  /// this host no longer is.
  explicit FolderLock(const std::string &folder, bool locks = true);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  bool tryLock();
  void takeByName();
  std::string owner() const;
  void sign();

  std::string folder, path;
  int descriptor = -1;
  int holder = 0; ///< the process that signed
};

/// A save of a folder.
struct ListedSave {
  std::string name;
  uint64_t step = 0;
  std::optional<uint64_t> serial; ///< of its index; absent where that cannot be read
};

/// The saves of a folder, oldest first: by the serial numbers of their indices, then by step. One whose index cannot be
/// read has its place by its step; one that was moved aside counts where none has its name.
std::vector<ListedSave> listSaves(const std::string &folder);
/// The step that a folder's name says; nothing where it is no number of a step.
std::optional<uint64_t> stepOfName(const std::string &name);

/// Throws Failure if `folder` holds something that is no save under a name that one of the steps up to `last` may get:
/// a file, or a folder with other files than saves have.
void refuseForeign(const std::string &folder, uint64_t last);
/// Throws Failure if `folder` holds saves and `from`, the one that a job goes on from (empty: none), is not among them:
/// it would delete them, or take their names, as it makes its own.
void refuseOthersSaves(const std::string &folder, const std::string &from);

/// Waits until a folder's entries are on the disk; throws Failure.
void syncFolder(const std::string &path);
/// Renames the folder `from` to `to`, atomically. A folder of that name is moved to `aside` and deleted; the move is
/// part of the atomic step if the file system can exchange (`exchanges`). Throws Failure.
void replaceFolder(const std::string &from, const std::string &to, const std::string &aside, bool exchanges = true);

/// The saves of one job, of its rank 0.
class SaveFolder {
public:
  /// Locks the folder, cleans up after an owner that is gone, and lists its saves. Throws Failure.
  explicit SaveFolder(std::string folder);

  /// Again: cleans up what a rank 0 of this job left that is gone, and lists the saves that are there.
  void takeUp();
  /// The newest save of the job before a step, "DIR/STEP"; "" where none is whole.
  std::string newest(uint64_t before = ~uint64_t(0)) const;

  /// 16 hex digits that no other job has.
  const std::string &run() const { return runName; }
  /// Serial number of the next save.
  uint64_t nextSerial() const;
  /// Gives a whole save its name, DIR/STEP, and deletes all but the `keep` newest.
  void add(const std::string &part, uint64_t step, uint64_t keep);

private:
  void cleanUp();
  std::string named(uint64_t step, const std::string &ending) const;

  std::string folder;
  FolderLock lock;
  std::string runName;
  std::vector<ListedSave> saves; ///< those whose index can be read
};

} // namespace par::core
