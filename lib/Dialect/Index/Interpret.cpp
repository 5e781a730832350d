// Reference semantics of gather, take and the scatters. An index outside its dim is an error.
#include "../NeutralElement.h"
#include "../TensorTypes.h"
#include "par/Base/Indexing.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Combine.h"
#include "par/Dialect/Interfaces/Interpretable.h"

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

using Results = FailureOr<SmallVector<Tensor>>;

LogicalResult checkIndex(Operation *op, int64_t index, int64_t size) {
  if (index < 0 || index >= size)
    return op->emitError() << "index " << index << " is out of range [0, " << size << ")";
  return success();
}

struct GatherInterpreter : InterpretableOpInterface::ExternalModel<GatherInterpreter, GatherOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    const Tensor &table = operands[0];
    Along along(table.getShape(), cast<GatherOp>(op).getDim());
    Tensor result(resultType(op));
    int64_t many = operands[1].getSize();
    for (int64_t o = 0; o < along.outer; ++o)
      for (int64_t k = 0; k < many; ++k) {
        int64_t row = operands[1].ints()[k];
        if (failed(checkIndex(op, row, along.size)))
          return failure();
        for (int64_t i = 0; i < along.inner; ++i) {
          int64_t to = (o * many + k) * along.inner + i, from = (o * along.size + row) * along.inner + i;
          if (table.isFloat())
            result.mutableFloats()[to] = table.floats()[from];
          else
            result.mutableInts()[to] = table.ints()[from];
        }
      }
    return SmallVector<Tensor>{result};
  }
};

struct IndexAddInterpreter : InterpretableOpInterface::ExternalModel<IndexAddInterpreter, IndexAddOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Tensor result(resultType(op));
    Along along(result.getShape(), cast<IndexAddOp>(op).getDim());
    int64_t many = operands[1].getSize();
    for (int64_t o = 0; o < along.outer; ++o)
      for (int64_t k = 0; k < many; ++k) {
        int64_t row = operands[1].ints()[k];
        if (failed(checkIndex(op, row, along.size)))
          return failure();
        for (int64_t i = 0; i < along.inner; ++i) {
          int64_t from = (o * many + k) * along.inner + i, to = (o * along.size + row) * along.inner + i;
          if (result.isFloat())
            result.mutableFloats()[to] += operands[0].floats()[from];
          else
            result.mutableInts()[to] += operands[0].ints()[from];
        }
      }
    return SmallVector<Tensor>{result};
  }
};

/// Visits the elements of the part (indices' shape) with their offset in the whole.
template <typename Visit>
LogicalResult alongIndices(Operation *op, const Tensor &indices, ArrayRef<int64_t> whole, int64_t dim, Visit visit) {
  Along part(indices.getShape(), dim);
  int64_t size = whole[dim];
  for (int64_t o = 0; o < part.outer; ++o)
    for (int64_t s = 0; s < part.size; ++s)
      for (int64_t i = 0; i < part.inner; ++i) {
        int64_t at = (o * part.size + s) * part.inner + i, index = indices.ints()[at];
        if (failed(checkIndex(op, index, size)))
          return failure();
        visit(at, (o * size + index) * part.inner + i);
      }
  return success();
}

struct TakeInterpreter : InterpretableOpInterface::ExternalModel<TakeInterpreter, TakeOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Tensor result(resultType(op));
    auto take = [&](int64_t at, int64_t from) {
      if (result.isFloat())
        result.mutableFloats()[at] = operands[0].floats()[from];
      else
        result.mutableInts()[at] = operands[0].ints()[from];
    };
    if (failed(alongIndices(op, operands[1], operands[0].getShape(), cast<TakeOp>(op).getDim(), take)))
      return failure();
    return SmallVector<Tensor>{result};
  }
};

struct ScatterAddInterpreter : InterpretableOpInterface::ExternalModel<ScatterAddInterpreter, ScatterAddOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Tensor result(resultType(op));
    auto add = [&](int64_t at, int64_t to) {
      if (result.isFloat())
        result.mutableFloats()[to] += operands[0].floats()[at];
      else
        result.mutableInts()[to] += operands[0].ints()[at];
    };
    if (failed(alongIndices(op, operands[1], result.getShape(), cast<ScatterAddOp>(op).getDim(), add)))
      return failure();
    return SmallVector<Tensor>{result};
  }
};

struct ScatterReduceInterpreter : InterpretableOpInterface::ExternalModel<ScatterReduceInterpreter, ScatterReduceOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto put = cast<ScatterReduceOp>(op);
    ReduceKind kind = put.getKind();
    Tensor result(resultType(op));
    Type element = resultType(op).getElementType();
    if (result.isFloat())
      llvm::fill(result.mutableFloats(), neutralElement<double>(kind, element));
    else
      llvm::fill(result.mutableInts(), neutralElement<int64_t>(kind, element));
    auto join = [&](int64_t at, int64_t to) {
      if (result.isFloat())
        result.mutableFloats()[to] = combine(kind, result.floats()[to], operands[0].floats()[at]);
      else
        result.mutableInts()[to] = combine(kind, result.ints()[to], operands[0].ints()[at]);
    };
    if (failed(alongIndices(op, operands[1], result.getShape(), put.getDim(), join)))
      return failure();
    return SmallVector<Tensor>{result};
  }
};

} // namespace

void registerIndexInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<GatherOp, GatherInterpreter>(*context);
    attachOnce<IndexAddOp, IndexAddInterpreter>(*context);
    attachOnce<TakeOp, TakeInterpreter>(*context);
    attachOnce<ScatterReduceOp, ScatterReduceInterpreter>(*context);
    attachOnce<ScatterAddOp, ScatterAddInterpreter>(*context);
  });
}

} // namespace par
