// Evaluates elementwise ONNX operators on known tensors: integers exactly and with wrap-around, floats rounded to their
// type. Results above a size limit are left to the step.
#include "par/Phases/Import/Fold.h"

#include <cmath>

namespace par {
namespace {

using llvm::ArrayRef;
using llvm::failure;
using llvm::FailureOr;
using llvm::SmallVector;
using onnx::ElementType;

/// Computes element `at` of the result from the elements at `from` of the inputs.
using ElementFunction =
    llvm::function_ref<void(StaticTensor &result, int64_t at, ArrayRef<StaticTensor> inputs, ArrayRef<int64_t> from)>;

/// Elements of a result from which on an op is left to the step, which computes it in less time than it is read; masks
/// of long sequences are such.
constexpr int64_t mapLimit = int64_t(1) << 20;

FailureOr<StaticTensor> mapElements(ElementType type, ArrayRef<const StaticTensor *> inputs, ElementFunction compute) {
  Shape shape, stored;
  if (inputs.empty())
    return failure();
  for (const StaticTensor *input : inputs) {
    if (!input)
      return failure();
    FailureOr<Shape> joined = broadcastShapes(shape, input->getShape());
    if (failed(joined))
      return failure();
    shape = *joined;
  }
  SmallVector<StaticTensor> stretched;
  stored.assign(shape.size(), 1);
  for (const StaticTensor *input : inputs) {
    stretched.push_back(input->expanded(shape));
    for (size_t i = 0; i < shape.size(); ++i)
      if (stretched.back().getStored()[i] != 1 || shape[i] == 0)
        stored[i] = shape[i];
  }
  if (countElements(stored) > mapLimit)
    return failure();
  StaticTensor result(type, shape, stored);
  // An input that stores as many elements has them at the same places; one that stores a single element has it at 0.
  SmallVector<int64_t> from(inputs.size());
  SmallVector<size_t> alike, others;
  for (size_t i = 0; i < stretched.size(); ++i)
    if (stretched[i].getStored() == ArrayRef(stored))
      alike.push_back(i);
    else if (countElements(stretched[i].getStored()) != 1)
      others.push_back(i);
  int64_t at = 0; // forEachIndex walks storage in order
  auto computeNext = [&] {
    for (size_t i : alike)
      from[i] = at;
    compute(result, at++, stretched, from);
  };
  if (others.empty()) {
    for (int64_t left = countElements(stored); left > 0; --left)
      computeNext();
    return result;
  }
  forEachIndex(stored, [&](ArrayRef<int64_t> index) {
    for (size_t i : others)
      from[i] = stretched[i].position(index);
    computeNext();
  });
  return result;
}

template <double (*function)(double)>
FailureOr<StaticTensor> foldUnary(const FoldContext &context) {
  if (context.inputs.size() != 1 || !context.inputs[0])
    return failure();
  return mapElements(context.inputs[0]->getType(), context.inputs,
                     [](StaticTensor &result, int64_t at, ArrayRef<StaticTensor> in, ArrayRef<int64_t> from) {
                       result.set(at, function(in[0].floatAt(from[0])));
                     });
}

/// Joins two or more inputs of one type, integers exactly and with wrap-around.
template <double (*onFloats)(double, double), int64_t (*onInts)(int64_t, int64_t)>
FailureOr<StaticTensor> foldBinary(const FoldContext &context) {
  if (context.inputs.size() < 1 || !context.inputs[0])
    return failure();
  auto compute = [](StaticTensor &result, int64_t at, ArrayRef<StaticTensor> in, ArrayRef<int64_t> from) {
    result.copy(at, in[0], from[0]);
    for (size_t i = 1; i < in.size(); ++i)
      if (result.isFloat())
        result.set(at, onFloats(result.floatAt(at), in[i].floatAt(from[i])));
      else
        result.setInt(at, onInts(result.intAt(at), in[i].intAt(from[i])));
  };
  return mapElements(context.inputs[0]->getType(), context.inputs, compute);
}

template <bool (*onFloats)(double, double), bool (*onInts)(int64_t, int64_t)>
FailureOr<StaticTensor> foldCompare(const FoldContext &context) {
  if (context.inputs.size() != 2)
    return failure();
  auto compute = [](StaticTensor &result, int64_t at, ArrayRef<StaticTensor> in, ArrayRef<int64_t> from) {
    bool holds = in[0].isFloat() ? onFloats(in[0].floatAt(from[0]), in[1].floatAt(from[1]))
                                 : onInts(in[0].intAt(from[0]), in[1].intAt(from[1]));
    result.setInt(at, holds);
  };
  return mapElements(ElementType::Bool, context.inputs, compute);
}

int64_t wrap(uint64_t value) { return int64_t(value); }
int64_t addInts(int64_t a, int64_t b) { return wrap(uint64_t(a) + uint64_t(b)); }
int64_t subInts(int64_t a, int64_t b) { return wrap(uint64_t(a) - uint64_t(b)); }
int64_t mulInts(int64_t a, int64_t b) { return wrap(uint64_t(a) * uint64_t(b)); }
int64_t divInts(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? subInts(0, a) : a / b; }
int64_t maxInts(int64_t a, int64_t b) { return std::max(a, b); }
int64_t minInts(int64_t a, int64_t b) { return std::min(a, b); }
int64_t andInts(int64_t a, int64_t b) { return a & b; }
int64_t orInts(int64_t a, int64_t b) { return a | b; }
int64_t xorInts(int64_t a, int64_t b) { return a ^ b; }
/// By squaring; wraps as the products of a program do.
int64_t powInts(int64_t a, int64_t b) {
  if (b < 0)
    return a == 1 || (a == -1 && b % 2 == 0) ? 1 : a == -1 ? -1 : 0;
  uint64_t result = 1;
  for (uint64_t square = a; b > 0; b >>= 1, square *= square)
    if (b & 1)
      result *= square;
  return result;
}
double addFloats(double a, double b) { return a + b; }
double subFloats(double a, double b) { return a - b; }
double mulFloats(double a, double b) { return a * b; }
double divFloats(double a, double b) { return a / b; }
double maxFloats(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double minFloats(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double notANumber(double, double) { return std::nan(""); }
template <class T>
bool equal(T a, T b) {
  return a == b;
}
template <class T>
bool less(T a, T b) {
  return a < b;
}
template <class T>
bool lessOrEqual(T a, T b) {
  return a <= b;
}
template <class T>
bool greater(T a, T b) {
  return a > b;
}
template <class T>
bool greaterOrEqual(T a, T b) {
  return a >= b;
}

double negate(double x) { return -x; }
double sign(double x) { return std::isnan(x) ? x : double((x > 0) - (x < 0)); }
double reciprocal(double x) { return 1 / x; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double rectify(double x) { return x <= 0 ? 0 : x; }
double same(double x) { return x; }

/// ONNX's Mod: the sign of the divisor for integers, the dividend's with fmod = 1.
FailureOr<StaticTensor> foldMod(const FoldContext &context) {
  if (context.inputs.size() != 2 || !context.inputs[0])
    return failure();
  bool truncate = context.node.intAttribute("fmod", 0) != 0;
  auto compute = [&](StaticTensor &result, int64_t at, ArrayRef<StaticTensor> in, ArrayRef<int64_t> from) {
    if (result.isFloat())
      return result.set(at, std::fmod(in[0].floatAt(from[0]), in[1].floatAt(from[1])));
    int64_t a = in[0].intAt(from[0]), b = in[1].intAt(from[1]);
    int64_t rest = b == 0 || b == -1 ? 0 : a % b;
    if (!truncate && rest != 0 && (rest < 0) != (b < 0))
      rest += b;
    result.setInt(at, rest);
  };
  return mapElements(context.inputs[0]->getType(), context.inputs, compute);
}

FailureOr<StaticTensor> foldNot(const FoldContext &context) {
  return mapElements(ElementType::Bool, context.inputs,
                     [](StaticTensor &result, int64_t at, ArrayRef<StaticTensor> in, ArrayRef<int64_t> from) {
                       result.setInt(at, in[0].intAt(from[0]) == 0);
                     });
}

FailureOr<StaticTensor> foldIsNan(const FoldContext &context) {
  return mapElements(ElementType::Bool, context.inputs,
                     [](StaticTensor &result, int64_t at, ArrayRef<StaticTensor> in, ArrayRef<int64_t> from) {
                       result.setInt(at, std::isnan(in[0].floatAt(from[0])));
                     });
}

FailureOr<StaticTensor> foldWhere(const FoldContext &context) {
  if (context.inputs.size() != 3 || !context.inputs[1] || !context.inputs[2] ||
      context.inputs[1]->getType() != context.inputs[2]->getType())
    return failure();
  return mapElements(context.inputs[1]->getType(), context.inputs,
                     [](StaticTensor &result, int64_t at, ArrayRef<StaticTensor> in, ArrayRef<int64_t> from) {
                       unsigned chosen = in[0].intAt(from[0]) ? 1 : 2;
                       result.copy(at, in[chosen], from[chosen]);
                     });
}

FailureOr<StaticTensor> convertTo(ElementType type, const StaticTensor *input) {
  if (onnx::byteSize(type) == 0)
    return failure();
  return mapElements(type, {input},
                     [](StaticTensor &result, int64_t at, ArrayRef<StaticTensor> in, ArrayRef<int64_t> from) {
                       result.copy(at, in[0], from[0]);
                     });
}

FailureOr<StaticTensor> foldCast(const FoldContext &context) {
  return convertTo(ElementType(context.node.intAttribute("to", 0)), context.input(0));
}

FailureOr<StaticTensor> foldCastLike(const FoldContext &context) {
  if (!context.input(1))
    return failure();
  return convertTo(context.input(1)->getType(), context.input(0));
}

} // namespace

void addElementwiseFolds(FoldTable &table) {
  table["Add"] = foldBinary<addFloats, addInts>;
  table["Sub"] = foldBinary<subFloats, subInts>;
  table["Mul"] = foldBinary<mulFloats, mulInts>;
  table["Div"] = foldBinary<divFloats, divInts>;
  table["Max"] = foldBinary<maxFloats, maxInts>;
  table["Min"] = foldBinary<minFloats, minInts>;
  table["Pow"] = foldBinary<std::pow, powInts>;
  table["And"] = foldBinary<notANumber, andInts>;
  table["Or"] = foldBinary<notANumber, orInts>;
  table["Xor"] = foldBinary<notANumber, xorInts>;
  table["BitwiseAnd"] = foldBinary<notANumber, andInts>;
  table["BitwiseOr"] = foldBinary<notANumber, orInts>;
  table["Mod"] = foldMod;
  table["Equal"] = foldCompare<equal<double>, equal<int64_t>>;
  table["Less"] = foldCompare<less<double>, less<int64_t>>;
  table["LessOrEqual"] = foldCompare<lessOrEqual<double>, lessOrEqual<int64_t>>;
  table["Greater"] = foldCompare<greater<double>, greater<int64_t>>;
  table["GreaterOrEqual"] = foldCompare<greaterOrEqual<double>, greaterOrEqual<int64_t>>;
  table["Not"] = foldNot;
  table["IsNaN"] = foldIsNan;
  table["Where"] = foldWhere;
  table["Cast"] = foldCast;
  table["CastLike"] = foldCastLike;
  table["Identity"] = foldUnary<same>;
  table["Neg"] = foldUnary<negate>;
  table["Abs"] = foldUnary<std::fabs>;
  table["Sign"] = foldUnary<sign>;
  table["Sqrt"] = foldUnary<std::sqrt>;
  table["Exp"] = foldUnary<std::exp>;
  table["Log"] = foldUnary<std::log>;
  table["Sin"] = foldUnary<std::sin>;
  table["Cos"] = foldUnary<std::cos>;
  table["Tanh"] = foldUnary<std::tanh>;
  table["Erf"] = foldUnary<std::erf>;
  table["Floor"] = foldUnary<std::floor>;
  table["Ceil"] = foldUnary<std::ceil>;
  table["Round"] = foldUnary<std::nearbyint>;
  table["Reciprocal"] = foldUnary<reciprocal>;
  table["Sigmoid"] = foldUnary<sigmoid>;
  table["Relu"] = foldUnary<rectify>;
}

} // namespace par
