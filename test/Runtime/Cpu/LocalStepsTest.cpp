// A rank's own work on its memory.
#include "par/cpu/LocalSteps.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace par;

namespace {

/// Feeds and fetches nothing.
struct NoHost : core::EntryHost {
  void feed(const format::Input &, int64_t, std::span<std::byte>) override { FAIL(); }
  void fetch(const format::Output &, int64_t, format::DType, std::span<const std::byte>) override { FAIL(); }
};

// A bundle of another version may say another number of tiles: convolutions had one, before a group became one.
TEST(LocalSteps, countsTheTilesOfABuiltin) {
  constexpr uint64_t n = 3 * 16384 + 5;
  format::Bundle bundle;
  bundle.manifest.ranks.emplace_back();
  format::Program &program = bundle.programs.emplace_back();
  for (uint32_t tiles : {1u, 4u, 1000000u}) {
    program.kernels = {{"update", true, "sgd", {}, tiles, 4}};
    format::Instruction instruction;
    instruction.op = format::Op::Kernel;
    std::vector<float> w(n, 3), g(n, 2);
    float rate = 0.5f;
    core::ExpandedEntry entry;
    entry.pointers = {w.data(), g.data(), &rate};
    entry.immediates = {n, kernels::realImmediate(0), kernels::realImmediate(1), 0};
    core::Command step;
    step.instruction = &instruction;
    NoHost host;
    cpu::LocalSteps(core::DeviceOptions{&bundle, "bundle"}, {}).execute(entry, step, host);
    EXPECT_EQ(std::ranges::count(w, 2.0f), ptrdiff_t(n)) << tiles;
  }
}

} // namespace
