#include "par/cpu/KernelObject.h"

#include "par/core/Failure.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

namespace par::cpu {

using core::Failure;
using core::Message;

namespace {

/// Reads an ELF file without trusting an offset in it.
struct Elf {
  std::span<const std::byte> bytes;
  const std::string &path;

  template <typename T>
  T at(uint64_t offset) const {
    T value;
    if (offset > bytes.size() || bytes.size() - offset < sizeof value)
      throw Failure::at(path, Message::notElf);
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }

  [[noreturn]] void refuse(const char *what) const { throw Failure::at(path, Message::elfDependency, what); }

  void checkDynamic(const Elf64_Phdr &segment) const {
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      auto entry = this->at<Elf64_Dyn>(segment.p_offset + at);
      switch (entry.d_tag) {
      case DT_NULL:
        return;
      case DT_NEEDED:
        refuse("a dependency (DT_NEEDED)");
      case DT_INIT:
      case DT_FINI:
      case DT_INIT_ARRAY:
      case DT_FINI_ARRAY:
      case DT_PREINIT_ARRAY:
        refuse("an initialiser (DT_INIT or DT_FINI)");
      default:
        break;
      }
    }
  }

  void checkSymbols(const Elf64_Shdr &section) const {
    // Symbol 0 is the null symbol.
    for (uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      auto symbol = this->at<Elf64_Sym>(section.sh_offset + at);
      if (symbol.st_shndx == SHN_UNDEF)
        refuse("an undefined symbol");
      if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
        refuse("a resolver function (IFUNC)");
    }
  }
};

/// A file in memory with these bytes.
int copyOf(const std::string &path, const std::string &content) {
  int file = memfd_create("par-kernels", MFD_CLOEXEC);
  for (size_t done = 0; file >= 0 && done < content.size();) {
    ssize_t count = write(file, content.data() + done, content.size() - done);
    if (count < 0 && errno != EINTR) {
      close(file);
      file = -1;
    }
    done += count > 0 ? static_cast<size_t>(count) : 0;
  }
  if (file < 0)
    throw Failure::at(path, Message::cannotOpen, std::strerror(errno));
  return file;
}

} // namespace

void checkKernelObject(const std::string &path, const std::string &content) {
  Elf elf{std::as_bytes(std::span(content)), path};
  auto header = elf.at<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_type != ET_DYN || header.e_machine != EM_X86_64)
    throw Failure::at(path, Message::notElf);
  bool dynamic = false, symbols = false;
  for (int i = 0; i < header.e_phnum; ++i) {
    auto segment = elf.at<Elf64_Phdr>(header.e_phoff + uint64_t(i) * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_DYNAMIC)
      continue;
    elf.checkDynamic(segment);
    dynamic = true;
  }
  for (int i = 0; i < header.e_shnum; ++i) {
    auto section = elf.at<Elf64_Shdr>(header.e_shoff + uint64_t(i) * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_DYNSYM)
      continue;
    elf.checkSymbols(section);
    symbols = true;
  }
  if (!dynamic || !symbols)
    throw Failure::at(path, Message::notElf);
}

KernelObject::KernelObject(const std::string &path, const std::string &content) : path(path) {
  checkKernelObject(path, content);
  copy = copyOf(path, content);
  handle = dlopen(("/proc/self/fd/" + std::to_string(copy)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle)
    return;
  std::string reason = dlerror();
  close(copy);
  throw Failure::at(path, Message::cannotOpen, reason);
}

KernelObject::~KernelObject() {
  if (handle)
    dlclose(handle);
  if (copy >= 0)
    close(copy);
}

kernels::KernelFunction KernelObject::function(const std::string &symbol, const std::string &kernel) const {
  void *found = handle ? dlsym(handle, symbol.c_str()) : nullptr;
  if (!found)
    throw Failure::at(path, Message::noKernel, kernel, handle ? "no symbol " + symbol : "there is no kernel object");
  return reinterpret_cast<kernels::KernelFunction>(found);
}

} // namespace par::cpu
