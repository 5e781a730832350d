#include "par/Search/BestFirst.h"

#include <algorithm>
#include <numeric>

namespace par {

BestChoices bestFirst(const std::vector<int64_t> &bounds, llvm::function_ref<std::optional<int64_t>(size_t)> cost,
                      size_t keep) {
  std::vector<size_t> order(bounds.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bounds[a] < bounds[b]; });
  BestChoices out;
  for (size_t index : order) {
    // One of an equal cost and a lower index may still come.
    if (out.best.size() == keep && bounds[index] > out.best.back().first)
      break;
    ++out.evaluated;
    std::optional<int64_t> ns = cost(index);
    if (!ns)
      continue;
    std::pair<int64_t, size_t> found(*ns, index);
    out.best.insert(std::upper_bound(out.best.begin(), out.best.end(), found), found);
    if (out.best.size() > keep)
      out.best.pop_back();
  }
  return out;
}

} // namespace par
