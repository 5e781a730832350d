#include "PairTime.h"

using namespace mlir;

namespace par {

format::DType formatOf(Type tensor) {
  Type element = getTensorType(tensor).getElementType();
  return element.isF64()    ? format::DType::F64
         : element.isBF16() ? format::DType::BF16
         : element.isF16()  ? format::DType::F16
                            : format::DType::F32;
}

int64_t pairTime(const PairCost &pair, int64_t chunks, const Hardware &hardware) {
  int64_t sent = hardware.collectiveTime(pair.kind, pair.bytes / chunks, pair.group), products = 0;
  for (const PairCost::Matmul &product : pair.products)
    products += hardware.localTime(product.flops / chunks, product.bytes / chunks, product.type);
  if (pair.around > 0)
    products += hardware.localTime(0, pair.around / chunks);
  int64_t moves = 0;
  if (chunks > 1)
    moves = hardware.localTime(0, pair.moved) + (chunks * pair.moves - 1) * hardware.launch;
  // Two machines in a row take the sum of one chunk, and then the slower one's time for each further chunk.
  return moves + sent + products + (chunks - 1) * std::max(sent, products);
}

} // namespace par
