// A minimum cut by Dinic's algorithm, on integer capacities.
#pragma once

#include <cstddef>
#include <vector>

namespace par {

class MinimumCut {
public:
  using Capacity = __int128; ///< products of two figures are capacities
  static constexpr Capacity infinite = Capacity(1) << 120;

  explicit MinimumCut(unsigned vertices) : edgesOf(vertices) {}

  void addEdge(unsigned from, unsigned to, Capacity capacity);
  /// Saturates the network; afterwards `onSourceSide` gives the two sides of a minimum cut.
  void solve(unsigned source, unsigned sink);
  bool onSourceSide(unsigned vertex) const { return level[vertex] >= 0; }

private:
  struct Edge {
    unsigned to;
    Capacity left;
  };
  bool layer(unsigned source, unsigned sink);
  Capacity push(unsigned vertex, unsigned sink, Capacity most);

  std::vector<Edge> edges; ///< edge 2i and its reverse 2i + 1
  std::vector<std::vector<unsigned>> edgesOf;
  std::vector<int> level;
  std::vector<size_t> next;
};

} // namespace par
