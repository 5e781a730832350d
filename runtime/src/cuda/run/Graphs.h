// CUDA graphs of segments, by block and slots.
#pragma once

#include "Executor.h"

#include <functional>
#include <map>

namespace par::cuda {

class Graphs {
public:
  Graphs(const Gpu &gpu, Streams &lanes, Executor &walk) : gpu(gpu), lanes(lanes), walk(walk) {}

  /// Launches the graph of a segment, which is captured when its block first runs with these slots. Waits for
  /// events from outside come before it, signals after it.
  void run(const PreparedEntry &entry, const Segment &segment);
  /// Captures the work that `issue` puts on the streams; it begins and ends on that of `queue`.
  Owned<GraphExec> capture(uint32_t queue, const std::function<void()> &issue);
  void clear() { cache.clear(); }

private:
  /// Block, place in it, operand addresses, and which waits are for signals of the same segment.
  using Key = std::vector<uint64_t>;
  static Key keyOf(const PreparedEntry &entry, const Segment &segment);

  const Gpu &gpu;
  Streams &lanes;
  Executor &walk;
  std::map<Key, Owned<GraphExec>> cache;
};

} // namespace par::cuda
