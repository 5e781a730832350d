// The emulation finds the faults that it promises to, and lets correct kernels through.
#include "Emulation.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>

namespace {

std::string faultOf(const std::function<void()> &kernel, unsigned threads = 64) {
  try {
    emulation::launch({{1, 1, 1}, {threads, 1, 1}}, kernel, 1);
  } catch (const std::runtime_error &error) {
    return error.what();
  }
  return "";
}

// A function, since all of a macro's arguments would stand in one line.
void expectFault(std::string_view text, const std::function<void()> &kernel) {
  std::string fault = faultOf(kernel);
  EXPECT_NE(fault.find(text), fault.npos) << "\"" << fault << "\" lacks \"" << text << "\"";
}

TEST(Emulation, threadsSeeTheirIndexAndMeetAtBarriers) {
  std::vector<unsigned> order;
  std::vector<int> seen(12 * 64);
  emulation::launch(
      {{3, 4, 1}, {32, 2, 1}},
      [&] {
        unsigned thread = threadIdx.y * blockDim.x + threadIdx.x, block = blockIdx.y * gridDim.x + blockIdx.x;
        PAR_SHARED(int, values, 64);
        values[thread] = int(thread);
        __syncthreads();
        ASSERT_EQ(int(values[63 - thread]), int(63 - thread));
        ++seen[block * 64 + thread];
        if (thread == 0)
          order.push_back(block);
      },
      5);
  EXPECT_EQ(std::vector<int>(12 * 64, 1), seen);
  EXPECT_FALSE(std::ranges::is_sorted(order)) << "blocks run in an order of the seed";
}

TEST(Emulation, shufflesMoveValues) {
  EXPECT_EQ(faultOf([] {
              unsigned lane = threadIdx.x % 32;
              ASSERT_EQ(__shfl_down_sync(~0u, lane, 4), lane < 28 ? lane + 4 : lane);
              ASSERT_EQ(__shfl_up_sync(~0u, lane, 1), lane > 0 ? lane - 1 : 0);
              ASSERT_EQ(__shfl_sync(~0u, 0.5 + lane, 3), 3.5);
            }),
            "");
}

TEST(Emulation, missedBarriersAreFound) {
  expectFault("waits at EmulationTest.cpp", [] {
    if (threadIdx.x != 5)
      __syncthreads();
  });
  expectFault("waits for its block at", [] {
    if (threadIdx.x < 32)
      __syncthreads();
    else
      __syncthreads();
  });
  expectFault("for threads that do not come", [] {
    if (threadIdx.x % 32 < 16)
      __shfl_sync(~0u, 1, 0);
  });
  expectFault("shuffles with part of its warp", [] { __shfl_sync(0xffffu, 1, 0); });
}

TEST(Emulation, racesOnSharedMemoryAreFound) {
  expectFault("without a barrier between", [] {
    PAR_SHARED(int, values, 64);
    values[threadIdx.x] = 1;
    __syncthreads();
    values[threadIdx.x] = 2;
    (void)int(values[63 - threadIdx.x]);
  });
  expectFault("race", [] {
    PAR_SHARED(int, one, 1);
    one[0] = int(threadIdx.x);
  });
  expectFault("race", [] { // written again before all have read
    PAR_SHARED(int, one, 1);
    if (threadIdx.x == 0)
      one[0] = 1;
    __syncthreads();
    (void)int(one[0]);
    if (threadIdx.x == 0)
      one[0] = 2;
  });
  expectFault("which nothing has written", [] {
    PAR_SHARED(int, never, 1);
    (void)int(never[0]);
  });
}

TEST(Emulation, aWarpNeedsItsOwnBarrierOnly) {
  EXPECT_EQ(faultOf([] {
              PAR_SHARED(int, ofWarp, 64);
              ofWarp[threadIdx.x] = 1;
              __syncwarp();
              (void)int(ofWarp[threadIdx.x ^ 1]);
            }),
            "");
  expectFault("race", [] {
    PAR_SHARED(int, ofBlock, 64);
    ofBlock[threadIdx.x] = 1;
    __syncthreads();
    ofBlock[threadIdx.x] = 2;
    __syncwarp();
    (void)int(ofBlock[threadIdx.x ^ 32]);
  });
}

} // namespace
