#include "par/Dialect/Interfaces/Interpretable.h"
#include "par/Interpreter/Interpreter.h"

using namespace mlir;

namespace par::interp {

static SmallVector<Tensor> operandsOf(Operation *op, const RankValues &values) {
  SmallVector<Tensor> operands;
  for (Value operand : op->getOperands())
    operands.push_back(values.lookup(operand));
  return operands;
}

/// All ranks of the stage together.
static LogicalResult runCollective(InterpretableCollectiveInterface op, MutableArrayRef<RankValues> values,
                                   MeshAttr mesh) {
  SmallVector<SmallVector<Tensor>> operands;
  for (const RankValues &rank : values)
    operands.push_back(operandsOf(op, rank));
  if (!mesh)
    return op.emitError() << "communicates, but runs on one device";
  auto results = op.interpretRanks(operands, mesh);
  if (failed(results))
    return failure();
  for (auto [rank, mine] : llvm::zip(values, *results))
    for (auto [result, tensor] : llvm::zip(op->getResults(), mine))
      rank[result] = tensor;
  return success();
}

LogicalResult runOp(Operation &op, MutableArrayRef<RankValues> values, MeshAttr mesh) {
  if (auto collective = dyn_cast<InterpretableCollectiveInterface>(op))
    return runCollective(collective, values, mesh);
  auto meaning = dyn_cast<InterpretableOpInterface>(op);
  if (!meaning)
    return op.emitError() << "cannot be interpreted";
  for (RankValues &rank : values) {
    auto results = meaning.interpret(operandsOf(&op, rank));
    if (failed(results))
      return failure();
    for (auto [result, tensor] : llvm::zip(op.getResults(), *results))
      rank[result] = tensor;
  }
  return success();
}

LogicalResult runBlock(Block &block, MutableArrayRef<RankValues> values, MeshAttr mesh) {
  for (Operation &op : block.without_terminator())
    if (failed(runOp(op, values, mesh)))
      return failure();
  return success();
}

} // namespace par::interp
