// Checks the files of a bundle's kernels before they are loaded. No offset or size in a file is trusted: everything is
// read by Elf::at and Elf::part, which know where the file ends.
#include "par/format/KernelCode.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <map>
#include <optional>
#include <set>

using namespace par::format;

namespace {

constexpr const char *notElf = "is not an ELF shared object for x86-64", *notCubin = "is not an ELF file for CUDA",
                     *notPtx = "is no text of PTX: it has no ";
constexpr uint16_t cudaMachine = 190; // EM_CUDA, which elf.h does not have

Error missing(const WantedKernel &wanted) {
  return Error{"kernel \"" + wanted.kernel + "\" is not in it: no symbol " + wanted.symbol};
}

Error refused(const char *what) {
  return Error{std::string("has ") + what +
               "; a kernel object has no dependency, no undefined symbol and no initialiser"};
}

/// A range of addresses in memory.
struct Addresses {
  uint64_t begin = 0, end = 0;
};

/// A 64-bit little-endian ELF file.
class Elf {
public:
  explicit Elf(std::string_view bytes) : bytes(bytes) {}

  template <typename T>
  std::optional<T> at(uint64_t offset) const {
    T value;
    if (offset > bytes.size() || bytes.size() - offset < sizeof value)
      return std::nullopt;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
  std::optional<std::string_view> part(uint64_t offset, uint64_t size) const {
    if (offset > bytes.size() || size > bytes.size() - offset)
      return std::nullopt;
    return bytes.substr(offset, size);
  }
  std::optional<Elf64_Ehdr> header() const {
    auto header = at<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB)
      return std::nullopt;
    return header;
  }
  /// Nothing where the table is not in the file.
  std::optional<std::vector<Elf64_Shdr>> sections(const Elf64_Ehdr &header) const {
    return table<Elf64_Shdr>(header.e_shoff, header.e_shnum, header.e_shentsize);
  }
  std::optional<std::vector<Elf64_Phdr>> segments(const Elf64_Ehdr &header) const {
    return table<Elf64_Phdr>(header.e_phoff, header.e_phnum, header.e_phentsize);
  }
  /// "" where none begins there.
  static std::string_view nameAt(std::string_view names, uint64_t offset) {
    size_t end = offset < names.size() ? names.find('\0', offset) : std::string_view::npos;
    return end == std::string_view::npos ? "" : names.substr(offset, end - offset);
  }

private:
  template <typename T>
  std::optional<std::vector<T>> table(uint64_t offset, uint64_t count, uint64_t each) const {
    std::vector<T> entries;
    if (count > 0 && each != sizeof(T))
      return std::nullopt;
    for (uint64_t i = 0; i < count; ++i) {
      auto entry = at<T>(offset + i * sizeof(T));
      if (!entry)
        return std::nullopt;
      entries.push_back(*entry);
    }
    return entries;
  }

  std::string_view bytes;
};

/// The checks of a kernel object, in the order in which they are made.
class KernelObjectCheck {
public:
  explicit KernelObjectCheck(std::string_view bytes) : elf(bytes) {}

  Status check(const std::vector<WantedKernel> &wanted) {
    auto header = elf.header();
    if (!header || header->e_type != ET_DYN || header->e_machine != EM_X86_64)
      return Error{notElf};
    auto segments = elf.segments(*header);
    auto sections = elf.sections(*header);
    if (!segments || !sections)
      return Error{notElf};
    for (const Elf64_Phdr &segment : *segments)
      if (Status status = checkSegment(segment); !status)
        return status;
    for (const Elf64_Shdr &section : *sections)
      if (section.sh_type == SHT_DYNSYM)
        if (Status status = checkSymbols(section, *sections); !status)
          return status;
    if (!dynamic || !symbols)
      return Error{notElf};
    for (const WantedKernel &each : wanted)
      if (!functions.count(each.symbol))
        return missing(each);
    return {};
  }

private:
  Status checkSegment(const Elf64_Phdr &segment) {
    auto content = elf.part(segment.p_offset, segment.p_filesz);
    if (segment.p_type == PT_LOAD) {
      uint64_t end;
      if (!content || segment.p_filesz > segment.p_memsz ||
          __builtin_add_overflow(segment.p_vaddr, segment.p_memsz, &end))
        return Error{notElf};
      if (segment.p_flags & PF_X)
        code.push_back({segment.p_vaddr, end});
    }
    if (segment.p_type != PT_DYNAMIC)
      return {};
    dynamic = true;
    return content ? checkDynamic(segment) : Error{notElf};
  }

