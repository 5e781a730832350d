// If cuDNN itself is installed, it plans the runtime's graphs, for an H100 that is only described: the stub's rules are
// no stricter and no laxer than the library's.
#include "AttentionShapes.h"
#include "ConvolutionShapes.h"
#include "cuda/dnn/AttentionGraph.h"
#include "cuda/dnn/ConvolutionGraph.h"
#include "par/messages/Failure.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace par;

namespace {

constexpr const char *h100 =
    R"({"deviceName": "NVIDIA H100 80GB HBM3", "cudaDeviceId": 0, "deviceVer": 900, "multiProcessorCount": 132,
        "driverVer": 13000, "driverVersion": 13000, "maxSharedMemoryPerBlockOptin": 232448,
        "totalGlobalMem": 85000000000, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
        "regsPerBlock": 65536, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800,
        "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024,
        "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
        "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1})";

/// cuDNN with the described GPU, or why not.
std::unique_ptr<cuda::Dnn> open(std::string &why) {
  setenv("PAR_CUDNN_LIBRARY", PAR_TEST_CUDNN, 1);
  try {
    return std::make_unique<cuda::Dnn>(h100);
  } catch (const core::Failure &failure) {
    why = failure.what();
    return nullptr;
  }
}

TEST(DnnLibraryTest, plansEveryConvolution) {
  std::string why;
  std::unique_ptr<cuda::Dnn> dnn = open(why);
  if (!dnn)
    GTEST_SKIP() << why;
  std::vector<toy::Convolution> shapes(std::begin(toy::convolutions), std::end(toy::convolutions));
  shapes.insert(shapes.end(), std::begin(toy::layers), std::end(toy::layers));
  for (const toy::Convolution &shape : shapes)
    for (std::string builtin : {"convolution", "convolution_input_grad", "convolution_filter_grad"})
      for (const char *types : {"", "_bf16", "_f16"}) {
        auto planned = cuda::makeGraphKernel(*dnn, {builtin + types, builtin, shape.name, shape.immediates()});
        planned->plan(planned->propose());
        EXPECT_LE(planned->workspace(), cuda::convolutionWorkspace) << builtin << types << " " << shape.name;
      }
}

/// Shapes of real models: each takes seconds, in which the library generates its code.
const toy::Attention models[] = {
    {"GPT-2", 8, 12, 12, 1024, 1024, 64, 64, true, {}, true, true, true},
    {"Llama with a mask, in f16", 2, 32, 8, 2048, 2048, 128, 128, true, {2, 1, 1, 2048}, false},
};

/// Engines of attention ask for the driver's library when they are looked up. The toolkit's has its name and
/// can do nothing: engines say that they can compute the graph and make their code, and only loading it
/// fails.
class DriverLibrary {
public:
  DriverLibrary() : handle(dlopen(PAR_TEST_DRIVER, RTLD_NOW | RTLD_LOCAL)) {}
  ~DriverLibrary() {
    if (handle)
      dlclose(handle);
  }
  explicit operator bool() const { return handle; }

private:
  void *handle;
};

/// The error of an attention's plan, except for loading it; empty: none.
std::string planAttention(const cuda::Dnn &dnn, const std::string &builtin, const toy::Attention &shape) {
  try {
    auto planned = cuda::makeGraphKernel(
        dnn, {builtin + shape.format(), builtin, shape.name, shape.immediates(builtin == "attention_backward")});
    planned->plan(planned->propose());
    return planned->workspace() <= cuda::attentionWorkspace ? "" : "its workspace";
  } catch (const core::Failure &failure) {
    std::string text = failure.what();
    bool made = text.find("cannot be planned: ") != std::string::npos &&
                text.find("cuLibraryLoadData returned error") != std::string::npos &&
                text.find("; ") == text.find("; compile it for cpu");
    return made ? "" : text;
  }
}

TEST(DnnLibraryTest, hasEnginesForAttention) {
  DriverLibrary driver;
  std::string why = "no driver library of the toolkit";
  std::unique_ptr<cuda::Dnn> dnn = driver ? open(why) : nullptr;
  if (!dnn)
    GTEST_SKIP() << why;
  for (const toy::Attention &shape : models)
    for (const char *builtin : {"attention", "attention_backward"})
      EXPECT_EQ(planAttention(*dnn, builtin, shape), "") << builtin << " " << shape.name;
}

TEST(DnnLibraryTest, hasNoEngineForOddHeadDims) {
  DriverLibrary driver;
  std::string why = "no driver library of the toolkit";
  std::unique_ptr<cuda::Dnn> dnn = driver ? open(why) : nullptr;
  if (!dnn)
    GTEST_SKIP() << why;
  std::string text = planAttention(*dnn, "attention", {"odd", 2, 3, 3, 64, 64, 12, 12});
  EXPECT_NE(text.find("none was proposed; compile it for cpu"), std::string::npos) << text;
}

TEST(DnnLibraryTest, refusesShapesThatDoNotFit) {
  std::string why;
  std::unique_ptr<cuda::Dnn> dnn = open(why);
  if (!dnn)
    GTEST_SKIP() << why;
  std::vector<uint64_t> immediates = toy::convolutions[0].immediates();
  ++immediates[11]; // y1
  EXPECT_THROW(cuda::makeGraphKernel(*dnn, {"convolution", "c", "/c", immediates}), core::Failure);
}

} // namespace
