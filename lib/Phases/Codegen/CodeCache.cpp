#include "CodeCache.h"
#include "WorkFolder.h"

#include "par/format/PlainFile.h"

#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/TargetParser/Host.h"

#include <fcntl.h>
#include <link.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;

namespace par::codegen {
namespace {

/// The linker's build id in a file's notes.
std::string buildIdIn(StringRef notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    const auto *note = reinterpret_cast<const ElfW(Nhdr) *>(notes.data());
    StringRef behind = notes.drop_front(sizeof(*note)), bytes = behind.drop_front(llvm::alignTo(note->n_namesz, 4));
    if (note->n_type == NT_GNU_BUILD_ID && behind.starts_with("GNU"))
      return bytes.take_front(note->n_descsz).str();
    notes = bytes.drop_front(std::min<size_t>(bytes.size(), llvm::alignTo(note->n_descsz, 4)));
  }
  return "";
}

/// The build id of the loaded file that holds `address`; empty if it has none.
std::string buildId(const void *address) {
  std::pair<uintptr_t, std::string> search(reinterpret_cast<uintptr_t>(address), "");
  auto look = [](dl_phdr_info *info, size_t, void *data) {
    auto &[address, id] = *static_cast<std::pair<uintptr_t, std::string> *>(data);
    ArrayRef<ElfW(Phdr)> parts(info->dlpi_phdr, info->dlpi_phnum);
    if (llvm::none_of(parts, [&, address = address](const ElfW(Phdr) & part) {
          return part.p_type == PT_LOAD && address - info->dlpi_addr - part.p_vaddr < part.p_memsz;
        }))
      return 0;
    for (const ElfW(Phdr) &part : parts)
      if (part.p_type == PT_NOTE && id.empty())
        id = buildIdIn({reinterpret_cast<const char *>(info->dlpi_addr + part.p_vaddr), part.p_memsz});
    return 1;
  };
  dl_iterate_phdr(look, &search);
  return search.second;
}

/// Builds of Par, MLIR and LLVM, in whichever files they are; empty where one cannot be told from another build.
std::string compilerId() {
  std::string all;
  for (const void *address :
       {reinterpret_cast<const void *>(&buildId), reinterpret_cast<const void *>(&mlir::translateModuleToLLVMIR),
        reinterpret_cast<const void *>(&llvm::sys::getHostCPUName)}) {
    std::string id = buildId(address);
    if (id.empty())
      return "";
    all += llvm::toHex(id) + " ";
  }
  return all;
}

std::string hash(StringRef bytes) {
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes)), /*LowerCase=*/true);
}

/// Hash of an entry's name and code: a file under another entry's name is invalid, like a truncated one.
std::string sumOf(StringRef file, StringRef code) {
  return hash((llvm::sys::path::filename(file) + "\n" + code).str());
}

/// The code after its hash. A file that is not plain, too large or does not match its hash counts as missing.
std::optional<std::string> read(StringRef file) {
  format::Expected<std::string> bytes = format::readPlainFile(file.str());
  if (!bytes)
    return std::nullopt;
  auto [sum, code] = StringRef(*bytes).split('\n');
  if (sum != sumOf(file, code))
    return std::nullopt;
  const timespec times[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}}; // by the time of its use it is kept
  ::utimensat(AT_FDCWD, file.str().c_str(), times, 0);
  return code.str();
}

/// Writes the whole file or none: a full disk, or another process that writes the same file, does no harm.
void write(StringRef file, StringRef code) {
  llvm::SmallString<128> beside;
  int descriptor;
  if (llvm::sys::fs::createUniqueFile(file + "-%%%%%%%%", descriptor, beside))
    return;
  llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true);
  out << sumOf(file, code) << '\n' << code;
  if (closeWhole(out) || llvm::sys::fs::rename(beside, file))
    llvm::sys::fs::remove(beside);
}

/// LLVM opens this file of its own to write the time: nothing that would wait, and no other file through a link.
void dropStrangeTimestamp(StringRef folder) {
  llvm::SmallString<128> file(folder);
  llvm::sys::path::append(file, "llvmcache.timestamp");
  struct stat info;
  if (::lstat(file.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    ::unlink(file.c_str());
}

} // namespace

CodeCache::CodeCache(StringRef folder) : folder(folder), compiler(folder.empty() ? "" : compilerId()) {}

FailureOr<std::string> CodeCache::get(ArrayRef<StringRef> ingredients, function_ref<FailureOr<std::string>()> make) {
  if (!keeps())
    return make();
  std::string all = compiler;
  for (StringRef each : ingredients)
    all += std::to_string(each.size()) + " " + each.str();
  llvm::SmallString<128> file(folder);
  llvm::sys::path::append(file, "llvmcache-" + hash(all)); // the names that LLVM's pruneCache looks for
  if (std::optional<std::string> kept = read(file)) {
    ++hits;
    return *kept;
  }
  FailureOr<std::string> made = make();
  if (succeeded(made))
    write(file, *made);
  return made;
}

CodeCache::~CodeCache() {
  llvm::CachePruningPolicy policy;
  policy.MaxSizeBytes = uint64_t(1) << 30;
  if (!keeps())
    return;
  dropStrangeTimestamp(folder);
  llvm::pruneCache(folder, policy);
}

} // namespace par::codegen
