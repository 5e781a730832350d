// Convolutions by cuDNN on a GPU against the CPU's builtins: the same sums but for their order, the same bits
// each time.
#include "cuda/Convolutions.h"
#include "../../Cuda/ConvolutionShapes.h"
#include "par/kernels/Builtins.h"
#include "par/kernels/CudaBuiltins.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace par;
using namespace par::kernels;

namespace {

/// Layers of ResNet-50, two images.
const toy::Convolution layers[] = {
    {"stem", 2, 1, 3, 64, {1, 224, 224}, {1, 7, 7}, {1, 2, 2}, {0, 3, 3}, {0, 3, 3}, {1, 1, 1}},
    {"middle", 2, 1, 128, 128, {1, 28, 28}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {"shrink", 2, 1, 256, 512, {1, 28, 28}, {1, 1, 1}, {1, 2, 2}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}},
};

class CudaConvolution : public testing::Test {
protected:
  /// What the GPU makes of two operands, `runs` times.
  std::vector<std::vector<float>> compute(const char *builtin, const toy::Convolution &shape,
                                          std::span<const std::vector<float>> given, size_t results,
                                          int runs) {
    auto planned = cuda::makeConvolution(dnn, builtin, shape.immediates(), 256, builtin, shape.name);
    std::vector<cuda::Block> blocks;
    std::vector<void *> operands;
    for (size_t bytes : {given[0].size() * 4, given[1].size() * 4, results * 4, size_t(planned->workspace())})
      operands.push_back(blocks.emplace_back(gpu, bytes, cuda::Block::Place::Device).data());
    for (size_t i = 0; i < 2; ++i)
      gpu->check(gpu->copyToDevice(blocks[i].address(), given[i].data(), given[i].size() * 4, stream),
                 "copy");
    std::vector<std::vector<float>> found(static_cast<size_t>(runs), std::vector<float>(results));
    for (std::vector<float> &values : found) {
      gpu->check(gpu->set8(blocks[2].address(), 0xff, results * 4, stream), "set");
      planned->run({operands.data(), 3}, operands[3], stream);
      gpu->check(gpu->copyToHost(values.data(), blocks[2].address(), results * 4, stream), "copy");
      gpu->check(gpu->streamSynchronize(stream), "synchronize");
    }
    return found;
  }

  void check(const char *builtin, const toy::Convolution &shape) {
    const BuiltinKernel &kernel = *findBuiltin(builtin);
    std::vector<uint64_t> immediates = shape.immediates();
    std::mt19937 random(7);
    std::uniform_real_distribution<float> values(-1, 1);
    std::vector<std::vector<float>> operands;
    std::vector<void *> pointers;
    for (size_t i = 0; i < 3; ++i) {
      operands.emplace_back(operandElements(kernel, i, immediates));
      for (float &value : operands.back())
        value = values(random);
    }
    for (std::vector<float> &operand : operands)
      pointers.push_back(operand.data());
    builtinFunction(builtin)(pointers.data(), immediates.data(), 0, builtinTiles(kernel, immediates));
    auto found = compute(builtin, shape, operands, operands[2].size(), 2);
    EXPECT_TRUE(found[0] == found[1]) << builtin << " " << shape.name << ": other bits the second time";
    // Errors of a sum grow as the root of its length times the size of its parts, which are below 1.
    double scale = 0, far = 0;
    for (size_t i = 0; i < operands[2].size(); ++i) {
      scale = std::max(scale, std::fabs(double(operands[2][i])));
      far = std::max(far, std::fabs(double(operands[2][i]) - double(found[0][i])));
    }
    EXPECT_LE(far, 2e-5 * scale) << builtin << " " << shape.name;
  }

  void checkAll(const char *builtin) {
    for (const toy::Convolution &shape : toy::convolutions)
      check(builtin, shape);
    for (const toy::Convolution &shape : layers)
      check(builtin, shape);
  }

  cuda::Gpu gpu{0};
  cuda::Dnn dnn;
  cuda::Owned<cuda::Stream> stream = cuda::makeStream(gpu, false);
};

TEST_F(CudaConvolution, forwardIsTheCpus) { checkAll("convolution"); }
TEST_F(CudaConvolution, inputGradIsTheCpus) { checkAll("convolution_input_grad"); }
TEST_F(CudaConvolution, filterGradIsTheCpus) { checkAll("convolution_filter_grad"); }

} // namespace
