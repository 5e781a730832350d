// A longest chain of a played step, found from its end: what ended last began when something else ended, and so on back
// to the begin. That may be what it depends on, what its engine did before, or what a core of its host did.
#include "Expansion.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;

namespace {

class ChainFinder {
public:
  ChainFinder(const Expansion &expansion, const Hardware &hardware) : expansion(expansion), hardware(hardware) {
    for (uint32_t node = 0; node < expansion.nodes.size(); ++node) {
      members.emplace_back(expansion.joint[node], node);
      if (expansion.nodes[node].duration > 0)
        ends.emplace_back(endOf(node), node);
    }
    llvm::sort(members);
    llvm::sort(ends);
  }

  std::vector<uint32_t> find() const {
    std::vector<uint32_t> chain;
    std::optional<uint32_t> node;
    if (!ends.empty())
      node = ends.back().second;
    while (node) {
      if (expansion.nodes[*node].duration > 0)
        chain.push_back(*node);
      node = before(*node);
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

private:
  int64_t endOf(uint32_t node) const { return expansion.nodes[node].start + expansion.nodes[node].duration; }
  int64_t hostOf(uint32_t node) const { return hardware.ranks ? expansion.nodes[node].rank / hardware.ranks : 0; }
  llvm::ArrayRef<std::pair<uint32_t, uint32_t>> membersOf(uint32_t node) const {
    auto [first, last] =
        std::equal_range(members.begin(), members.end(), std::pair(expansion.joint[node], 0u), llvm::less_first());
    return llvm::ArrayRef(members).slice(first - members.begin(), last - first);
  }

  /// The node that ended when this one began; nothing at the step's begin.
  std::optional<uint32_t> before(uint32_t node) const {
    int64_t start = expansion.nodes[node].start;
    for (auto [joint, member] : membersOf(node))
      for (int64_t other : expansion.before[member])
        if (other >= 0 && endOf(other) == start)
          return other;
    return start > 0 && expansion.nodes[node].duration > 0 ? engineBefore(node) : std::nullopt;
  }

  /// The node that freed an engine or a core at that moment: of a rank that takes part, else of its host.
  std::optional<uint32_t> engineBefore(uint32_t node) const {
    auto [first, last] =
        std::equal_range(ends.begin(), ends.end(), std::pair(expansion.nodes[node].start, 0u), llvm::less_first());
    std::optional<uint32_t> onHost;
    for (auto at = first; at != last; ++at)
      for (auto [joint, member] : membersOf(node)) {
        if (expansion.nodes[at->second].rank == expansion.nodes[member].rank)
          return at->second;
        if (hostOf(at->second) == hostOf(member))
          onHost = at->second;
      }
    return onHost;
  }

  const Expansion &expansion;
  const Hardware &hardware;
  std::vector<std::pair<uint32_t, uint32_t>> members; ///< joints and their nodes
  std::vector<std::pair<int64_t, uint32_t>> ends;     ///< of nodes that take time
};

} // namespace

std::vector<uint32_t> par::findCritical(const Expansion &expansion, const Hardware &hardware) {
  return ChainFinder(expansion, hardware).find();
}
