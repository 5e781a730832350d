#pragma once

#include "llvm/ADT/Twine.h"

#include <string>
#include <system_error>

namespace llvm {
class raw_fd_ostream;
} // namespace llvm

namespace par::codegen {

/// Closes a file; why not all of it could be written. Without this a full disk would end the process.
std::error_code closeWhole(llvm::raw_fd_ostream &out);

/// A folder of its own for programs that read and write files, gone with this object.
class WorkFolder {
public:
  explicit WorkFolder(llvm::StringRef prefix);
  ~WorkFolder();
  WorkFolder(const WorkFolder &) = delete;

  std::string file(const llvm::Twine &name) const;
  /// Why the folder or the file could not be made.
  std::error_code write(llvm::StringRef path, llvm::StringRef bytes) const;

private:
  std::string path;      ///< also of a folder that could not be made: messages name it
  std::error_code error; ///< why it is not there
};

} // namespace par::codegen
