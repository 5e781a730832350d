#include "NativeCode.h"

#include "lld/Common/Driver.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

namespace par::cpu {

static bool writeFile(llvm::StringRef path, llvm::StringRef bytes) {
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  out << bytes;
  out.close();
  return !error && !out.has_error();
}

/// The linker reads and writes files: a folder of its own, gone with this object.
namespace {
struct WorkFolder {
  WorkFolder() { made = !llvm::sys::fs::createUniqueDirectory("par-link", path); }
  ~WorkFolder() {
    if (made)
      llvm::sys::fs::remove_directories(path);
  }
  std::string file(const llvm::Twine &name) const {
    llvm::SmallString<128> result(path);
    llvm::sys::path::append(result, name);
    return result.str().str();
  }
  llvm::SmallString<128> path;
  bool made;
};
} // namespace

llvm::FailureOr<std::string> linkObjects(const std::vector<std::string> &objects, std::string &error) {
  WorkFolder folder;
  std::string result = folder.file("kernels.so");
  std::vector<std::string> words = {
      "ld.lld",          "-shared",          "--no-undefined", "-z", "noexecstack",
      "--build-id=none", "--hash-style=gnu", "--strip-all",    "-o", result};
  for (size_t i = 0; i < objects.size(); ++i) {
    words.push_back(folder.file("k" + llvm::Twine(i) + ".o"));
    if (!folder.made || !writeFile(words.back(), objects[i])) {
      error = "cannot write " + words.back();
      return mlir::failure();
    }
  }
  std::vector<const char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(word.c_str());
  llvm::raw_string_ostream messages(error);
  // lld keeps its state in globals: one link at a time.
  static std::mutex linking;
  std::lock_guard<std::mutex> lock(linking);
  lld::Result linked = lld::lldMain(arguments, messages, messages, {{lld::Gnu, &lld::elf::link}});
  if (linked.retCode != 0)
    return mlir::failure();
  auto bytes = llvm::MemoryBuffer::getFile(result);
  if (!bytes) {
    error = "cannot read " + result;
    return mlir::failure();
  }
  return (*bytes)->getBuffer().str();
}

} // namespace par::cpu
