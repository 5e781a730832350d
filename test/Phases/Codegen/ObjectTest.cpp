// The shared object of kernels is self-contained: loading it runs no code, and needs no other library.
#include "LoadedKernels.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELF.h"

namespace {

using Elf = llvm::object::ELF64LE; // little-endian, 64 bits

std::string kernelText() {
  return R"(
    par.kernel @copy(%a: tensor<64x1024xf32>) -> tensor<65536xf32> attributes {implementation = "generated"} {
      %0 = par.reshape %a : tensor<64x1024xf32> to tensor<65536xf32>
      par.return %0 : tensor<65536xf32>
    }
    par.kernel @zeros() -> tensor<65536xf32> attributes {implementation = "generated"} {
      %0 = par.constant dense<0.0> : tensor<65536xf32>
      par.return %0 : tensor<65536xf32>
    }
    par.kernel @floor(%a: tensor<64xf32>) -> tensor<64xf32> attributes {implementation = "generated"} {
      %0 = par.floor %a : tensor<64xf32>
      %1 = par.tanh %0 : tensor<64xf32>
      par.return %1 : tensor<64xf32>
    })";
}

TEST(Object, NeedsNothingAndRunsNothing) {
  LoadedKernels loaded(kernelText());
  auto file = llvm::object::ELFFile<Elf>::create(loaded.compiled.object);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  auto dynamic = file->dynamicEntries();
  ASSERT_TRUE(bool(dynamic));
  for (const auto &entry : *dynamic)
    for (auto tag : {llvm::ELF::DT_NEEDED, llvm::ELF::DT_INIT, llvm::ELF::DT_INIT_ARRAY, llvm::ELF::DT_FINI})
      EXPECT_NE(static_cast<uint64_t>(entry.getTag()), static_cast<uint64_t>(tag));
  auto sections = file->sections();
  ASSERT_TRUE(bool(sections));
  unsigned symbols = 0;
  for (const auto &section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_DYNSYM)
      continue;
    auto table = file->symbols(&section);
    ASSERT_TRUE(bool(table));
    // The first one is no symbol.
    for (const auto &symbol : llvm::drop_begin(*table)) {
      EXPECT_NE(symbol.st_shndx, llvm::ELF::SHN_UNDEF);
      ++symbols;
    }
  }
  EXPECT_EQ(symbols, 3u);
}

TEST(Object, IsTheSameWithOneThread) {
  LoadedKernels loaded(kernelText());
  par::CodegenOptions options;
  options.threads = 1;
  auto again = par::compileKernels(*loaded.module, options);
  ASSERT_TRUE(succeeded(again));
  EXPECT_TRUE(again->object == loaded.compiled.object);
}

// Two threads that start in a context where nothing is loaded yet: entering dialects there once crashed one in some
// hundred times.
TEST(Object, ThreadsStartInAFreshContext) {
  for (int i = 0; i < 30; ++i)
    ASSERT_TRUE(LoadedKernels(kernelText()).handle) << "try " << i;
}

} // namespace
