#include "WorkFolder.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace par::codegen {

WorkFolder::WorkFolder(llvm::StringRef prefix) {
  llvm::SmallString<128> name;
  made = !llvm::sys::fs::createUniqueDirectory(prefix, name);
  path = name.str().str();
}

WorkFolder::~WorkFolder() {
  if (made)
    llvm::sys::fs::remove_directories(path);
}

std::string WorkFolder::file(const llvm::Twine &name) const {
  llvm::SmallString<128> result(path);
  llvm::sys::path::append(result, name);
  return result.str().str();
}

bool WorkFolder::write(llvm::StringRef file, llvm::StringRef bytes) const {
  std::error_code error;
  if (!made)
    return false;
  llvm::raw_fd_ostream out(file, error);
  out << bytes;
  out.close();
  return !error && !out.has_error();
}

} // namespace par::codegen
