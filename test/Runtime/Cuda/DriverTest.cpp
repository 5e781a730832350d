// The driver's table, owners of memory and streams, and the rules that the stub checks.
#include "StubLibraries.h"
#include "par/cuda/driver/Gpu.h"
#include "par/messages/Failure.h"

#include <gtest/gtest.h>

using namespace par;
using namespace par::cuda;
using toy::failureOf;

namespace {

class DriverTest : public testing::Test {
protected:
  void SetUp() override {
    toy::useStubs();
    machine.reset();
    machine.version = 13000;
  }
  stub::Machine &machine = stub::Machine::get();
};

TEST_F(DriverTest, saysWhatIsMissing) {
  setenv("PAR_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
  std::string text = failureOf([] { Driver driver; });
  EXPECT_TRUE(text.starts_with("error: the CUDA driver cannot be opened: /nowhere/libcuda.so.1: ")) << text;
  setenv("PAR_CUDA_LIBRARY", "libm.so.6", 1);
  EXPECT_EQ(failureOf([] { Driver driver; }),
            "error: libm.so.6 has no entry point cuInit; a newer version of the CUDA driver is needed");
  toy::useStubs();
  machine.version = 11080;
  EXPECT_EQ(failureOf([] { Driver driver; }),
            "error: " PAR_STUB_CUDA ": the CUDA driver is version 11.8, and 12.4 or later is needed");
  machine.version = 12040;
  machine.devices = 0;
  EXPECT_EQ(failureOf([] { Driver driver; }), "error: CUDA driver 12.4 finds no GPU on this machine");
  machine.devices = 8;
}

TEST_F(DriverTest, namesErrors) {
  machine.reset("cuInit:1:100");
  EXPECT_EQ(failureOf([] { Driver driver; }), "error: cuInit failed: CUDA_ERROR_NO_DEVICE");
  machine.reset();
  Driver driver;
  EXPECT_EQ(driver.describe(2), "CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  EXPECT_EQ(driver.describe(12345), "error 12345");
}

TEST_F(DriverTest, saysHowMuchMemoryIsFree) {
  Gpu gpu(0);
  EXPECT_EQ(failureOf([&] { DeviceBuffer(gpu, uint64_t(1) << 40, DeviceBuffer::Place::Device); }),
            "error: 1,099,511,627,776 bytes are needed and 4,294,967,296 of 4,294,967,296 are free on Stub; --set "
            "batch.microbatches or recompute takes less");
  DeviceBuffer block(gpu, 1 << 20, DeviceBuffer::Place::Device);
  EXPECT_EQ(machine.used, uint64_t(1) << 20);
  block = DeviceBuffer();
  EXPECT_EQ(machine.used, 0u);
}

TEST_F(DriverTest, eventsOrderStreams) {
  Gpu gpu(0);
  DeviceBuffer block(gpu, 4, DeviceBuffer::Place::Device);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    machine.reset("", seed);
    auto first = makeStream(gpu, false), second = makeStream(gpu, true);
    auto event = makeEvent(gpu);
    gpu->check(gpu->set32(block.address(), 7, 1, first), "set");
    order(gpu, first, second, event);
    gpu->check(gpu->set32(block.address(), 8, 1, second), "set");
    uint32_t value = 0;
    gpu->check(gpu->copyToHost(&value, block.address(), 4, second), "copy");
    EXPECT_EQ(value, 0u); // nothing is done before somebody waits
    gpu->check(gpu->streamSynchronize(second), "synchronize");
    EXPECT_EQ(value, 8u);
  }
}

TEST_F(DriverTest, captureMustBeJoined) {
  Gpu gpu(0);
  DeviceBuffer block(gpu, 4, DeviceBuffer::Place::Device);
  auto first = makeStream(gpu, false), second = makeStream(gpu, false);
  auto fork = makeEvent(gpu), join = makeEvent(gpu);
  Graph graph = nullptr;
  auto capture = [&](bool joined) {
    gpu->check(gpu->captureBegin(first, captureThreadLocal), "begin");
    order(gpu, first, second, fork);
    gpu->check(gpu->set32(block.address(), 7, 1, second), "set");
    if (joined)
      order(gpu, second, first, join);
    return gpu->captureEnd(first, &graph);
  };
  EXPECT_EQ(gpu->describe(capture(false)), "CUDA_ERROR_STREAM_CAPTURE_UNJOINED");
  EXPECT_EQ(capture(true), success);
  EXPECT_EQ(gpu->eventQuery(join), 900); // belongs to the capture
  GraphExec executable = nullptr;
  gpu->check(gpu->graphInstantiate(&executable, graph, 0), "instantiate");
  gpu->check(gpu->graphDestroy(graph), "destroy");
  Owned<GraphExec> owner(gpu, executable);
  gpu->check(gpu->set32(block.address(), 1, 1, first), "set");
  gpu->check(gpu->graphLaunch(executable, first), "launch");
  uint32_t value = 0;
  gpu->check(gpu->copyToHost(&value, block.address(), 4, first), "copy");
  gpu->check(gpu->streamSynchronize(first), "synchronize");
  EXPECT_EQ(value, 7u);
}

TEST_F(DriverTest, waitsOnWorkOutsideOfACaptureAreRefused) {
  Gpu gpu(0);
  auto first = makeStream(gpu, false), second = makeStream(gpu, false);
  auto event = makeEvent(gpu);
  gpu->check(gpu->eventRecord(event, second), "record");
  gpu->check(gpu->captureBegin(first, captureThreadLocal), "begin");
  EXPECT_EQ(gpu->streamWait(first, event, 0), 905);
  Graph graph = nullptr;
  EXPECT_EQ(gpu->captureEnd(first, &graph), 905);
}

} // namespace
