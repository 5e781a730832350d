// The updates of optimizers on numbers, in f64: elementwise, of all of a weight or of some rows, and muon's matmuls.
#include "NewtonSchulz.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Interpretable.h"

#include <cmath>

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

using Results = FailureOr<SmallVector<Tensor>>;

/// Visits the elements that an update changes: their places in the weight and in the gradient.
template <typename Op, typename Visit>
LogicalResult visitUpdated(Op op, ArrayRef<Tensor> operands, Visit visit) {
  int64_t many = operands[1].getSize();
  if (!op.getRows()) {
    for (int64_t i = 0; i < many; ++i)
      visit(i, i);
    return success();
  }
  ArrayRef<int64_t> shape = operands[0].getShape();
  int64_t width = operands[0].getSize() / std::max<int64_t>(shape.front(), 1);
  for (auto [place, row] : llvm::enumerate(operands.back().ints())) {
    if (row >= shape.front())
      return op.emitError() << "row " << row << " is out of range [0, " << shape.front() << ")";
    for (int64_t i = 0; row >= 0 && i < width; ++i)
      visit(row * width + i, place * width + i);
  }
  return success();
}

struct SgdInterpreter : InterpretableOpInterface::ExternalModel<SgdInterpreter, SgdOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto update = cast<SgdOp>(op);
    double decay = update.getWeightDecay().convertToDouble(), lr = operands[2].floats()[0];
    Tensor weight = operands[0];
    auto w = weight.mutableFloats();
    auto g = operands[1].floats();
    if (failed(visitUpdated(update, operands, [&](int64_t i, int64_t k) { w[i] -= lr * (g[k] + decay * w[i]); })))
      return failure();
    return SmallVector<Tensor>{weight};
  }
};

struct MomentumInterpreter : InterpretableOpInterface::ExternalModel<MomentumInterpreter, MomentumOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto update = cast<MomentumOp>(op);
    double decay = update.getWeightDecay().convertToDouble(), mu = update.getMomentum().convertToDouble();
    double lr = operands[4].floats()[0];
    Tensor weight = operands[0], velocity = operands[2];
    auto w = weight.mutableFloats(), v = velocity.mutableFloats();
    auto g = operands[1].floats();
    auto change = [&](int64_t i, int64_t k) {
      double d = g[k] + decay * w[i];
      v[i] = mu * v[i] + d;
      w[i] -= lr * (update.getNesterov() ? d + mu * v[i] : v[i]);
    };
    if (failed(visitUpdated(update, operands, change)))
      return failure();
    return SmallVector<Tensor>{weight, velocity};
  }
};

struct AdamwInterpreter : InterpretableOpInterface::ExternalModel<AdamwInterpreter, AdamwOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto update = cast<AdamwOp>(op);
    double decay = update.getWeightDecay().convertToDouble(), beta1 = update.getBeta1().convertToDouble(),
           beta2 = update.getBeta2().convertToDouble(), epsilon = update.getEpsilon().convertToDouble();
    double step = operands[4].floats()[0], lr = operands[5].floats()[0];
    double correction1 = 1 - std::pow(beta1, step), correction2 = std::sqrt(1 - std::pow(beta2, step));
    Tensor weight = operands[0], first = operands[2], second = operands[3];
    auto w = weight.mutableFloats(), m = first.mutableFloats(), v = second.mutableFloats();
    auto g = operands[1].floats();
    auto change = [&](int64_t i, int64_t k) {
      w[i] *= 1 - lr * decay;
      m[i] = beta1 * m[i] + (1 - beta1) * g[k];
      v[i] = beta2 * v[i] + (1 - beta2) * g[k] * g[k];
      w[i] -= lr / correction1 * m[i] / (std::sqrt(v[i]) / correction2 + epsilon);
    };
    if (failed(visitUpdated(update, operands, change)))
      return failure();
    return SmallVector<Tensor>{weight, first, second};
  }
};

