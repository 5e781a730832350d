// The graph API of cuDNN: the table, descriptors, the choice of an engine, plans.
#include "StubLibraries.h"
#include "par/cuda/dnn/DnnGraph.h"
#include "par/cuda/driver/Gpu.h"

#include <gtest/gtest.h>

using namespace par;
using namespace par::cuda;
using toy::failureOf;

namespace {

class DnnTest : public testing::Test {
protected:
  void SetUp() override {
    toy::useStubs();
    unsetenv("PAR_STUB_CUDNN_VERSION");
    machine.reset();
  }

  /// y (2, 6, 4, 5) = convolution of x (2, 4, 7, 5) in 2 groups, strided along the first dim.
  struct Small {
    explicit Small(const Dnn &dnn, int64_t rows = 4) : graph(dnn, "kernel \"c\"") {
      const DnnNode &x = graph.tensor({1, dnn::dataF32, {2, 4, 7, 5}, {}}, "x"),
                    &w = graph.tensor({2, dnn::dataF32, {6, 2, 3, 3}, {}}, "w"),
                    &y = graph.tensor({3, dnn::dataF32, {2, 6, rows, 5}, {}}, "y");
      std::vector<int64_t> ones{1, 1}, strides{2, 1};
      DnnNode &convolution = graph.node(dnn::Kind::Convolution, "the convolution");
      convolution.set(dnn::Attribute::ConvolutionComputeType, dnn::Type::DataType, dnn::dataF32)
          .set(dnn::Attribute::ConvolutionMode, dnn::Type::ConvolutionMode, dnn::crossCorrelation)
          .set(dnn::Attribute::ConvolutionSpatialDims, int64_t(2))
          .set(dnn::Attribute::ConvolutionDilations, ones)
          .set(dnn::Attribute::ConvolutionStrides, strides)
          .set(dnn::Attribute::ConvolutionPrePaddings, ones)
          .set(dnn::Attribute::ConvolutionPostPaddings, ones)
          .finalize();
      graph.operation(dnn::Kind::ConvolutionForward, "the operation")
          .set(dnn::Attribute::ForwardAlpha, 1.0f)
          .set(dnn::Attribute::ForwardBeta, 0.0f)
          .set(dnn::Attribute::ForwardConvolution, convolution)
          .set(dnn::Attribute::ForwardX, x)
          .set(dnn::Attribute::ForwardW, w)
          .set(dnn::Attribute::ForwardY, y)
          .finalize();
      graph.finalize();
    }
    DnnGraph graph;
  };

