#include "Assemble.h"

#include "../WorkFolder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

using namespace mlir;

namespace par::cuda {

std::string findPtxas() {
  if (const char *named = std::getenv("PAR_PTXAS"))
    return named;
  if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"});
  return found ? *found : "";
}

/// The number before `unit` in a line like "Used 16 registers, 400 bytes cmem[0]".
static uint64_t numberBefore(StringRef line, StringRef unit) {
  StringRef before = line.substr(0, line.find(unit)).rtrim();
  uint64_t number = 0;
  if (line.contains(unit))
    (void)before.take_back(before.size() - (before.find_last_not_of("0123456789") + 1)).getAsInteger(10, number);
  return number;
}

llvm::StringMap<KernelResources> parseResources(StringRef said) {
  llvm::StringMap<KernelResources> all;
  KernelResources *current = nullptr;
  SmallVector<StringRef> lines;
  said.split(lines, '\n');
  for (StringRef line : lines) {
    if (line.contains("Compiling entry function '"))
      current = &all[line.split("function '").second.split('\'').first];
    if (!current)
      continue;
    if (line.contains("bytes stack frame")) {
      current->stackBytes = numberBefore(line, " bytes stack frame");
      current->spillBytes = numberBefore(line, " bytes spill stores") + numberBefore(line, " bytes spill loads");
    }
    if (line.contains(" registers")) {
      current->registers = numberBefore(line, " registers");
      current->sharedBytes = numberBefore(line, " bytes smem");
    }
  }
  return all;
}

FailureOr<Assembled> assemble(const std::string &ptxas, StringRef ptx, StringRef sm, std::string &error) {
  codegen::WorkFolder folder("par-ptxas");
  std::string source = folder.file("kernels.ptx"), result = folder.file("kernels.cubin"), said = folder.file("said");
  if (std::error_code unwritten = folder.write(source, ptx)) {
    error = "cannot write " + source + ": " + unwritten.message();
    return failure();
  }
  std::string arch = ("-arch=" + sm).str();
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(said), StringRef(said)};
  int code = llvm::sys::ExecuteAndWait(ptxas, {ptxas, "-v", arch, "-o", result, source}, std::nullopt, redirects,
                                       /*SecondsToWait=*/0, /*MemoryLimit=*/0, &error);
  auto text = llvm::MemoryBuffer::getFile(said);
  auto cubin = llvm::MemoryBuffer::getFile(result, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (code != 0 || !text || !cubin) {
    if (text)
      error += (*text)->getBuffer().substr(0, 2000).str();
    return failure();
  }
  return Assembled{(*cubin)->getBuffer().str(), parseResources((*text)->getBuffer())};
}

} // namespace par::cuda
