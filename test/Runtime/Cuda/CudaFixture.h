// Sessions on the stub GPU beside sessions on the CPU.
#pragma once

#include "RunRanks.h"
#include "StubLibraries.h"
#include "TrainingToy.h"
#include "par/files/Rectangles.h"

#include <algorithm>
#include <cstring>

namespace par::toy {

inline constexpr uint64_t steps = 4;

/// A file with the names of all entries, for runtimes that were built without nvcc.
std::string builtinImageFile();

/// Runs something on every rank of a bundle, as threads. `device`: "cpu", or "cuda" (ranks share one GPU),
/// "cuda nccl". Throws the first Failure.
int runOn(const std::string &device, const format::Bundle &bundle, const std::function<void(core::Session &)> &body,
          const std::string &folder = "toy.par");
/// Trains toy::training(): loss of each step, then the weights of rank 0.
std::vector<float> trainOn(const std::string &device, const format::Bundle &bundle);
/// The bytes of one element that a fill of that type writes.
std::vector<uint8_t> filled(format::DType type, double value);

class Cuda : public testing::Test {
protected:
  void SetUp() override {
    useStubs();
    setenv("PAR_CUDA_BUILTINS", builtinImageFile().c_str(), 1);
    unsetenv("PAR_CUDA_GRAPHS");
    machine.reset();
  }
  size_t count(const std::string &name, const std::string &rank = "") {
    auto calls = machine.calls(rank);
    return static_cast<size_t>(
        std::count_if(calls.begin(), calls.end(), [&](const stub::Call &call) { return call.name == name; }));
  }
  stub::Machine &machine = stub::Machine::get();
};

} // namespace par::toy