struct LionInterpreter : InterpretableOpInterface::ExternalModel<LionInterpreter, LionOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto update = cast<LionOp>(op);
    double decay = update.getWeightDecay().convertToDouble(), lr = operands[3].floats()[0];
    double beta1 = update.getBeta1().convertToDouble(), beta2 = update.getBeta2().convertToDouble();
    Tensor weight = operands[0], momentum = operands[2];
    auto w = weight.mutableFloats(), m = momentum.mutableFloats();
    auto g = operands[1].floats();
    auto change = [&](int64_t i, int64_t k) {
      double c = beta1 * m[i] + (1 - beta1) * g[k];
      double direction = std::isnan(c) ? c : (c > 0) - (c < 0); // par.sign keeps NaN, too
      w[i] -= lr * (direction + decay * w[i]);
      m[i] = beta2 * m[i] + (1 - beta2) * g[k];
    };
    if (failed(visitUpdated(update, operands, change)))
      return failure();
    return SmallVector<Tensor>{weight, momentum};
  }
};

/// A matrix of at least as many columns as rows.
struct Matrix {
  int64_t rows, columns;
  std::vector<double> at = std::vector<double>(rows * columns);

  Matrix transposed() const {
    Matrix other{columns, rows};
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        other.at[j * rows + i] = at[i * columns + j];
    return other;
  }
  Matrix times(const Matrix &other) const {
    Matrix product{rows, other.columns};
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < columns; ++k)
        for (int64_t j = 0; j < other.columns; ++j)
          product.at[i * other.columns + j] += at[i * columns + k] * other.at[k * other.columns + j];
    return product;
  }
  /// a this + b other
  Matrix mixed(double a, double b, const Matrix &other) const {
    Matrix sum = *this;
    for (size_t i = 0; i < at.size(); ++i)
      sum.at[i] = a * at[i] + b * other.at[i];
    return sum;
  }
};

/// Newton and Schulz's iteration with Muon's coefficients.
Matrix orthogonalize(Matrix x) {
  double squares = 0;
  for (double element : x.at)
    squares += element * element;
  double norm = std::sqrt(squares);
  norm = norm < muon::minNorm ? muon::minNorm : norm; // NaN stays
  for (double &element : x.at)
    element /= norm;
  for (int64_t step = 0; step < muon::steps; ++step) {
    Matrix gram = x.times(x.transposed());
    Matrix change = gram.mixed(muon::second, muon::third, gram.times(gram));
    x = x.mixed(muon::first, 1, change.times(x));
  }
  return x;
}

/// A setting as a constant of the weight's type has it: matmuls are expanded into ops before kernels are formed.
double constantOf(double setting, Value weight) {
  return getElementTypeOrSelf(weight.getType()).isF32() ? static_cast<double>(static_cast<float>(setting)) : setting;
}

struct MuonInterpreter : InterpretableOpInterface::ExternalModel<MuonInterpreter, MuonOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto update = cast<MuonOp>(op);
    double momentum = update.getMomentum().convertToDouble(), lr = operands[3].floats()[0];
    double mu = constantOf(momentum, update.getWeight()), rest = constantOf(1 - momentum, update.getWeight());
    double decay = constantOf(update.getWeightDecay().convertToDouble(), update.getWeight());
    Tensor weight = operands[0], buffer = operands[2];
    auto w = weight.mutableFloats(), b = buffer.mutableFloats();
    auto g = operands[1].floats();
    Matrix direction{weight.getShape()[0], weight.getShape()[1]};
    for (size_t i = 0; i < direction.at.size(); ++i) {
      b[i] = mu * b[i] + rest * g[i];
      direction.at[i] = update.getNesterov() ? mu * b[i] + rest * g[i] : b[i];
    }
    bool tall = direction.rows > direction.columns;
    double size = lr * muon::scaleOf(direction.rows, direction.columns);
    direction = tall ? orthogonalize(direction.transposed()).transposed() : orthogonalize(direction);
    for (size_t i = 0; i < direction.at.size(); ++i)
      w[i] = w[i] * (1 - lr * decay) - size * direction.at[i];
    return SmallVector<Tensor>{weight, buffer};
  }
};

} // namespace

void registerOptimizerInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SgdOp, SgdInterpreter>(*context);
    attachOnce<MomentumOp, MomentumInterpreter>(*context);
    attachOnce<AdamwOp, AdamwInterpreter>(*context);
    attachOnce<LionOp, LionInterpreter>(*context);
    attachOnce<MuonOp, MuonInterpreter>(*context);
  });
}

} // namespace par
