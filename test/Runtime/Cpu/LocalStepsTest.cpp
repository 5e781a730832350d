// A rank's own work on its memory.
#include "par/cpu/LocalSteps.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>

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

/// A program of one convolution with channels last, of two channels, whose filter is buffer 0.
format::Bundle oneConvolution(bool isFilterWritten) {
  format::Bundle bundle;
  bundle.manifest.ranks.emplace_back();
  format::Program &program = bundle.programs.emplace_back();
  program.kernels = {{"convolution", true, "convolution_last", {}, 1, 0}};
  for (format::BufferKind kind : {format::BufferKind::State, format::BufferKind::Temp, format::BufferKind::Temp}) {
    program.buffers.emplace_back().kind = kind;
    program.buffers.back().shape = {4};
  }
  format::Block &block = program.blocks.emplace_back();
  format::Instruction &convolution = block.instructions.emplace_back();
  convolution.operands = {{format::Access::Read, 1}, {format::Access::Read, 0}, {format::Access::Write, 2}};
  if (isFilterWritten) {
    format::Instruction &fill = block.instructions.emplace_back();
    fill.op = format::Op::Fill;
    fill.operands = {{format::Access::Write, 0}};
  }
  return bundle;
}

// A filter that the program writes is read in each call; another one is packed once, until the host may have written
// it.
TEST(LocalSteps, keepsFiltersThatNobodyWrites) {
  for (bool isWritten : {false, true}) {
    format::Bundle bundle = oneConvolution(isWritten);
    const format::Program &program = bundle.programs.front();
    float x[] = {1, 2}, w[] = {1, 0, 0, 1}, y[] = {0, 0};
    core::ExpandedEntry entry;
    entry.pointers = {x, w, y};
    double infinity = std::numeric_limits<double>::infinity();
    entry.immediates = {1,
                        1,
                        2,
                        2,
                        1,
                        1,
                        1,
                        1,
                        1,
                        1,
                        1,
                        1,
                        1,
                        1,
                        1,
                        1,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        1,
                        1,
                        1,
                        0,
                        0,
                        0,
                        kernels::realImmediate(-infinity),
                        kernels::realImmediate(infinity)};
    core::Command step;
    step.instruction = &program.blocks[0].instructions[0];
    NoHost host;
    cpu::LocalSteps steps(core::DeviceOptions{&bundle, "bundle"}, {});
    steps.keepFilters(program);
    auto runs = [&](float first) {
      steps.execute(entry, step, host);
      EXPECT_EQ(y[0], first) << isWritten;
      EXPECT_EQ(y[1], 2) << isWritten;
    };
    runs(1);
    EXPECT_EQ(steps.keptBytes() > 0, !isWritten);
    w[0] = 3;
    runs(isWritten ? 3 : 1);
    steps.forgetFilters();
    runs(3);
  }
}

} // namespace