  stub::Machine &machine = stub::Machine::get();
};

TEST_F(DnnTest, saysWhatIsMissing) {
  setenv("PAR_CUDNN_LIBRARY", "libm.so.6", 1);
  EXPECT_EQ(failureOf([] { Dnn dnn; }),
            "error: libm.so.6 has no entry point cudnnGetVersion; a newer version of cuDNN is needed");
  toy::useStubs();
  setenv("PAR_STUB_CUDNN_VERSION", "8907", 1);
  EXPECT_EQ(failureOf([] { Dnn dnn; }),
            "error: " PAR_STUB_CUDNN ": cuDNN is version 8.9.7, and 9.0.0 or later is needed");
  unsetenv("PAR_STUB_CUDNN_VERSION");
  machine.reset("cudnnCreate:1:5000");
  EXPECT_EQ(failureOf([] { Dnn dnn; }), "error: cudnnCreate failed: CUDNN_STATUS_EXECUTION_FAILED");
  machine.reset();
  EXPECT_EQ(Dnn().describe(), "cuDNN 9.19.0");
}

TEST_F(DnnTest, passesOnTheLibrarysWords) {
  Dnn dnn;
  EXPECT_EQ(failureOf([&] { Small small(dnn, 5); }),
            "error: kernel \"c\": cudnnBackendFinalize of the operation failed: CUDNN_STATUS_BAD_PARAM: "
            "spatial dim 0 of "
            "y is 5, expected 4");
  EXPECT_EQ(failureOf([&] {
              DnnNode tensor(dnn, dnn::Kind::Tensor, "kernel \"c\"", "the tensor x");
              tensor.set(dnn::Attribute::TensorId, int64_t(1)).finalize();
            }),
            "error: kernel \"c\": cudnnBackendFinalize of the tensor x failed: CUDNN_STATUS_BAD_PARAM: "
            "tensor lacks "
            "attribute 900");
  EXPECT_EQ(failureOf([&] {
              DnnNode tensor(dnn, dnn::Kind::Tensor, "kernel \"c\"", "the tensor x");
              tensor.set(dnn::Attribute::ForwardAlpha, 1.0f);
            }),
            "error: kernel \"c\": attribute 700 of the tensor x failed: CUDNN_STATUS_BAD_PARAM: tensor has "
            "no attribute "
            "700");
}

std::string texts(const std::vector<cuda::DnnChoice> &choices) {
  std::string all;
  for (const cuda::DnnChoice &choice : choices)
    all += (all.empty() ? "" : " ") + choice.text();
  return all;
}

TEST_F(DnnTest, choosesWhatKeepsToTheLimits) {
  Dnn dnn;
  Small small(dnn);
  std::string why;
  EXPECT_EQ(texts(small.graph.propose({1 << 20, false}, 1, &why)), "2,2:5");
  EXPECT_EQ(texts(small.graph.propose({1 << 20, true}, 1, &why)), "0");
  EXPECT_EQ(texts(small.graph.propose({1 << 20, false}, 8, &why)), "2,2:5 3");
  // The fallback's engine needs no workspace.
  EXPECT_EQ(texts(small.graph.propose({1 << 10, false}, 1, &why)), "3");
  machine.reset("cudnnWorkspace:70000:0");
  EXPECT_EQ(texts(small.graph.propose({1 << 10, false}, 1, &why)), "");
  EXPECT_EQ(why, "1 give other bits each time; 1 round f32 to less; 2 want more memory, at least 70,000 bytes");
  machine.reset("cudnnPlans:0:3000");
  EXPECT_EQ(texts(small.graph.propose({1 << 20, false}, 1, &why)), "");
  EXPECT_EQ(why, "2 cannot be planned: CUDNN_STATUS_NOT_SUPPORTED: injected; 1 give other bits each time; 1 "
                 "round f32 to "
                 "less");
}

TEST_F(DnnTest, choicesAreText) {
  for (const char *text : {"17", "17,2:5,12:0", "0,1:-1"})
    EXPECT_EQ(DnnChoice::read(text)->text(), text);
  for (const char *text : {"", "x", "17,", "17,2", "17,2:", "17 2:5"})
    EXPECT_FALSE(DnnChoice::read(text)) << text;
}

TEST_F(DnnTest, plansRunOnTheirStream) {
  Gpu gpu(0);
  Dnn dnn;
  Small small(dnn);
  DnnPlan plan(small.graph, *DnnChoice::read("2,2:5"));
  EXPECT_EQ(plan.workspace(), 65536u);
  EXPECT_EQ(failureOf([&] { DnnPlan(small.graph, *DnnChoice::read("2")); }),
            "error: kernel \"c\": the plan of engine 2 failed: CUDNN_STATUS_BAD_PARAM: these are not the "
            "knobs of the "
            "engine");
  DeviceBuffer x(gpu, 2 * 4 * 7 * 5 * 4, DeviceBuffer::Place::Device),
      w(gpu, 6 * 2 * 9 * 4, DeviceBuffer::Place::Device), y(gpu, 2 * 6 * 4 * 5 * 4, DeviceBuffer::Place::Device),
      memory(gpu, 65536, DeviceBuffer::Place::Device);
  auto stream = makeStream(gpu, false);
  for (const DeviceBuffer *block : {&x, &w})
    gpu->check(gpu->set32(block->address(), 0x3f800000, block->bytes() / 4, stream), "set");
  int64_t ids[] = {1, 2, 3};
  void *pointers[] = {x.data(), w.data(), y.data()};
  plan.run(ids, pointers, memory.data(), stream);
  float value = 0;
  gpu->check(gpu->copyToHost(&value, y.address() + 4 * 7, 4, stream),
             "copy"); // row 1, column 2: whole windows
  gpu->check(gpu->streamSynchronize(stream), "synchronize");
  EXPECT_EQ(value, 18);
  EXPECT_EQ(failureOf([&] { plan.run(std::span(ids, 2), std::span(pointers, 2), memory.data(), stream); }),
            "error: kernel \"c\": cudnnBackendExecute failed: CUDNN_STATUS_BAD_PARAM: the pack has no "
            "address of tensor 3");
  EXPECT_EQ(failureOf([&] { plan.run(ids, pointers, y.data(), stream); }),
            "error: kernel \"c\": cudnnBackendExecute failed: CUDNN_STATUS_BAD_PARAM: the workspace is "
            "smaller than 65536 "
            "bytes");
  machine.reset("cudnnBackendExecute:1:5000");
  EXPECT_EQ(failureOf([&] { plan.run(ids, pointers, memory.data(), stream); }),
            "error: kernel \"c\": cudnnBackendExecute failed: CUDNN_STATUS_EXECUTION_FAILED: injected");
}

} // namespace
