// Generated kernels on the imagined GPU: the same plan compiled with --host-code (PAR_STUB_BUNDLE) has kernels of
// the same names with the same operands, whose code runs where the bundle for cuda launches its own.
#include "Machine.h"
#include "par/format/Bundle.h"
#include "par/kernels/Builtins.h"

#include <cstdio>
#include <dlfcn.h>

namespace par::stub {

void registerGenerated(Machine &machine, const std::string &folder) {
  auto bundle = format::readPrograms(folder);
  void *object = dlopen((folder + "/kernels-x86.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!bundle || !object) {
    std::fprintf(stderr, "PAR_STUB_BUNDLE: %s\n", bundle ? dlerror() : bundle.message().c_str());
    return;
  }
  for (const format::Program &program : bundle->programs)
    for (const format::Kernel &kernel : program.kernels) {
      auto function = reinterpret_cast<kernels::KernelFunction>(dlsym(object, kernel.symbol.c_str()));
      if (kernel.builtin || !function)
        continue;
      size_t operands = kernel.operands.size();
      auto run = [=, tiles = kernel.tiles](const std::vector<uint64_t> &p) {
        std::vector<void *> pointers;
        for (size_t i = 0; i < operands; ++i)
          pointers.push_back(reinterpret_cast<void *>(p.at(i)));
        function(pointers.data(), p.data() + operands, 0, tiles);
      };
      machine.kernel(kernel.symbol, operands + kernel.imms, run);
    }
}

} // namespace par::stub
