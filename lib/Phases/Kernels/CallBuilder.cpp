#include "CallBuilder.h"

using namespace mlir;

namespace par {

using kernels::Access;

/// Whether a table's word means that type.
static bool hasType(Type element, std::string_view word) {
  return word == "f32"    ? element.isF32()
         : word == "bf16" ? element.isBF16()
         : word == "f16"  ? element.isF16()
                          : element.isInteger(64);
}

/// Every value has its argument or result, updates are tied as the kernel says, types are those of the table.
std::optional<BuiltinCall> CallBuilder::finish() {
  if (kernel.getBlock().getOperations().size() != 2 + others)
    return std::nullopt;
  if (!call.kernel || call.immediates.size() != call.kernel->immediates.size() ||
      call.operands.size() > call.kernel->operands.size())
    return std::nullopt;
  llvm::SmallDenseSet<unsigned> arguments; // one may stand for several operands
  unsigned results = 0;
  for (auto [value, expected] : llvm::zip(call.operands, call.kernel->operands)) {
    bool updates = value.access == Access::Update || (value.access == Access::Accumulate && value.argument);
    bool writes = updates || value.access != Access::Read, reads = updates || value.access == Access::Read;
    if (reads != value.argument.has_value() || writes != value.result.has_value() || value.access != expected.access)
      return std::nullopt;
    if (reads)
      arguments.insert(*value.argument);
    results += writes;
    Type type = reads ? kernel.getArgumentTypes()[*value.argument] : kernel.getResultTypes()[*value.result];
    if (!hasType(getTensorType(type).getElementType(), expected.type))
      return std::nullopt;
    if (!writes)
      continue;
    int64_t tied = kernel.getTied() ? (*kernel.getTied())[*value.result] : -1;
    if (tied != (updates ? int64_t(*value.argument) : -1))
      return std::nullopt;
  }
  if (arguments.size() + leftOut != kernel.getArgumentTypes().size() || results != kernel.getResultTypes().size())
    return std::nullopt;
  return call;
}

} // namespace par
