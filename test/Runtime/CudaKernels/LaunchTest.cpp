// A builtin's launches on a CUDA device depend only on its name and immediates.
#include "par/kernels/Builtins.h"
#include "par/kernels/CudaBuiltins.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

using namespace par::kernels;

namespace {

/// Immediates of a builtin, all of them `value`.
std::vector<uint64_t> all(const BuiltinKernel &kernel, uint64_t value) {
  return std::vector<uint64_t>(kernel.immediates.size(), value);
}

TEST(CudaLaunch, everyBuiltinButThoseOfCudnnAndOfCpusHasOne) {
  for (const BuiltinKernel &kernel : builtins())
    for (uint64_t size : {0, 1, 5, 3000}) {
      auto launch = cudaLaunch(kernel.name, all(kernel, size));
      bool isOfCpu = kernel.name.starts_with("place_rows"); // that no phase forms on GPUs
      if (isOfCpu || kernel.name.starts_with("convolution") || kernel.name.starts_with("attention")) {
        EXPECT_FALSE(launch) << kernel.name;
        continue;
      }
      if (size == 3000 && kernel.name.starts_with("max_pool"))
        continue; // too large a plane
      ASSERT_TRUE(launch) << kernel.name << " " << size;
      for (const CudaStage &stage : launch->stages()) {
        EXPECT_NE(std::ranges::find(cudaEntries(), stage.entry), cudaEntries().end()) << stage.entry;
        uint32_t threads = stage.block[0] * stage.block[1] * stage.block[2];
        EXPECT_EQ(threads % 32, 0u) << stage.entry;
        EXPECT_LE(threads, 1024u) << stage.entry;
        EXPECT_LE(stage.shared, 48u << 10) << stage.entry;
        for (int dim = 0; dim < 3; ++dim)
          EXPECT_GE(stage.grid[dim], 1u) << stage.entry;
      }
    }
}

TEST(CudaLaunch, unknownNamesAndWrongImmediatesHaveNone) {
  EXPECT_FALSE(cudaLaunch("nothing", {}));
  EXPECT_FALSE(cudaLaunch("softmax", std::vector<uint64_t>{1, 2, 3}));
  EXPECT_FALSE(cudaLaunch("softmax", std::vector<uint64_t>{uint64_t(1) << 40, 2000}))
      << "more rows than a grid has blocks";
}

TEST(CudaLaunch, optionalOperandsChooseTheEntry) {
  const BuiltinKernel &adamw = *findBuiltin("adamw");
  EXPECT_EQ(cudaLaunch("adamw", all(adamw, 0))->stages()[0].entry, "par_adamw");
  EXPECT_EQ(cudaLaunch("adamw", all(adamw, 1))->stages()[0].entry, "par_adamw_coef");
}

TEST(CudaLaunch, longRowsGetABlockAndLargeSumsTwoStages) {
  auto few = cudaLaunch("softmax", std::vector<uint64_t>{100, 64});
  EXPECT_EQ(few->stages()[0].grid[0], 25u);
  EXPECT_EQ(few->stages()[0].block, (std::array<uint32_t, 3>{32, 4, 1}));
  auto many = cudaLaunch("softmax", std::vector<uint64_t>{100, 50257});
  EXPECT_EQ(many->stages()[0].grid[0], 100u);
  EXPECT_EQ(cudaLaunch("sum_squares", std::vector<uint64_t>{1000, 0})->scratch, 0u);
  auto large = cudaLaunch("sum_squares", std::vector<uint64_t>{1000000, 0});
  EXPECT_EQ(large->stages().size(), 2u);
  EXPECT_EQ(large->scratch, 123 * sizeof(double)) << "one for every 8192 elements";
}

TEST(CudaLaunch, reductionsHaveAnEntryForEachType) {
  for (std::string_view type : {"f64", "f32", "bf16", "f16", "i64", "i32", "i16", "i8", "u8", "i1"})
    EXPECT_TRUE(cudaReduce(type, 4, 1000)) << type;
  EXPECT_FALSE(cudaReduce("i4", 4, 1000));
  EXPECT_FALSE(cudaReduce("f32", 17, 1000)) << "more members than a parameter holds";
}

TEST(CudaLaunch, bytesAreThoseOfTheOperands) {
  auto bytes = [](std::string_view name, std::vector<uint64_t> imm) { return bytesMoved(*findBuiltin(name), imm); };
  EXPECT_EQ(bytes("softmax", {10, 20}), 2 * 200 * 4u);
  EXPECT_EQ(bytes("adamw", {100, 0, 0, 0, 0, 0, 0}), 7 * 400 + 8u) << "w, m, v twice, g, step and lr once";
  EXPECT_EQ(bytes("sgd", {100, 0, 0, 1}), 3 * 400 + 8u);
  EXPECT_EQ(bytes("gather_rows", {10, 8, 1000, 0}), 2 * 320 + 80u);
}

TEST(CudaLaunch, theImageHoldsEveryEntry) {
  std::span<const std::byte> image = cudaImage();
  if (image.empty())
    GTEST_SKIP() << "built without nvcc";
  std::string_view bytes(reinterpret_cast<const char *>(image.data()), image.size());
  for (std::string_view entry : cudaEntries())
    EXPECT_NE(bytes.find(entry), bytes.npos) << entry;
}

} // namespace
