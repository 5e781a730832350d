// V3: no deadlock with one engine a rank, rendezvous, no buffers. Matched operations are one node, so are the
// operations of a group; every actor's units are a chain. There are no wildcards and no data-dependent control, so the
// program makes progress exactly if this graph has no cycle. Events need no edges: a wait sees signals that stand
// before it in the order in which its rank issues.
#include "verify/Model.h"

#include <algorithm>
#include <deque>
#include <map>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
class Engine {
public:
  Engine(const Bundle &bundle, const std::string &entry, const Actors &actors, const std::vector<Trace> &traces,
         Nodes &nodes)
      : bundle(bundle), entry(entry), actors(actors), traces(traces), nodes(nodes) {}
  std::optional<Counterexample> run(uint64_t &longest);

private:
  void build();
  void complete(uint32_t node, uint64_t &longest);
  std::optional<Counterexample> witness();
  std::vector<uint32_t> waitsFor(uint32_t actor) const;
  Counterexample report(const std::vector<uint32_t> &cycle);
  const CommOp &head(uint32_t actor) const { return traces[actors.role[actor]].ops[starts[actor][done[actor]]]; }

  const Bundle &bundle;
  const std::string &entry;
  const Actors &actors;
  const std::vector<Trace> &traces;
  Nodes &nodes;

  std::vector<std::vector<uint32_t>> starts;                       ///< [actor][unit]: its first operation
  std::vector<std::vector<uint32_t>> nodeOf;                       ///< [actor][unit]
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> members; ///< [node]: (actor, unit)
  std::vector<uint32_t> missing;                                   ///< [node]: units not at their actor's head
  std::vector<uint64_t> depth;                                     ///< [node]: longest chain that ends in it
  std::vector<uint32_t> done;                                      ///< [actor]: units completed
  std::deque<uint32_t> ready;
};
} // namespace

void Engine::build() {
  members.resize(nodes.size());
  depth.assign(nodes.size(), 0);
  done.assign(actors.role.size(), 0);
  starts.resize(actors.role.size());
  nodeOf.resize(actors.role.size());
  for (uint32_t actor = 0; actor < actors.role.size(); ++actor) {
    const std::vector<CommOp> &ops = traces[actors.role[actor]].ops;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (i == 0 || ops[i].unit != ops[i - 1].unit)
        starts[actor].push_back(i);
      else
        nodes.merge(nodes.node(actor, i), nodes.node(actor, i - 1));
    }
  }
  for (uint32_t actor = 0; actor < actors.role.size(); ++actor) {
    for (uint32_t unit = 0; unit < starts[actor].size(); ++unit) {
      nodeOf[actor].push_back(nodes.root(nodes.node(actor, starts[actor][unit])));
      members[nodeOf[actor].back()].push_back({actor, unit});
    }
  }
  missing.resize(nodes.size());
  for (size_t node = 0; node < members.size(); ++node)
    missing[node] = uint32_t(members[node].size());
}

/// All units of a node are at the heads of their actors: it happens, and the next units come to the heads.
void Engine::complete(uint32_t node, uint64_t &longest) {
  longest = std::max(longest, ++depth[node]);
  for (auto [actor, unit] : members[node]) {
    done[actor] = unit + 1;
    if (done[actor] == starts[actor].size())
      continue;
    uint32_t next = nodeOf[actor][done[actor]];
    depth[next] = std::max(depth[next], depth[node]);
    if (--missing[next] == 0)
      ready.push_back(next);
  }
}

std::optional<Counterexample> Engine::run(uint64_t &longest) {
  build();
  for (uint32_t actor = 0; actor < starts.size(); ++actor)
    if (!starts[actor].empty() && --missing[nodeOf[actor][0]] == 0)
      ready.push_back(nodeOf[actor][0]);
  while (!ready.empty()) {
    uint32_t node = ready.front();
    ready.pop_front();
    complete(node, longest);
  }
  return witness();
}

/// Actors that stand before their unit of the node at `actor`'s head.
std::vector<uint32_t> Engine::waitsFor(uint32_t actor) const {
  std::vector<uint32_t> others;
  for (auto [other, unit] : members[nodeOf[actor][done[actor]]])
    if (done[other] != unit)
      others.push_back(other);
  return others;
}

/// The shortest cycle of actors that wait for each other, if any actor is left.
std::optional<Counterexample> Engine::witness() {
  std::vector<uint32_t> best;
  for (uint32_t start = 0; start < starts.size() && best.size() != 1; ++start) {
    if (done[start] == starts[start].size())
      continue;
    std::map<uint32_t, uint32_t> from;
    std::deque<uint32_t> queue{start};
    while (!queue.empty() && !from.count(start)) {
      uint32_t actor = queue.front();
      queue.pop_front();
      for (uint32_t other : waitsFor(actor))
        if (from.emplace(other, actor).second)
          queue.push_back(other);
    }
    if (!from.count(start))
      continue;
    std::vector<uint32_t> cycle{start};
    for (uint32_t actor = from[start]; actor != start; actor = from[actor])
      cycle.push_back(actor);
    std::reverse(cycle.begin() + 1, cycle.end());
    if (best.empty() || cycle.size() < best.size())
      best = cycle;
  }
  if (best.empty())
    return std::nullopt;
  return report(best);
}

Counterexample Engine::report(const std::vector<uint32_t> &cycle) {
  Counterexample found{Property::Progress, "deadlock: ", {}};
  if (cycle.size() == 1) {
    found.message += "rank " + std::to_string(actors.rank[cycle[0]]) + " waits for itself";
  } else {
    found.message += "ranks ";
    for (size_t i = 0; i < cycle.size(); ++i)
      found.message += (i == 0 ? "" : i + 1 == cycle.size() ? " and " : ", ") + std::to_string(actors.rank[cycle[i]]);
    found.message += " wait for each other";
  }
  found.message += " in entry " + entry;
  for (size_t i = 0; i < cycle.size(); ++i) {
    uint32_t actor = cycle[i], other = cycle[(i + 1) % cycle.size()];
    std::string line = describeOp(bundle, actors.rank[actor], head(actor));
    // Position of the other side of this actor's head.
    for (auto [member, unit] : members[nodeOf[actor][done[actor]]]) {
      if (member != other || unit == done[other])
        continue;
      const CommOp &later = traces[actors.role[other]].ops[starts[other][unit]];
      line += "; rank " + std::to_string(actors.rank[other]) + " joins later, at " +
              instructionId(bundle.programs[actors.role[other]], later.block, later.n);
      break;
    }
    found.notes.push_back(line);
  }
  return found;
}

std::optional<Counterexample> par::verify::checkProgress(const Bundle &bundle, const std::string &entry,
                                                         const Actors &actors, const std::vector<Trace> &traces,
                                                         Nodes &nodes, uint64_t &longest) {
  return Engine(bundle, entry, actors, traces, nodes).run(longest);
}
