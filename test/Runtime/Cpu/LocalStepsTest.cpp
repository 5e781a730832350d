// A rank's own work on its memory.
#include "par/cpu/LocalSteps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <optional>

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

/// Immediates of a convolution of one place and two channels, with a residual or without, in the bounds.
std::vector<uint64_t> immediatesOf(bool hasResidual, double low) {
  double high = std::numeric_limits<double>::infinity();
  return {1, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
          1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, hasResidual, kernels::realImmediate(low), kernels::realImmediate(high)};
}

/// Programs of convolutions with channels last, of one place and two channels, whose filter is buffer 0; and their run.
class Convolutions {
public:
  static constexpr double unbounded = -std::numeric_limits<double>::infinity();

  explicit Convolutions(uint32_t buffers) {
    bundle.manifest.ranks.emplace_back();
    format::Program &program = bundle.programs.emplace_back();
    auto operand = [](format::Access access, uint64_t bytes) { return format::KernelOperand{access, bytes}; };
    constexpr auto read = format::Access::Read;
    program.kernels = {{"convolution", true, "convolution_last",
                        {operand(read, 8), operand(read, 16), operand(format::Access::Write, 8)}, 1, 30},
                       {"add", true, "convolution_last_add",
                        {operand(read, 8), operand(read, 16), operand(format::Access::ReadWrite, 8)}, 1, 30}};
    for (uint32_t i = 0; i < buffers; ++i) {
      program.buffers.emplace_back().kind = i ? format::BufferKind::Temp : format::BufferKind::State;
      program.buffers.back().shape = {i ? 2 : 4};
    }
    program.blocks.emplace_back();
    values.resize(buffers, {0, 0, 0, 0});
    values[0] = {1, 0, 0, 1};
  }
  format::Program &program() { return bundle.programs.front(); }
  std::vector<format::Instruction> &instructions() { return program().blocks.front().instructions; }
  /// y = x, y = max(x, 0); y = x + y, y = max(x + y, 0)
  void add(uint32_t x, uint32_t y, double low, bool isInPlace) {
    format::Instruction &one = instructions().emplace_back();
    one.kernel = isInPlace;
    one.operands = {{format::Access::Read, x},
                    {format::Access::Read, 0},
                    {isInPlace ? format::Access::ReadWrite : format::Access::Write, y}};
    for (uint64_t imm : immediatesOf(isInPlace, low))
      one.imms.push_back({int64_t(imm)});
  }
  void start() {
    steps.emplace(core::DeviceOptions{&bundle, "bundle"}, cpu::MatmulChoices());
    steps->keepFilters(program());
  }
  void run() {
    for (const format::Instruction &instruction : instructions()) {
      if (instruction.op != format::Op::Kernel)
        continue;
      core::ExpandedEntry entry;
      for (const format::Operand &operand : instruction.operands)
        entry.pointers.push_back(values[operand.buffer].data());
      for (const format::Imm &imm : instruction.imms)
        entry.immediates.push_back(uint64_t(imm.value));
      core::Command step;
      step.instruction = &instruction;
      NoHost host;
      steps->execute(entry, step, host);
    }
  }

  std::vector<std::array<float, 4>> values; ///< by buffer
  std::optional<cpu::LocalSteps> steps;

private:
  format::Bundle bundle;
};

// A filter that the program writes is read in each call; another one is packed once, until the host may have written
// it.
TEST(LocalSteps, keepsFiltersThatNobodyWrites) {
  for (bool isWritten : {false, true}) {
    Convolutions net(3);
    net.add(1, 2, Convolutions::unbounded, false);
    if (isWritten) {
      format::Instruction &fill = net.instructions().emplace_back();
      fill.op = format::Op::Fill;
      fill.operands = {{format::Access::Write, 0}};
    }
    net.values[1] = {1, 2};
    net.start();
    auto runs = [&](float first) {
      net.run();
      EXPECT_EQ(net.values[2][0], first) << isWritten;
      EXPECT_EQ(net.values[2][1], 2) << isWritten;
    };
    runs(1);
    EXPECT_EQ(net.steps->keptBytes() > 0, !isWritten);
    net.values[0][0] = 3;
    runs(isWritten ? 3 : 1);
    net.steps->forgetFilters();
    runs(3);
  }
}