  Status checkDynamic(const Elf64_Phdr &segment) const {
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      auto entry = elf.at<Elf64_Dyn>(segment.p_offset + at);
      switch (entry ? entry->d_tag : DT_NULL) {
      case DT_NULL:
        return {};
      case DT_NEEDED:
        return refused("a dependency (DT_NEEDED)");
      case DT_INIT:
      case DT_FINI:
      case DT_INIT_ARRAY:
      case DT_FINI_ARRAY:
      case DT_PREINIT_ARRAY:
        return refused("an initialiser (DT_INIT or DT_FINI)");
      default:
        break;
      }
    }
    return {};
  }

  Status checkSymbols(const Elf64_Shdr &section, const std::vector<Elf64_Shdr> &sections) {
    std::optional<std::string_view> names;
    if (section.sh_link < sections.size())
      names = elf.part(sections[section.sh_link].sh_offset, sections[section.sh_link].sh_size);
    if (!names || !elf.part(section.sh_offset, section.sh_size))
      return Error{notElf};
    symbols = true;
    // Symbol 0 is the null symbol.
    for (uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      auto symbol = *elf.at<Elf64_Sym>(section.sh_offset + at);
      if (symbol.st_shndx == SHN_UNDEF)
        return refused("an undefined symbol");
      if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
        return refused("a resolver function (IFUNC)");
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && isCode(symbol.st_value))
        functions.insert(Elf::nameAt(*names, symbol.st_name));
    }
    return {};
  }

  bool isCode(uint64_t address) const {
    return std::any_of(code.begin(), code.end(),
                       [&](const Addresses &range) { return address >= range.begin && address < range.end; });
  }

  Elf elf;
  bool dynamic = false, symbols = false;
  std::vector<Addresses> code;
  std::set<std::string_view> functions;
};

/// How many parameters the entry has whose name ends at `at`; nothing where none begins there.
std::optional<uint64_t> parametersAt(std::string_view text, size_t at) {
  size_t open = text.find_first_not_of(" \t\r\n", at);
  size_t close = open == std::string_view::npos || text[open] != '(' ? std::string_view::npos : text.find(')', open);
  if (close == std::string_view::npos)
    return std::nullopt;
  std::string_view list = text.substr(open, close - open);
  uint64_t count = 0;
  for (size_t found = list.find(".param "); found != std::string_view::npos; found = list.find(".param ", found + 1))
    ++count;
  return count;
}

} // namespace

Status par::format::checkKernelObject(std::string_view bytes, const std::vector<WantedKernel> &wanted) {
  return KernelObjectCheck(bytes).check(wanted);
}

Status par::format::checkPtx(std::string_view text, const std::vector<WantedKernel> &wanted) {
  if (text.find('\0') != std::string_view::npos)
    return Error{"is no text of PTX: it holds a zero"};
  for (const char *directive : {".version ", ".target ", ".address_size 64"})
    if (text.find(directive) == std::string_view::npos)
      return Error{std::string(notPtx) + directive};
  constexpr std::string_view entry = ".visible .entry ";
  std::map<std::string_view, uint64_t> entries; // parameters
  for (size_t at = text.find(entry); at != std::string_view::npos; at = text.find(entry, at + 1)) {
    size_t begin = at + entry.size(), end = text.find_first_of("( \t\r\n", begin);
    if (std::optional<uint64_t> parameters = end == std::string_view::npos ? std::nullopt : parametersAt(text, end))
      entries[text.substr(begin, end - begin)] = *parameters;
  }
  for (const WantedKernel &each : wanted) {
    auto found = entries.find(each.symbol);
    if (found == entries.end())
      return missing(each);
    if (found->second != each.parameters)
      return Error{"kernel \"" + each.kernel + "\": the entry " + each.symbol + " has " +
                   std::to_string(found->second) + " parameters, its operands and immediates are " +
                   std::to_string(each.parameters)};
  }
  return {};
}

Status par::format::checkCubin(std::string_view bytes, const std::vector<WantedKernel> &wanted) {
  Elf elf(bytes);
  auto header = elf.header();
  if (!header || header->e_machine != cudaMachine)
    return Error{notCubin};
  auto sections = elf.sections(*header);
  if (!sections || header->e_shstrndx >= sections->size())
    return Error{notCubin};
  auto names = elf.part((*sections)[header->e_shstrndx].sh_offset, (*sections)[header->e_shstrndx].sh_size);
  if (!names)
    return Error{notCubin};
  std::set<std::string_view> code;
  for (const Elf64_Shdr &section : *sections)
    if (section.sh_type == SHT_PROGBITS && section.sh_size > 0 && elf.part(section.sh_offset, section.sh_size))
      code.insert(Elf::nameAt(*names, section.sh_name));
  for (const WantedKernel &each : wanted)
    if (!code.count(".text." + each.symbol))
      return missing(each);
  return {};
}
