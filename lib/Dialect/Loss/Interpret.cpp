#include "../TensorTypes.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Interpretable.h"

#include <cmath>

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

using Results = FailureOr<SmallVector<Tensor>>;

LogicalResult checkLabel(Operation *op, int64_t label, int64_t classes) {
  if (label < 0 || label >= classes)
    return op->emitError() << "label " << label << " is out of range [0, " << classes << ") and not the ignored one";
  return success();
}

struct CrossEntropyInterpreter : InterpretableOpInterface::ExternalModel<CrossEntropyInterpreter, CrossEntropyOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    int64_t ignore = cast<CrossEntropyOp>(op).getIgnore();
    int64_t classes = operands[0].getShape().back(), tokens = operands[1].getSize();
    Tensor loss(resultType(op)), lse(resultType(op, 1));
    for (int64_t t = 0; t < tokens; ++t) {
      ArrayRef<double> z = operands[0].floats().slice(t * classes, classes);
      double largest = -INFINITY, sum = 0;
      for (double value : z)
        largest = std::fmax(largest, value);
      for (double value : z)
        sum += std::exp(value - largest);
      double whole = largest + std::log(sum);
      lse.mutableFloats()[t] = whole;
      int64_t label = operands[1].ints()[t];
      if (label == ignore)
        continue;
      if (failed(checkLabel(op, label, classes)))
        return failure();
      loss.mutableFloats()[t] = whole - z[label];
    }
    return SmallVector<Tensor>{loss, lse};
  }
};

struct CrossEntropyGradInterpreter
    : InterpretableOpInterface::ExternalModel<CrossEntropyGradInterpreter, CrossEntropyGradOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    int64_t ignore = cast<CrossEntropyGradOp>(op).getIgnore();
    int64_t classes = operands[1].getShape().back(), tokens = operands[2].getSize();
    Tensor result(resultType(op));
    for (int64_t t = 0; t < tokens; ++t) {
      int64_t label = operands[2].ints()[t];
      if (label == ignore)
        continue;
      if (failed(checkLabel(op, label, classes)))
        return failure();
      double ct = operands[0].floats()[t], lse = operands[3].floats()[t];
      for (int64_t c = 0; c < classes; ++c)
        result.mutableFloats()[t * classes + c] =
            ct * (std::exp(operands[1].floats()[t * classes + c] - lse) - (c == label));
    }
    return SmallVector<Tensor>{result};
  }
};

} // namespace

void registerLossInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<CrossEntropyOp, CrossEntropyInterpreter>(*context);
    attachOnce<CrossEntropyGradOp, CrossEntropyGradInterpreter>(*context);
  });
}

} // namespace par
