#include "par/Dialect/Interfaces/Timed.h"

#include "par/Dialect/Concerns.h"
#include "par/Dialect/Interfaces/Cost.h"

#include "par/Dialect/Interfaces/Timed.cpp.inc"

using namespace mlir;

namespace par {

format::DType formatOf(Type tensor) {
  Type element = getTensorType(tensor).getElementType();
  return element.isF64()    ? format::DType::F64
         : element.isBF16() ? format::DType::BF16
         : element.isF16()  ? format::DType::F16
                            : format::DType::F32;
}

Cost timeOf(Operation *op, const CostTable &costs) {
  if (auto timed = dyn_cast<TimedOpInterface>(op))
    return timed.getTime(costs);
  OpCost work = getCost(op);
  return costs.kernel(work.bytes, work.flops);
}

void registerAttentionTimes(DialectRegistry &registry);
void registerCollectiveTimes(DialectRegistry &registry);
void registerContractTimes(DialectRegistry &registry);
void registerWindowTimes(DialectRegistry &registry);

void registerTimes(DialectRegistry &registry) {
  registerAttentionTimes(registry);
  registerCollectiveTimes(registry);
  registerContractTimes(registry);
  registerWindowTimes(registry);
}

} // namespace par
