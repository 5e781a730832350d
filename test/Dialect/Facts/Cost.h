// Whether an op's cost follows its sizes.
#pragma once

#include "Factors.h"

#include "par/Dialect/Interfaces/Cost.h"

namespace par::test {

/// Bytes of a tensor: a boolean takes one.
inline int64_t bytesOf(mlir::Type type) {
  auto tensor = llvm::cast<mlir::RankedTensorType>(type);
  return tensor.getNumElements() * std::max<int64_t>(1, tensor.getElementTypeBitWidth() / 8);
}

/// Each operand and result is counted once; only an op that computes nothing has no operations.
inline std::string checkCost(const Instance &instance, OpCost cost) {
  int64_t bytes = 0;
  for (mlir::Type type : llvm::concat<mlir::Type>(llvm::to_vector(instance.op->getOperandTypes()),
                                                  llvm::to_vector(instance.op->getResultTypes())))
    bytes += bytesOf(type);
  if (cost.bytes != bytes)
    return llvm::formatv("moves {0} bytes, and its operands and results have {1}", cost.bytes, bytes).str();
  if (cost.flops < 0)
    return llvm::formatv("costs {0} operations", cost.flops).str();
  bool empty = llvm::any_of(instance.results, [](const Tensor &tensor) { return tensor.getSize() == 0; });
  if (cost.flops == 0 && !empty && instance.op->hasTrait<mlir::OpTrait::Elementwise>())
    return "is Elementwise and costs no operations";
  return "";
}

/// The operations of an op's shards: fewer than the whole op's if there is less work, together no fewer. `flopsOf`
/// gives an op's cost. Nothing if no factor is sharded.
inline std::optional<std::string> checkGrowth(const Instance &instance, const ShardingRule &rule,
                                              llvm::function_ref<int64_t(mlir::Operation *)> flopsOf) {
  int64_t whole = flopsOf(instance.op);
  std::optional<std::string> found;
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    if ((factor.kind != FactorKind::Parallel && factor.kind != FactorKind::Sum) || factor.size < 2)
      continue;
    FactorCut cut(instance, rule, index, factor.size);
    if (!cut.check() || whole == 0)
      continue;
    int64_t part = 0;
    for (mlir::Operation &op : cut.local())
      if (op.getName() == instance.op->getName())
        part += flopsOf(&op);
    std::string sizes = llvm::formatv("costs {0} operations, and {1} where a dim of {2} is cut to 1 ({3})", whole, part,
                                      factor.size, rule.str());
    if (part >= whole || part * factor.size < whole)
      return sizes;
    found = "";
  }
  return found;
}

} // namespace par::test
