#include "../TensorTypes.h"
#include "par/Base/Indexing.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Interpretable.h"

#include <cmath>

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

using Results = FailureOr<SmallVector<Tensor>>;

struct SoftmaxInterpreter : InterpretableOpInterface::ExternalModel<SoftmaxInterpreter, SoftmaxOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto softmax = cast<SoftmaxOp>(op);
    Along along(operands[0].getShape(), softmax.getDim());
    Tensor result(resultType(op));
    ArrayRef<double> x = operands[0].floats();
    auto y = result.mutableFloats();
    for (int64_t o = 0; o < along.outer; ++o)
      for (int64_t i = 0; i < along.inner; ++i) {
        auto at = [&](int64_t s) { return (o * along.size + s) * along.inner + i; };
        double largest = -INFINITY, sum = 0;
        for (int64_t s = 0; s < along.size; ++s)
          largest = std::fmax(largest, x[at(s)]);
        for (int64_t s = 0; s < along.size; ++s)
          sum += y[at(s)] = std::exp(x[at(s)] - largest);
        for (int64_t s = 0; s < along.size; ++s)
          y[at(s)] = softmax.getSafe() && std::isnan(sum) ? 0 : y[at(s)] / sum;
      }
    return SmallVector<Tensor>{result};
  }
};

struct SoftmaxGradInterpreter : InterpretableOpInterface::ExternalModel<SoftmaxGradInterpreter, SoftmaxGradOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Along along(operands[0].getShape(), cast<SoftmaxGradOp>(op).getDim());
    Tensor result(resultType(op));
    ArrayRef<double> ct = operands[0].floats(), y = operands[1].floats();
    auto to = result.mutableFloats();
    for (int64_t o = 0; o < along.outer; ++o)
      for (int64_t i = 0; i < along.inner; ++i) {
        auto at = [&](int64_t s) { return (o * along.size + s) * along.inner + i; };
        double sum = 0;
        for (int64_t s = 0; s < along.size; ++s)
          sum += ct[at(s)] * y[at(s)];
        for (int64_t s = 0; s < along.size; ++s)
          to[at(s)] = y[at(s)] * (ct[at(s)] - sum);
      }
    return SmallVector<Tensor>{result};
  }
};

struct LayerNormInterpreter : InterpretableOpInterface::ExternalModel<LayerNormInterpreter, LayerNormOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    // The same value as the constant of the decomposition.
    double epsilon = cast<LayerNormOp>(op).getEpsilon().convertToDouble();
    if (!operands[0].getType().getElementType().isF64())
      epsilon = static_cast<float>(epsilon);
    int64_t width = operands[1].getSize(), rows = operands[0].getSize() / width;
    Tensor y(resultType(op)), mean(resultType(op, 1)), rstd(resultType(op, 2));
    ArrayRef<double> scale = operands[1].floats(), bias = operands[2].floats();
    for (int64_t row = 0; row < rows; ++row) {
      ArrayRef<double> x = operands[0].floats().slice(row * width, width);
      double sum = 0, square = 0;
      for (double value : x)
        sum += value;
      double m = sum / width;
      for (double value : x)
        square += (value - m) * (value - m);
      double r = 1 / std::sqrt(square / width + epsilon);
      mean.mutableFloats()[row] = m;
      rstd.mutableFloats()[row] = r;
      for (int64_t i = 0; i < width; ++i)
        y.mutableFloats()[row * width + i] = (x[i] - m) * r * scale[i] + bias[i];
    }
    return SmallVector<Tensor>{y, mean, rstd};
  }
};

struct LayerNormGradInterpreter : InterpretableOpInterface::ExternalModel<LayerNormGradInterpreter, LayerNormGradOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    int64_t width = operands[2].getSize(), rows = operands[0].getSize() / width;
    Tensor result(resultType(op));
    ArrayRef<double> ct = operands[0].floats(), x = operands[1].floats(), scale = operands[2].floats();
    for (int64_t row = 0; row < rows; ++row) {
      double m = operands[3].floats()[row], r = operands[4].floats()[row], sum = 0, dot = 0;
      for (int64_t i = 0; i < width; ++i) {
        double g = ct[row * width + i] * scale[i];
        sum += g;
        dot += g * (x[row * width + i] - m) * r;
      }
      for (int64_t i = 0; i < width; ++i) {
        double g = ct[row * width + i] * scale[i], n = (x[row * width + i] - m) * r;
        result.mutableFloats()[row * width + i] = r * (g - sum / width - n * dot / width);
      }
    }
    return SmallVector<Tensor>{result};
  }
};

} // namespace

void registerNormInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SoftmaxOp, SoftmaxInterpreter>(*context);
    attachOnce<SoftmaxGradOp, SoftmaxGradInterpreter>(*context);
    attachOnce<LayerNormOp, LayerNormInterpreter>(*context);
    attachOnce<LayerNormGradOp, LayerNormGradInterpreter>(*context);
  });
}

} // namespace par
