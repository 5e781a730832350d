// Convolutions by cuDNN on a GPU against the CPU's builtins: the same sums but for their order, the same bits
// each time; in bf16 and f16 rounded once more.
#include "../../Cuda/ConvolutionShapes.h"
#include "cuda/dnn/LibraryGraphs.h"
#include "par/kernels/Builtins.h"
#include "par/kernels/CudaBuiltins.h"
#include "par/kernels/LowPrecision.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace par;
using namespace par::kernels;

namespace {

/// A tensor in memory as a form of a builtin keeps it, and the values that it holds.
class Tensor {
public:
  Tensor(std::string_view type, size_t size) : type(type), bytes(size * typeBytes(type)) {}

  size_t size() const { return bytes.size() / typeBytes(type); }
  float at(size_t i) const {
    if (type == "f32")
      return reinterpret_cast<const float *>(bytes.data())[i];
    uint16_t bits = reinterpret_cast<const uint16_t *>(bytes.data())[i];
    return type == "bf16" ? fromBF16(bits) : fromF16(bits);
  }
  void set(size_t i, float value) {
    if (type == "f32")
      reinterpret_cast<float *>(bytes.data())[i] = value;
    else
      reinterpret_cast<uint16_t *>(bytes.data())[i] = type == "bf16" ? toBF16(value) : toF16(value);
  }
  /// Maximum rounding error of the type for a value of size 1.
  double unit() const { return type == "f32" ? 0 : type == "bf16" ? 1.0 / 256 : 1.0 / 2048; }

  std::string_view type;
  std::vector<std::byte> bytes;
};

class CudaConvolution : public testing::Test {
protected:
  /// The GPU's results for the first two tensors, twice; the third has the shape of the result.
  std::array<Tensor, 2> compute(const std::string &builtin, const toy::Convolution &shape,
                                std::span<const Tensor> tensors) {
    auto planned = cuda::makeGraphKernel(dnn, {builtin, builtin, shape.name, shape.immediates()});
    planned->plan(planned->propose());
    std::vector<cuda::DeviceBuffer> blocks;
    std::vector<void *> operands;
    size_t size = tensors[2].bytes.size();
    for (size_t bytes : {tensors[0].bytes.size(), tensors[1].bytes.size(), size, size_t(planned->workspace())})
      operands.push_back(blocks.emplace_back(gpu, bytes, cuda::DeviceBuffer::Place::Device).data());
    for (size_t i = 0; i < 2; ++i)
      gpu->check(gpu->copyToDevice(blocks[i].address(), tensors[i].bytes.data(), tensors[i].bytes.size(), stream),
                 "copy");
    std::array<Tensor, 2> found{tensors[2], tensors[2]};
    for (Tensor &tensor : found) {
      gpu->check(gpu->set8(blocks[2].address(), 0xff, size, stream), "set");
      planned->run({operands.data(), 3}, operands[3], stream);
      gpu->check(gpu->copyToHost(tensor.bytes.data(), blocks[2].address(), size, stream), "copy");
      gpu->check(gpu->streamSynchronize(stream), "synchronize");
    }
    return found;
  }

  void check(const std::string &builtin, const toy::Convolution &shape) {
    const BuiltinKernel &kernel = *findBuiltin(builtin);
    std::vector<uint64_t> immediates = shape.immediates();
    std::mt19937 random(7);
    std::uniform_real_distribution<float> values(-1, 1);
    std::vector<Tensor> operands;
    std::vector<void *> pointers;
    for (size_t i = 0; i < 3; ++i) {
      Tensor &tensor = operands.emplace_back(kernel.operands[i].type, operandElements(kernel, i, immediates));
      for (size_t at = 0; at < tensor.size(); ++at)
        tensor.set(at, values(random));
    }
    for (Tensor &operand : operands)
      pointers.push_back(operand.bytes.data());
    builtinFunction(builtin)(pointers.data(), immediates.data(), 0, builtinTiles(kernel, immediates));
    auto found = compute(builtin, shape, operands);
    EXPECT_TRUE(found[0].bytes == found[1].bytes) << builtin << " " << shape.name << ": other bits the second time";
    // Errors of a sum grow as the root of its length times the size of its parts, which are below 1. A sum near the
    // middle of two values of a narrow type may be rounded to either.
    double scale = 0, far = 0;
    for (size_t i = 0; i < operands[2].size(); ++i) {
      scale = std::max(scale, std::fabs(double(operands[2].at(i))));
      far = std::max(far, std::fabs(double(operands[2].at(i)) - double(found[0].at(i))));
    }
    EXPECT_LE(far, (2e-5 + 2 * operands[2].unit()) * scale) << builtin << " " << shape.name;
  }

  void checkAll(const std::string &builtin) {
    for (const char *types : {"", "_bf16", "_f16"}) {
      for (const toy::Convolution &shape : toy::convolutions)
        check(builtin + types, shape);
      for (const toy::Convolution &shape : toy::layers)
        check(builtin + types, shape);
    }
  }

  cuda::Gpu gpu{0};
  cuda::Dnn dnn;
  cuda::Owned<cuda::Stream> stream = cuda::makeStream(gpu, false);
};

TEST_F(CudaConvolution, forwardIsTheCpus) { checkAll("convolution"); }
TEST_F(CudaConvolution, inputGradIsTheCpus) { checkAll("convolution_input_grad"); }
TEST_F(CudaConvolution, filterGradIsTheCpus) { checkAll("convolution_filter_grad"); }

} // namespace
