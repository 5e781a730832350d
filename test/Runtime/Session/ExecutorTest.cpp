// Toy programs on several ranks compute as on one device, bit for bit the same every time.
#include "../../../runtime/test/RunRanks.h"
#include "../../../runtime/test/ToyBundles.h"
#include "par/app/Devices.h"
#include "par/files/Rectangles.h"

#include <array>
#include <cmath>
#include <cstring>

using namespace par;

namespace {

using Matrix = std::array<double, 16>;

Matrix matrixOf(std::span<const std::byte> bytes) {
  float values[16];
  std::memcpy(values, bytes.data(), sizeof values);
  return Matrix{values[0], values[1], values[2],  values[3],  values[4],  values[5],  values[6],  values[7],
                values[8], values[9], values[10], values[11], values[12], values[13], values[14], values[15]};
}

/// The pipeline toy on one device: for each row act = x w0, out = act w1, g1 += act out, g0 += x (out w1^T).
void stepOnOneDevice(Matrix &w0, Matrix &w1, const toy::SineRows &rows, uint64_t first, uint64_t count) {
  Matrix g0{}, g1{};
  for (uint64_t r = first; r < first + count; ++r) {
    double act[4] = {}, out[4] = {}, gact[4] = {};
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j)
        act[j] += rows.at(r, i) * w0[i * 4 + j];
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j)
        out[j] += act[i] * w1[i * 4 + j];
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        g1[i * 4 + j] += act[i] * out[j];
        gact[i] += out[j] * w1[i * 4 + j];
      }
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j)
        g0[i * 4 + j] += rows.at(r, i) * gact[j];
  }
  for (int i = 0; i < 16; ++i) {
    w0[i] -= 0.1 * g0[i];
    w1[i] -= 0.1 * g1[i];
  }
}

/// Three steps of the pipeline; w0 of rank 0 and w1 of the last rank.
std::array<std::vector<float>, 2> trainPipeline(uint32_t width) {
  format::Bundle bundle = toy::pipeline(width);
  toy::SineRows rows(24 * width, 4);
  core::RowOrder order(rows.rows(), false, 0);
  std::array<std::vector<float>, 2> weights{std::vector<float>(16), std::vector<float>(16)};
  int code = toy::runRanks(bundle, [&](core::Session &session) {
    session.initialize(nullptr, 5);
    for (uint64_t step = 0; step < 3; ++step)
      session.run("train", {&rows, &order, step * 8 * width});
    for (size_t i : {0, 1})
      if (session.rank() == (i == 0 ? 0 : 2 * width - 1))
        std::memcpy(weights[i].data(), session.tensor(i == 0 ? "w0" : "w1").data(), 64);
  });
  EXPECT_EQ(code, 0);
  return weights;
}

class PipelineTest : public testing::TestWithParam<uint32_t> {};

TEST_P(PipelineTest, computesWhatOneDeviceComputes) {
  uint32_t width = GetParam();
  auto weights = trainPipeline(width);
  format::Bundle bundle = toy::pipeline(width);
  std::vector<std::byte> start(64);
  Matrix w[2];
  for (int i : {0, 1}) {
    const format::Tensor &tensor = bundle.manifest.tensors[static_cast<size_t>(i)];
    core::initialize(start.data(), tensor.type, tensor.layout, tensor.layout.parts[0], tensor.init, tensor.name, 5);
    w[i] = matrixOf(start);
  }
  toy::SineRows rows(24 * width, 4);
  for (uint64_t step = 0; step < 3; ++step)
    stepOnOneDevice(w[0], w[1], rows, step * 8 * width, 8 * width);
  for (size_t which : {0, 1})
    for (size_t i = 0; i < 16; ++i)
      EXPECT_NEAR(weights[which][i], w[which][i], 1e-4 * std::max(1.0, std::abs(w[which][i])));
  EXPECT_EQ(trainPipeline(width), weights) << "two runs differ";
}

INSTANTIATE_TEST_SUITE_P(Widths, PipelineTest, testing::Values(1u, 2u, 4u));

TEST(Executor, feedsEachRankItsRowsAndFetches) {
  format::Bundle bundle = toy::allReduce(3);
  toy::SineRows rows(6, 8);
  core::RowOrder order(6, false, 0);
  toy::runRanks(bundle, [&](core::Session &session) {
    session.initialize(nullptr, 0);
    session.run("train", {&rows, &order, 0});
    session.run("train", {&rows, &order, 3});
    float total[8];
    std::memcpy(total, session.tensor("total").data(), sizeof total);
    for (uint64_t c = 0; c < 8; ++c) {
      float expected = (rows.at(0, c) + rows.at(1, c)) + rows.at(2, c);
      expected += (rows.at(3, c) + rows.at(4, c)) + rows.at(5, c);
      EXPECT_EQ(total[c], expected);
    }
    for (const core::Stamp &stamp : session.stamps())
      EXPECT_TRUE(stamp.begin > 0 && stamp.begin <= stamp.end);
  });
}

TEST(Executor, runsGroups) {
  toy::runRanks(toy::groups(), [&](core::Session &session) {
    session.run("train", {});
    for (const core::Stamp &stamp : session.stamps())
      EXPECT_GT(stamp.end, 0);
  });
}

TEST(Executor, namesAnEntryThatIsNotThere) {
  toy::runRanks(toy::allReduce(1), [&](core::Session &session) {
    try {
      session.run("eval", {});
      ADD_FAILURE();
    } catch (const core::Failure &failure) {
      EXPECT_STREQ(failure.what(), "toy.par: error: this bundle has no entry \"eval\"; it has train");
    }
  });
}

TEST(Executor, namesADeviceThatIsNotThere) {
  format::Bundle bundle = toy::allReduce(1);
  try {
    core::makeDevice("abacus", {&bundle, "toy.par"});
    ADD_FAILURE();
  } catch (const core::Failure &failure) {
    EXPECT_STREQ(failure.what(),
                 "toy.par: error: there is no device \"abacus\" in this runtime; it has cpu, sim and cuda");
  }
}

} // namespace
