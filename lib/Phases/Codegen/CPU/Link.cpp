#include "NativeCode.h"

#include "../WorkFolder.h"

#include "lld/Common/Driver.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

namespace par::cpu {

llvm::FailureOr<std::string> linkObjects(const std::vector<std::string> &objects, std::string &error) {
  codegen::WorkFolder folder("par-link");
  std::string result = folder.file("kernels.so");
  std::vector<std::string> words = {"ld.lld",          "-shared",          "--no-undefined", "-z", "noexecstack",
                                    "--build-id=none", "--hash-style=gnu", "--strip-all",    "-o", result};
  for (size_t i = 0; i < objects.size(); ++i) {
    words.push_back(folder.file("k" + llvm::Twine(i) + ".o"));
    if (std::error_code unwritten = folder.write(words.back(), objects[i])) {
      error = "cannot write " + words.back() + ": " + unwritten.message();
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
