#include "../TensorTypes.h"
#include "par/Base/Indexing.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Attention.h"
#include "par/Dialect/Interfaces/Interpretable.h"

#include <cmath>

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

using Results = FailureOr<SmallVector<Tensor>>;

/// Row `index` of a tensor [b, h, s, d], counted over its first three dims.
ArrayRef<double> row(const Tensor &tensor, int64_t index) {
  int64_t width = tensor.getShape().back();
  return tensor.floats().slice(index * width, width);
}

double dot(ArrayRef<double> x, ArrayRef<double> y) {
  double sum = 0;
  for (auto [a, b] : llvm::zip(x, y))
    sum += a * b;
  return sum;
}

/// to += factor * x
void add(MutableArrayRef<double> to, double factor, ArrayRef<double> x) {
  for (auto [a, b] : llvm::zip(to, x))
    a += factor * b;
}

MutableArrayRef<double> mutableRow(Tensor &tensor, int64_t index) {
  int64_t width = tensor.getShape().back();
  return tensor.mutableFloats().slice(index * width, width);
}

/// Scores one after the other.
struct Attended {
  template <typename Op>
  Attended(Op op, ArrayRef<Tensor> operands, unsigned query)
      : heads(op), query(operands[query]), key(operands[query + 1]), causal(op.getCausal()) {
    if (op.getMask())
      mask = operands.back();
    scale = op.getScale().convertToDouble();
  }

  int64_t countQueries() const { return heads.batch * heads.heads * heads.queries; }
  /// Keys that query `index`, counted over batch and heads, meets.
  int64_t countKeys(int64_t index) const {
    return causal ? std::min(heads.keys, index % heads.queries + 1) : heads.keys;
  }
  /// The row of key `j` for that query.
  int64_t keyRow(int64_t index, int64_t j) const {
    int64_t head = index / heads.queries, b = head / heads.heads, h = head % heads.heads;
    return (b * heads.groups + h / heads.repeats) * heads.keys + j;
  }
  double score(int64_t index, int64_t j) const {
    double score = scale * dot(row(query, index), row(key, keyRow(index, j)));
    return mask ? score + mask.floats()[maskPlace(index, j)] : score;
  }

  Heads heads;
  double scale;

private:
  int64_t maskPlace(int64_t index, int64_t j) const {
    int64_t head = index / heads.queries;
    int64_t place[] = {head / heads.heads, head % heads.heads, index % heads.queries, j}, offset = 0;
    for (auto [size, at] : llvm::zip(mask.getShape(), place))
      offset = offset * size + (size == 1 ? 0 : at);
    return offset;
  }

  const Tensor &query, &key;
  Tensor mask;
  bool causal;
};

struct AttentionInterpreter : InterpretableOpInterface::ExternalModel<AttentionInterpreter, AttentionOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Attended attended(cast<AttentionOp>(op), operands, 0);
    Tensor result(resultType(op, 0)), lse(resultType(op, 1));
    for (int64_t i = 0; i < attended.countQueries(); ++i) {
      std::vector<double> scores(attended.countKeys(i));
      double largest = -INFINITY, sum = 0;
      for (auto [j, score] : llvm::enumerate(scores))
        largest = std::fmax(largest, score = attended.score(i, j));
      for (double &score : scores)
        sum += score = std::exp(score - largest);
      for (auto [j, power] : llvm::enumerate(scores))
        add(mutableRow(result, i), power / sum, row(operands[2], attended.keyRow(i, j)));
      lse.mutableFloats()[i] = std::log(sum) + largest;
    }
    return SmallVector<Tensor>{result, lse};
  }
};

struct AttentionGradInterpreter : InterpretableOpInterface::ExternalModel<AttentionGradInterpreter, AttentionGradOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Attended attended(cast<AttentionGradOp>(op), operands, 1);
    Tensor query(resultType(op, 0)), key(resultType(op, 1)), value(resultType(op, 2));
    for (int64_t i = 0; i < attended.countQueries(); ++i) {
      ArrayRef<double> ct = row(operands[0], i);
      double whole = dot(ct, row(operands[4], i)), lse = operands[5].floats()[i];
      std::vector<double> powers(attended.countKeys(i));
      double sum = 0;
      for (auto [j, power] : llvm::enumerate(powers))
        sum += power = std::exp(attended.score(i, j) - lse);
      for (auto [j, power] : llvm::enumerate(powers)) {
        int64_t at = attended.keyRow(i, j);
        double p = power / sum;
        double t = attended.scale * p * (dot(ct, row(operands[3], at)) - whole);
        add(mutableRow(query, i), t, row(operands[2], at));
        add(mutableRow(key, at), t, row(operands[1], i));
        add(mutableRow(value, at), p, ct);
      }
    }
    return SmallVector<Tensor>{query, key, value};
  }
};

} // namespace

void registerAttentionInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<AttentionOp, AttentionInterpreter>(*context);
    attachOnce<AttentionGradOp, AttentionGradInterpreter>(*context);
  });
}

} // namespace par
