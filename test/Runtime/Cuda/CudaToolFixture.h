// par-run on a bundle for cuda, on stub libraries.
#pragma once

#include "../App/ToolFixture.h"
#include "CudaFixture.h"

namespace par {

class CudaTool : public Tool {
protected:
  void SetUp() override {
    Tool::SetUp();
    toy::useStubs();
    setenv("PAR_CUDA_BUILTINS", toy::builtinImageFile().c_str(), 1);
    stub::Machine::get().reset();
  }

  /// A toy as the compiler would make it for a GPU: slots begin at multiples of 256.
  static format::Bundle forCuda(format::Bundle bundle) {
    bundle.manifest.device = "cuda";
    bundle.manifest.needs = {"sm: 90"};
    for (format::Program &program : bundle.programs) {
      for (format::Buffer &buffer : program.buffers)
        for (uint64_t &at : buffer.at)
          at *= 4;
      program.arena.state *= 4;
      program.arena.pool *= 4;
    }
    for (format::Peak &peak : bundle.manifest.peak)
      peak.state *= 4, peak.pool *= 4;
    return bundle;
  }
};

} // namespace par
