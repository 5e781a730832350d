// The form of the files of kernels: their kind, and that they hold the symbols that programs name. No code is loaded.
#include "par/format/KernelCode.h"

#include <cstring>
#include <elf.h>
#include <fstream>
#include <gtest/gtest.h>

using namespace par::format;

namespace {

std::string said(const Status &status) { return status ? "" : status.message(); }

std::string object() {
  std::ifstream in(std::string(PAR_TEST_KERNELS) + "/good.so", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(KernelCode, ofAKernelObject) {
  std::string good = object(), none = "is not an ELF shared object for x86-64";
  EXPECT_EQ(said(checkKernelObject(good)), "");
  EXPECT_EQ(said(checkKernelObject(good, {{"k0", "scale", 3}})), "");
  EXPECT_EQ(said(checkKernelObject(good, {{"k0", "scale", 3}, {"k1", "scales", 3}})),
            "kernel \"k1\" is not in it: no symbol scales");
  EXPECT_EQ(said(checkKernelObject(good, {{"k2", "", 0}})), "kernel \"k2\" is not in it: no symbol ");
  EXPECT_EQ(said(checkKernelObject(std::string(4000, 'x'))), none);
  EXPECT_EQ(said(checkKernelObject("")), none);
  auto with = [&](size_t at, auto value) {
    std::string changed = good;
    std::memcpy(changed.data() + at, &value, sizeof value);
    return said(checkKernelObject(changed));
  };
  EXPECT_EQ(with(EI_CLASS, char(ELFCLASS32)), none);
  EXPECT_EQ(with(EI_DATA, char(ELFDATA2MSB)), none);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_machine), Elf64_Half(EM_AARCH64)), none);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_type), Elf64_Half(ET_EXEC)), none);
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_shoff), Elf64_Off(good.size())), none) << "no sections";
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_shentsize), Elf64_Half(1)), none);
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof header);
  for (int i = 0; i < header.e_phnum; ++i) {
    size_t at = header.e_phoff + size_t(i) * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    std::memcpy(&segment, good.data() + at, sizeof segment);
    if (segment.p_type == PT_LOAD) {
      EXPECT_EQ(with(at + offsetof(Elf64_Phdr, p_filesz), Elf64_Xword(1) << 40), none) << "beyond the file";
    }
    if (segment.p_type == PT_LOAD && segment.p_flags & PF_X) {
      std::string data = good; // the same, but none of it is code
      data[at + offsetof(Elf64_Phdr, p_flags)] = PF_R;
      EXPECT_EQ(said(checkKernelObject(data, {{"k0", "scale", 3}})), "kernel \"k0\" is not in it: no symbol scale");
    }
  }
}

TEST(KernelCode, ofPtx) {
  std::string head = ".version 8.0\n.target sm_90\n.address_size 64\n\n";
  std::string good = head + "\t// .globl k\n.visible .entry k(\n\t.param .u64 .ptr .align 1 "
                            "k_param_0,\n\t.param .u64 k_param_1\n)\n{\n ret;\n}\n"
                            ".visible .entry empty() { ret; }\n.visible .func f(.param .u64 x) {}\n";
  auto check = [](const std::string &text, const WantedKernel &wanted) { return said(checkPtx(text, {wanted})); };
  EXPECT_EQ(check(good, {"k0", "k", 2}), "");
  EXPECT_EQ(check(good, {"k0", "empty", 0}), "");
  EXPECT_EQ(check(good, {"k0", "k", 3}),
            "kernel \"k0\": the entry k has 2 parameters, its operands and immediates are 3");
  for (const char *absent : {"f", "k_param_0", "", "kk"})
    EXPECT_EQ(check(good, {"k0", absent, 2}), std::string("kernel \"k0\" is not in it: no symbol ") + absent);
  EXPECT_EQ(check(head + ".visible .entry k", {"k0", "k", 0}), "kernel \"k0\" is not in it: no symbol k");
  EXPECT_EQ(check("garbage", {"k0", "k", 2}), "is no text of PTX: it has no .version ");
  EXPECT_EQ(check(head.substr(0, 20), {"k0", "k", 2}), "is no text of PTX: it has no .target ");
  EXPECT_EQ(check(good + std::string(1, '\0'), {"k0", "k", 2}), "is no text of PTX: it holds a zero");
}

/// An ELF file of CUDA with a section of code for each name.
std::string cubin(const std::vector<std::string> &sections) {
  std::string names(1, '\0'), table;
  std::vector<Elf64_Shdr> headers(1, Elf64_Shdr{});
  for (const std::string &section : sections) {
    Elf64_Shdr header{};
    header.sh_name = Elf64_Word(names.size());
    header.sh_type = SHT_PROGBITS;
    header.sh_size = 16;
    headers.push_back(header);
    names += section + std::string(1, '\0');
  }
  Elf64_Shdr strings{};
  strings.sh_type = SHT_STRTAB;
  strings.sh_offset = sizeof(Elf64_Ehdr);
  strings.sh_size = names.size();
  headers.push_back(strings);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = 190;
  header.e_shoff = sizeof header + names.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = Elf64_Half(headers.size());
  header.e_shstrndx = Elf64_Half(headers.size() - 1);
  return std::string(reinterpret_cast<char *>(&header), sizeof header) + names +
         std::string(reinterpret_cast<char *>(headers.data()), headers.size() * sizeof headers[0]);
}

TEST(KernelCode, ofACubin) {
  std::string good = cubin({".nv.info", ".text.k"});
  EXPECT_EQ(said(checkCubin(good, {{"k0", "k", 2}})), "");
  EXPECT_EQ(said(checkCubin(good, {{"k0", "l", 2}})), "kernel \"k0\" is not in it: no symbol l");
  EXPECT_EQ(said(checkCubin("garbage", {{"k0", "k", 2}})), "is not an ELF file for CUDA");
  EXPECT_EQ(said(checkCubin(object(), {{"k0", "k", 2}})), "is not an ELF file for CUDA");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(said(checkCubin(good.substr(0, length), {{"k0", "k", 2}})), "") << length;
}

} // namespace
