#include "PairTime.h"

using namespace mlir;

namespace par {

int64_t pairTime(const PairCost &pair, int64_t chunks, const CostTable &costs) {
  int64_t sent = costs.collective(pair.kind, pair.bytes / chunks, pair.group).ns, products = 0;
  for (const PairCost::Matmul &product : pair.products) {
    MatmulShape part = product.shape;
    part.*product.cut = std::max<int64_t>(part.*product.cut / chunks, 1);
    products += costs.matmul(part).ns;
  }
  if (pair.around > 0)
    products += costs.copy(pair.around / chunks).ns;
  int64_t moves = 0;
  if (chunks > 1)
    moves = costs.copy(pair.moved).ns + (chunks * pair.moves - 1) * costs.launch();
  // Two machines in a row take the sum of one chunk, and then the slower one's time for each further chunk.
  return moves + sent + products + (chunks - 1) * std::max(sent, products);
}

} // namespace par
