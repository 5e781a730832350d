#include "WorkFolder.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace par::codegen {

bool closeWhole(llvm::raw_fd_ostream &out) {
  out.close();
  bool whole = !out.has_error();
  out.clear_error(); // which its destructor would meet
  return whole;
}

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
  return closeWhole(out) && !error;
}

} // namespace par::codegen
