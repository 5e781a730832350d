// Reference semantics of constants and shape ops: element copies by index arithmetic. A dynamic start outside its range
// is an error, not clamped.
#include "../TensorTypes.h"
#include "par/Base/Indexing.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Interpretable.h"

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

using Results = FailureOr<SmallVector<Tensor>>;

struct ConstantInterpreter : InterpretableOpInterface::ExternalModel<ConstantInterpreter, ConstantOp> {
  Results interpret(Operation *op, ArrayRef<Tensor>) const {
    return SmallVector<Tensor>{Tensor::ofAttribute(cast<ConstantOp>(op).getValue())};
  }
};

struct IotaInterpreter : InterpretableOpInterface::ExternalModel<IotaInterpreter, IotaOp> {
  Results interpret(Operation *op, ArrayRef<Tensor>) const {
    Tensor result(resultType(op));
    int64_t dim = cast<IotaOp>(op).getDim(), at = 0;
    SmallVector<int64_t> none(result.getShape().size(), 0);
    forEachIndex(result.getShape(), none, [&](ArrayRef<int64_t> index, int64_t) {
      if (result.isFloat())
        result.mutableFloats()[at++] = index[dim];
      else
        result.mutableInts()[at++] = index[dim];
    });
    return SmallVector<Tensor>{result};
  }
};

struct BroadcastInterpreter : InterpretableOpInterface::ExternalModel<BroadcastInterpreter, BroadcastInDimOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    SmallVector<int64_t> from = getStrides(operands[0].getShape()), strides(resultType(op).getRank(), 0);
    for (auto [i, dim] : llvm::enumerate(cast<BroadcastInDimOp>(op).getDims()))
      strides[dim] = operands[0].getShape()[i] == 1 ? 0 : from[i];
    return SmallVector<Tensor>{pick(operands[0], resultType(op), strides)};
  }
};

struct ReshapeInterpreter : InterpretableOpInterface::ExternalModel<ReshapeInterpreter, ReshapeOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    return SmallVector<Tensor>{operands[0].withType(resultType(op))};
  }
};

struct TransposeInterpreter : InterpretableOpInterface::ExternalModel<TransposeInterpreter, TransposeOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    SmallVector<int64_t> from = getStrides(operands[0].getShape()), strides;
    for (int64_t dim : cast<TransposeOp>(op).getPermutation())
      strides.push_back(from[dim]);
    return SmallVector<Tensor>{pick(operands[0], resultType(op), strides)};
  }
};

struct SliceInterpreter : InterpretableOpInterface::ExternalModel<SliceInterpreter, SliceOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto slice = cast<SliceOp>(op);
    SmallVector<int64_t> strides = getStrides(operands[0].getShape());
    int64_t start = 0;
    for (size_t dim = 0; dim < strides.size(); ++dim) {
      start += slice.getStarts()[dim] * strides[dim];
      strides[dim] *= slice.getStrides()[dim];
    }
    return SmallVector<Tensor>{pick(operands[0], resultType(op), strides, start)};
  }
};

struct ReverseInterpreter : InterpretableOpInterface::ExternalModel<ReverseInterpreter, ReverseOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    SmallVector<int64_t> strides = getStrides(operands[0].getShape());
    int64_t start = 0;
    for (int64_t dim : cast<ReverseOp>(op).getDims()) {
      start += (operands[0].getShape()[dim] - 1) * strides[dim];
      strides[dim] = -strides[dim];
    }
    return SmallVector<Tensor>{pick(operands[0], resultType(op), strides, start)};
  }
};

/// A start out of bounds is an error; it is not clamped.
FailureOr<int64_t> startOf(Operation *op, const Tensor &start, int64_t whole, int64_t part) {
  int64_t value = start.ints().front();
  if (value < 0 || value + part > whole)
    return op->emitError() << "starts at " << value << " for " << part << " elements of " << whole;
  return value;
}

struct DynamicSliceInterpreter : InterpretableOpInterface::ExternalModel<DynamicSliceInterpreter, DynamicSliceOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto slice = cast<DynamicSliceOp>(op);
    SmallVector<int64_t> strides = getStrides(operands[0].getShape());
    FailureOr<int64_t> start = startOf(op, operands[1], operands[0].getShape()[slice.getDim()], slice.getSize());
    if (failed(start))
      return failure();
    return SmallVector<Tensor>{pick(operands[0], resultType(op), strides, *start * strides[slice.getDim()])};
  }
};

struct UpdateSliceInterpreter : InterpretableOpInterface::ExternalModel<UpdateSliceInterpreter, UpdateSliceOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto update = cast<UpdateSliceOp>(op);
    int64_t dim = update.getDim();
    FailureOr<int64_t> start = startOf(op, operands[2], operands[0].getShape()[dim], operands[1].getShape()[dim]);
    if (failed(start))
      return failure();
    SmallVector<int64_t> starts(operands[0].getShape().size(), 0);
    starts[dim] = *start;
    Tensor result = operands[0];
    place(result, operands[1], starts);
    return SmallVector<Tensor>{result};
  }
};

struct PadInterpreter : InterpretableOpInterface::ExternalModel<PadInterpreter, PadOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto pad = cast<PadOp>(op);
    Tensor result = Tensor::ofAttribute(SplatElementsAttr::get(resultType(op), Attribute(pad.getValue())));
    place(result, operands[0], pad.getLow());
    return SmallVector<Tensor>{result};
  }
};

struct ConcatInterpreter : InterpretableOpInterface::ExternalModel<ConcatInterpreter, ConcatOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Tensor result(resultType(op));
    int64_t dim = cast<ConcatOp>(op).getDim();
    SmallVector<int64_t> starts(result.getShape().size(), 0);
    for (const Tensor &operand : operands) {
      place(result, operand, starts);
      starts[dim] += operand.getShape()[dim];
    }
    return SmallVector<Tensor>{result};
  }
};

} // namespace

void registerShapeInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ConstantOp, ConstantInterpreter>(*context);
    attachOnce<IotaOp, IotaInterpreter>(*context);
    attachOnce<BroadcastInDimOp, BroadcastInterpreter>(*context);
    attachOnce<ReshapeOp, ReshapeInterpreter>(*context);
    attachOnce<TransposeOp, TransposeInterpreter>(*context);
    attachOnce<SliceOp, SliceInterpreter>(*context);
    attachOnce<DynamicSliceOp, DynamicSliceInterpreter>(*context);
    attachOnce<UpdateSliceOp, UpdateSliceInterpreter>(*context);
    attachOnce<ReverseOp, ReverseInterpreter>(*context);
    attachOnce<PadOp, PadInterpreter>(*context);
    attachOnce<ConcatOp, ConcatInterpreter>(*context);
  });
}

} // namespace par
