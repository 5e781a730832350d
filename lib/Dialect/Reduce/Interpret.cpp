#include "../NeutralElement.h"
#include "../TensorTypes.h"
#include "par/Base/Indexing.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Combine.h"
#include "par/Dialect/Interfaces/Interpretable.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

using Results = FailureOr<SmallVector<Tensor>>;

template <typename T>
void reduceInto(ReduceOp reduce, ArrayRef<T> from, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides,
                MutableArrayRef<T> to) {
  ReduceKind kind = reduce.getKind();
  llvm::fill(to, neutralElement<T>(kind, resultType(reduce).getElementType()));
  int64_t at = 0;
  forEachIndex(shape, strides,
               [&](ArrayRef<int64_t>, int64_t offset) { to[offset] = combine(kind, to[offset], from[at++]); });
}

struct ReduceInterpreter : InterpretableOpInterface::ExternalModel<ReduceInterpreter, ReduceOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto reduce = cast<ReduceOp>(op);
    Tensor result(resultType(op));
    // Strides of the result for each operand dim; 0 for reduced dims.
    SmallVector<int64_t> to = getStrides(result.getShape()), strides;
    for (int64_t dim = 0, next = 0, rank = operands[0].getShape().size(); dim < rank; ++dim)
      strides.push_back(llvm::is_contained(reduce.getDims(), dim) ? 0 : to[next++]);
    if (result.isFloat())
      reduceInto(reduce, operands[0].floats(), operands[0].getShape(), strides, result.mutableFloats());
    else
      reduceInto(reduce, operands[0].ints(), operands[0].getShape(), strides, result.mutableInts());
    if (resultType(op).getElementType().isInteger(1))
      for (int64_t &bit : result.mutableInts())
        bit &= 1;
    return SmallVector<Tensor>{result};
  }
};

struct ArgReduceInterpreter : InterpretableOpInterface::ExternalModel<ArgReduceInterpreter, ArgReduceOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto reduce = cast<ArgReduceOp>(op);
    Along along(operands[0].getShape(), reduce.getDim());
    bool largest = reduce.getKind() == ReduceKind::max;
    Tensor result(resultType(op));
    auto value = [&](int64_t at) {
      double x = operands[0].isFloat() ? operands[0].floats()[at] : static_cast<double>(operands[0].ints()[at]);
      return largest ? x : -x;
    };
    for (int64_t o = 0; o < along.outer; ++o)
      for (int64_t i = 0; i < along.inner; ++i) {
        int64_t best = 0, base = o * along.size * along.inner + i;
        for (int64_t s = 1; s < along.size; ++s)
          if (value(base + s * along.inner) > value(base + best * along.inner))
            best = s;
        result.mutableInts()[o * along.inner + i] = best;
      }
    return SmallVector<Tensor>{result};
  }
};

/// a before b in rising order; NaN is largest.
bool isLess(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

struct SortedPositionInterpreter
    : InterpretableOpInterface::ExternalModel<SortedPositionInterpreter, SortedPositionOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto sorted = cast<SortedPositionOp>(op);
    const Tensor &x = operands[0];
    Along along(x.getShape(), sorted.getDim());
    Tensor result(resultType(op));
    std::vector<int64_t> order(along.size);
    for (int64_t o = 0; o < along.outer; ++o)
      for (int64_t i = 0; i < along.inner; ++i) {
        auto place = [&](int64_t s) { return (o * along.size + s) * along.inner + i; };
        auto before = [&](int64_t a, int64_t b) {
          if (sorted.getDescending())
            std::swap(a, b);
          return x.isFloat() ? isLess(x.floats()[place(a)], x.floats()[place(b)])
                             : x.ints()[place(a)] < x.ints()[place(b)];
        };
        std::iota(order.begin(), order.end(), 0);
        llvm::stable_sort(order, before);
        for (auto [position, s] : llvm::enumerate(order))
          result.mutableInts()[place(s)] = position;
      }
    return SmallVector<Tensor>{result};
  }
};

template <typename T>
void accumulate(CumulativeOp op, ArrayRef<T> from, MutableArrayRef<T> to, ArrayRef<int64_t> shape) {
  Along along(shape, op.getDim());
  for (int64_t o = 0; o < along.outer; ++o)
    for (int64_t i = 0; i < along.inner; ++i) {
      T running = neutralElement<T>(op.getKind(), resultType(op).getElementType());
      for (int64_t s = 0; s < along.size; ++s) {
        int64_t at = (o * along.size + (op.getReverse() ? along.size - 1 - s : s)) * along.inner + i;
        T next = combine(op.getKind(), running, from[at]);
        to[at] = op.getExclusive() ? running : next;
        running = next;
      }
    }
}

struct CumulativeInterpreter : InterpretableOpInterface::ExternalModel<CumulativeInterpreter, CumulativeOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Tensor result(resultType(op));
    if (result.isFloat())
      accumulate<double>(cast<CumulativeOp>(op), operands[0].floats(), result.mutableFloats(), result.getShape());
    else
      accumulate<int64_t>(cast<CumulativeOp>(op), operands[0].ints(), result.mutableInts(), result.getShape());
    return SmallVector<Tensor>{result};
  }
};

} // namespace

void registerReduceInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ReduceOp, ReduceInterpreter>(*context);
    attachOnce<ArgReduceOp, ArgReduceInterpreter>(*context);
    attachOnce<SortedPositionOp, SortedPositionInterpreter>(*context);
    attachOnce<CumulativeOp, CumulativeInterpreter>(*context);
  });
}

} // namespace par
