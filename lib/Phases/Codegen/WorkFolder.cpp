#include "WorkFolder.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace par::codegen {

std::error_code closeWhole(llvm::raw_fd_ostream &out) {
  out.close();
  std::error_code error = out.error();
  out.clear_error(); // which its destructor would meet
  return error;
}

WorkFolder::WorkFolder(llvm::StringRef prefix) {
  llvm::SmallString<128> name;
  error = llvm::sys::fs::createUniqueDirectory(prefix, name);
  path = name.str().str();
}

WorkFolder::~WorkFolder() {
  if (!error)
    llvm::sys::fs::remove_directories(path);
}

std::string WorkFolder::file(const llvm::Twine &name) const {
  llvm::SmallString<128> result(path);
  llvm::sys::path::append(result, name);
  return result.str().str();
}

std::error_code WorkFolder::write(llvm::StringRef file, llvm::StringRef bytes) const {
  if (error)
    return error;
  std::error_code opening;
  llvm::raw_fd_ostream out(file, opening);
  out << bytes;
  std::error_code writing = closeWhole(out);
  return opening ? opening : writing;
}

} // namespace par::codegen
