// Puts steps of an entry on streams, in issue order.
#pragma once

#include "par/cuda/blas/Gemm.h"
#include "par/cuda/comm/Communicators.h"
#include "par/cuda/driver/Kernels.h"
#include "par/device/Device.h"

#include <array>

namespace par::cuda {

/// Instructions [first, last) of one run of a block: either local work only, which may become a graph, or
/// communication, feeds and fetches.
struct Segment {
  uint32_t first = 0, last = 0;
  bool closed = false;          ///< may be captured; else steps are issued one by one
  std::vector<uint32_t> queues; ///< that have steps in it; the first launches the graph
};

/// Made once for an entry: bound kernels, events, staging, and the split into segments.
struct PreparedEntry {
  PreparedEntry(const Gpu &gpu, Kernels &kernels, const format::Program &program, const core::ExpandedEntry &source);

  const core::ExpandedEntry &source;
  std::vector<BoundKernel> kernels;
  std::vector<uint32_t> kernelOf;  ///< by step
  std::vector<uint32_t> eventOf;   ///< by step that signals: index of the device's event of that slot
  std::vector<uint64_t> stagingOf; ///< by step that feeds or fetches: offset into `staging`
  /// Pinned; each feed and fetch has its own part. One of the two is filled for the next run while the other is read.
  std::array<DeviceBuffer, 2> stagings;
  unsigned turn = 0;
  bool filled = false;       ///< the staging already holds the inputs of the next run
  uint64_t hyperStaging = 0; ///< where the hyperparameters' part begins
  std::vector<Segment> segments;
  std::vector<uint64_t> scratch; ///< by queue: the largest of its kernels'
  bool communicates = false;
  uint64_t runs = 0;
  /// The entry as one graph for each staging, where nothing is communicated.
  std::array<Owned<GraphExec>, 2> whole;

  std::byte *staging() const { return stagings[turn].data(); }
};

/// Whether a step is a communication, or a group of them.
bool communicates(format::Op op);
/// Index of the event of a slot among all slots of all events of a program.
uint32_t eventIndex(const format::Program &program, const format::Instruction &instruction, const format::Run &run);
uint32_t eventCount(const format::Program &program);

/// The streams and events of a device's queues.
struct Streams {
  Streams(const Gpu &gpu, const format::Program &program);
  std::vector<Owned<Stream>> streams; ///< by queue
  std::vector<Owned<Event>> events;   ///< by eventIndex()
  std::vector<Owned<Event>> tails;    ///< by queue, for forks and joins
  Owned<Event> end;
  std::vector<DeviceBuffer> scratch; ///< by queue, for kernels that need some
  uint32_t main = 0;
};

class Executor {
public:
  Executor(const Gpu &gpu, Streams &lanes, Kernels &kernels, std::vector<std::unique_ptr<Gemm>> &products)
      : gpu(gpu), lanes(lanes), kernels(kernels), products(products) {}

  /// Gives a step to its stream.
  void issue(const PreparedEntry &entry, uint32_t step);
  /// Streams of these queues go on after all that `from` has been given so far; and the reverse.
  void fork(uint32_t from, std::span<const uint32_t> queues);
  void join(std::span<const uint32_t> queues, uint32_t to);

  Communicators *communicators = nullptr;

private:
  void fill(const core::Command &step, Address at, Stream stream);

  const Gpu &gpu;
  Streams &lanes;
  Kernels &kernels;
  std::vector<std::unique_ptr<Gemm>> &products;
};

} // namespace par::cuda
