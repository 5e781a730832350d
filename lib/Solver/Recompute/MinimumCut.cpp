#include "MinimumCut.h"
#include <algorithm>

using namespace par;

void MinimumCut::addEdge(unsigned from, unsigned to, Capacity capacity) {
  edgesOf[from].push_back(edges.size());
  edges.push_back({to, capacity});
  edgesOf[to].push_back(edges.size());
  edges.push_back({from, 0});
}

/// Breadth-first distances from the source along edges with capacity left.
bool MinimumCut::layer(unsigned source, unsigned sink) {
  level.assign(edgesOf.size(), -1);
  level[source] = 0;
  std::vector<unsigned> queue{source};
  for (size_t i = 0; i < queue.size(); ++i)
    for (unsigned edge : edgesOf[queue[i]])
      if (edges[edge].left > 0 && level[edges[edge].to] < 0) {
        level[edges[edge].to] = level[queue[i]] + 1;
        queue.push_back(edges[edge].to);
      }
  return level[sink] >= 0;
}

/// Pushes flow along layers; recursion is as deep as the longest shortest path.
MinimumCut::Capacity MinimumCut::push(unsigned vertex, unsigned sink, Capacity most) {
  if (vertex == sink)
    return most;
  Capacity pushed = 0;
  for (; next[vertex] < edgesOf[vertex].size(); ++next[vertex]) {
    unsigned index = edgesOf[vertex][next[vertex]];
    Edge &edge = edges[index];
    if (edge.left == 0 || level[edge.to] != level[vertex] + 1)
      continue;
    Capacity flow = push(edge.to, sink, std::min(most - pushed, edge.left));
    edge.left -= flow;
    edges[index ^ 1].left += flow;
    pushed += flow;
    if (pushed == most)
      return pushed;
  }
  return pushed;
}

void MinimumCut::solve(unsigned source, unsigned sink) {
  while (layer(source, sink)) {
    next.assign(edgesOf.size(), 0);
    push(source, sink, infinite);
  }
}