// A residual block: a residual that is known to be finite is not looked through, and one that is not finite is met, be
// it so by the input, the filter or an overflow, in any run.
TEST(LocalSteps, keepsNanOfResiduals) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  constexpr float huge = 2e38f;
  Convolutions net(5);
  net.add(1, 2, Convolutions::unbounded, false); // 2 = w x
  net.add(1, 3, 0, false);                       // 3 = max(w x, 0)
  net.add(3, 2, 0, true);                        // 2 = max(2 + w 3, 0)
  net.add(2, 4, Convolutions::unbounded, false); // 4 = w 2
  net.add(3, 4, 0, true);                        // 4 = max(4 + w 3, 0)
  net.start();
  using Pair = std::array<float, 2>;
  auto wanted = [](float w, float x) {
    auto convolved = [&](Pair v) { return Pair{w * v[0] + 0 * v[1], 0 * v[0] + v[1]}; };
    auto bounded = [](Pair v) {
      for (float &one : v)
        one = std::isnan(one) ? one : std::max(one, 0.0f);
      return v;
    };
    auto sum = [](Pair a, Pair b) { return Pair{a[0] + b[0], a[1] + b[1]}; };
    Pair first = convolved({x, 1}), third = bounded(first), second = bounded(sum(first, convolved(third)));
    return bounded(sum(convolved(second), convolved(third)));
  };
  for (auto [w, x] : {std::pair(1.0f, 1.0f), {1, 1}, {1, 1}, {1, nan}, {1, 1}, {1, inf}, {1, -inf}, {1, 1}, {1, huge},
                      {1, 1}, {1, 1}, {-2, 3}, {-2, huge}, {2, huge}, {2, -huge}, {2, 1}, {2, 1}, {2, nan}, {nan, 1},
                      {nan, 1}, {inf, 1}, {inf, 0}, {inf, -1}, {1, 1}, {1, 2}}) {
    if (net.values[0][0] != w) {
      net.values[0][0] = w;
      net.steps->forgetFilters();
    }
    net.values[1] = {x, 1};
    net.run();
    for (size_t i : {0, 1}) {
      float found = net.values[4][i], whole = wanted(w, x)[i];
      EXPECT_TRUE(std::isnan(whole) ? std::isnan(found) : found == whole) << w << " x " << x << ": " << found;
    }
  }
}

/// A net of which the last convolution adds to its residual under a bound.
struct ResidualBlock : Convolutions {
  ResidualBlock() : Convolutions(4) {
    add(1, 2, unbounded, false);
    add(1, 3, 0, false);
    add(3, 2, 0, true);
  }
};

cpu::FiniteChains chainsOf(Convolutions &net) {
  std::vector<const format::Instruction *> followed;
  for (const format::Instruction &instruction : net.instructions())
    if (instruction.op == format::Op::Kernel)
      followed.push_back(&instruction);
  cpu::FiniteChains chains;
  chains.follow(net.program(), net.program().blocks.front(), followed);
  return chains;
}

TEST(FiniteChains, whatOneConvolutionFindsTheNextOnesKnow) {
  ResidualBlock net;
  cpu::FiniteChains chains = chainsOf(net);
  for (bool isFinite : {true, false, true}) {
    for (size_t place : {0, 1}) {
      kernels::FiniteValues known = chains.before(place);
      EXPECT_EQ(known.input, place == 1 && isFinite) << "the input is looked through once in a run";
      EXPECT_EQ(known.seeksResult, place == 0) << "the residual's is of use";
      EXPECT_FALSE(known.residual);
      chains.after(place, {.input = isFinite, .result = isFinite});
    }
    kernels::FiniteValues known = chains.before(2);
    EXPECT_EQ(known.residual, isFinite);
    EXPECT_FALSE(known.seeksResult);
    chains.after(2, {.residual = true});
  }
}

// Nothing is known of a value that another instruction writes, as a whole, in part or before, or that is larger.
TEST(FiniteChains, otherValuesAreNotKnown) {
  auto isKnown = [](Convolutions &net) {
    cpu::FiniteChains chains = chainsOf(net);
    for (size_t place : {0, 1})
      chains.after(place, {.input = true, .result = true});
    return chains.before(2).residual;
  };
  auto fill = [](Convolutions &net, uint32_t buffer, size_t at) {
    format::Instruction fill;
    fill.op = format::Op::Fill;
    fill.operands = {{format::Access::Write, buffer}};
    net.instructions().insert(net.instructions().begin() + ptrdiff_t(at), fill);
  };
  ResidualBlock plain;
  EXPECT_TRUE(isKnown(plain));
  for (size_t at : {0, 1, 2}) {
    ResidualBlock net;
    fill(net, 2, at);
    EXPECT_EQ(isKnown(net), at == 0) << at;
  }
  ResidualBlock partly;
  format::Buffer &alias = partly.program().buffers.emplace_back();
  alias.of = 2;
  alias.offset = 4;
  fill(partly, 4, 2);
  EXPECT_FALSE(isKnown(partly));
  ResidualBlock larger;
  larger.program().kernels[1].operands[2].bytes = 12;
  EXPECT_FALSE(isKnown(larger));
  ResidualBlock slots;
  slots.instructions()[2].operands[2].slot.offset = 1;
  EXPECT_FALSE(isKnown(slots));
  ResidualBlock queues;
  queues.instructions()[2].queue = 1;
  EXPECT_FALSE(isKnown(queues));
}

} // namespace
