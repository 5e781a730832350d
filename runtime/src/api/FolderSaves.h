// The folders that a session's calls save to, beside that of --save.
#pragma once

#include "par/save/CheckpointWriter.h"

#include <map>

namespace par::api {

/// Every rank has one, and calls the collective functions at the same places. They throw Failure.
class FolderSaves {
public:
  explicit FolderSaves(core::Session &session) : session(session) {}

  bool has(const std::string &folder) const { return folders.count(folder) > 0; }
  /// Collective. Locks a folder and looks through it when it is first saved to; rank 0 does so, and all throw alike.
  /// `keep`: the newest saves that stay, 0: all; `from`: the save that the session goes on from.
  void open(const std::string &folder, uint64_t keep, const std::string &from);
  /// Collective. Saves into an open folder, and returns where.
  std::string save(const std::string &folder, const core::RunPosition &position);

private:
  struct Folder {
    std::unique_ptr<core::SaveFolder> owner; ///< on rank 0
    std::unique_ptr<core::CheckpointWriter> writer;
  };

  core::Session &session;
  std::map<std::string, Folder> folders;
};

} // namespace par::api
