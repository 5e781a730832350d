// Reference semantics of elementwise ops on f64 and i64 values. Integers wrap to their type's width; floats are not
// rounded to narrow types; random bits are Philox4x32-10.
#include "../TensorTypes.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Interpretable.h"

#include <cmath>

using namespace mlir;
using par::interp::Tensor;

namespace par {
namespace {

/// Wraps an integer to its type's width; booleans are 0 or 1.
int64_t wrap(int64_t value, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 1)
    return value & 1;
  if (width >= 64)
    return value;
  return static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - width)) >> (64 - width);
}

template <typename F>
FailureOr<SmallVector<Tensor>> mapFloats(Operation *op, const Tensor &x, F function) {
  Tensor result(resultType(op));
  for (auto [to, from] : llvm::zip(result.mutableFloats(), x.floats()))
    to = function(from);
  return SmallVector<Tensor>{result};
}

double signOf(double x) { return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

#define PAR_UNARY(Name, expression)                                                                                    \
  struct Name##Interpreter : InterpretableOpInterface::ExternalModel<Name##Interpreter, Name##Op> {                    \
    FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {                         \
      return mapFloats(op, operands[0], [](double x) -> double { return expression; });                                \
    }                                                                                                                  \
  };
PAR_UNARY(Exp, std::exp(x))
PAR_UNARY(Log, std::log(x))
PAR_UNARY(Sqrt, std::sqrt(x))
PAR_UNARY(Rsqrt, 1 / std::sqrt(x))
PAR_UNARY(Reciprocal, 1 / x)
PAR_UNARY(Tanh, std::tanh(x))
PAR_UNARY(Erf, std::erf(x))
PAR_UNARY(Sigmoid, sigmoid(x))
PAR_UNARY(Sin, std::sin(x))
PAR_UNARY(Cos, std::cos(x))
PAR_UNARY(Atan, std::atan(x))
PAR_UNARY(Round, std::nearbyint(x))
PAR_UNARY(Floor, std::floor(x))
PAR_UNARY(Ceil, std::ceil(x))
#undef PAR_UNARY

/// A float function and an integer function, by the operand's type.
#define PAR_UNARY_NUMBER(Name, onFloat, onInt)                                                                         \
  struct Name##Interpreter : InterpretableOpInterface::ExternalModel<Name##Interpreter, Name##Op> {                    \
    FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {                         \
      if (operands[0].isFloat())                                                                                       \
        return mapFloats(op, operands[0], [](double x) -> double { return onFloat; });                                 \
      Tensor result(resultType(op));                                                                                   \
      for (auto [to, x] : llvm::zip(result.mutableInts(), operands[0].ints()))                                         \
        to = wrap(onInt, resultType(op).getElementType());                                                             \
      return SmallVector<Tensor>{result};                                                                              \
    }                                                                                                                  \
  };
PAR_UNARY_NUMBER(Negate, -x, -x)
PAR_UNARY_NUMBER(Abs, std::fabs(x), x < 0 ? -x : x)
PAR_UNARY_NUMBER(Sign, signOf(x), (x > 0) - (x < 0))
PAR_UNARY_NUMBER(Not, x, ~x)
#undef PAR_UNARY_NUMBER

#define PAR_TEST(Name, expression)                                                                                     \
  struct Name##Interpreter : InterpretableOpInterface::ExternalModel<Name##Interpreter, Name##Op> {                    \
    FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {                         \
      Tensor result(resultType(op));                                                                                   \
      for (auto [to, x] : llvm::zip(result.mutableInts(), operands[0].floats()))                                       \
        to = expression;                                                                                               \
      return SmallVector<Tensor>{result};                                                                              \
    }                                                                                                                  \
  };
PAR_TEST(IsNan, std::isnan(x))
PAR_TEST(IsFinite, std::isfinite(x))
#undef PAR_TEST

/// NaNs keep their bits, which mark padding.
double larger(double x, double y) { return std::isnan(x) ? x : std::isnan(y) ? y : std::fmax(x, y); }
double smaller(double x, double y) { return std::isnan(x) ? x : std::isnan(y) ? y : std::fmin(x, y); }

#define PAR_BINARY(Name, onFloat, onInt)                                                                               \
  struct Name##Interpreter : InterpretableOpInterface::ExternalModel<Name##Interpreter, Name##Op> {                    \
    FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {                         \
      Tensor result(resultType(op));                                                                                   \
      if (result.isFloat()) {                                                                                          \
        for (auto [to, x, y] : llvm::zip(result.mutableFloats(), operands[0].floats(), operands[1].floats()))          \
          to = onFloat;                                                                                                \
      } else {                                                                                                         \
        for (auto [to, x, y] : llvm::zip(result.mutableInts(), operands[0].ints(), operands[1].ints()))                \
          to = wrap(onInt, resultType(op).getElementType());                                                           \
      }                                                                                                                \
      return SmallVector<Tensor>{result};                                                                              \
    }                                                                                                                  \
  };
PAR_BINARY(Add, x + y, x + y)
PAR_BINARY(Subtract, x - y, x - y)
PAR_BINARY(Multiply, x *y, x *y)
PAR_BINARY(Divide, x / y, y == 0 ? 0 : y == -1 ? -x : x / y)
PAR_BINARY(Remainder, std::fmod(x, y), y == 0 || y == -1 ? 0 : x % y)
PAR_BINARY(Maximum, larger(x, y), std::max<int64_t>(x, y))
PAR_BINARY(Minimum, smaller(x, y), std::min<int64_t>(x, y))
PAR_BINARY(Power, std::pow(x, y), x)
PAR_BINARY(And, x, x &y)
PAR_BINARY(Or, x, x | y)
PAR_BINARY(Xor, x, x ^ y)
#undef PAR_BINARY

/// The bits that the type has; booleans have one.
uint64_t bitsOf(int64_t value, unsigned width) {
  return width >= 64 ? value : static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
}

template <typename Op, bool left>
struct ShiftInterpreter : InterpretableOpInterface::ExternalModel<ShiftInterpreter<Op, left>, Op> {
  FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Tensor result(resultType(op));
    Type element = resultType(op).getElementType();
    unsigned width = element.getIntOrFloatBitWidth();
    for (auto [to, x, y] : llvm::zip(result.mutableInts(), operands[0].ints(), operands[1].ints())) {
      uint64_t value = bitsOf(x, width), by = bitsOf(y, width);
      to = by >= width ? 0 : wrap(static_cast<int64_t>(left ? value << by : value >> by), element);
    }
    return SmallVector<Tensor>{result};
  }
};
using ShiftLeftInterpreter = ShiftInterpreter<ShiftLeftOp, true>;
using ShiftRightInterpreter = ShiftInterpreter<ShiftRightOp, false>;

/// Philox4x32-10 with the counter in the low half of its block.
uint64_t philox(uint64_t key, uint64_t counter) {
  uint32_t k0 = key, k1 = key >> 32, c0 = counter, c1 = counter >> 32, c2 = 0, c3 = 0;
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    uint64_t first = uint64_t(0xD2511F53u) * c0, second = uint64_t(0xCD9E8D57u) * c2;
    c0 = uint32_t(second >> 32) ^ c1 ^ k0;
    c2 = uint32_t(first >> 32) ^ c3 ^ k1;
    c1 = uint32_t(second);
    c3 = uint32_t(first);
  }
  return c0 | uint64_t(c1) << 32;
}

struct RandomBitsInterpreter : InterpretableOpInterface::ExternalModel<RandomBitsInterpreter, RandomBitsOp> {
  FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Tensor result(resultType(op));
    for (auto [to, key, counter] : llvm::zip(result.mutableInts(), operands[0].ints(), operands[1].ints()))
      to = static_cast<int64_t>(philox(key, counter));
    return SmallVector<Tensor>{result};
  }
};

template <typename T>
bool compare(Predicate predicate, T x, T y) {
  switch (predicate) {
  case Predicate::eq:
    return x == y;
  case Predicate::ne:
    return x != y;
  case Predicate::lt:
    return x < y;
  case Predicate::le:
    return x <= y;
  case Predicate::gt:
    return x > y;
  case Predicate::ge:
    return x >= y;
  }
  return false;
}

struct CompareInterpreter : InterpretableOpInterface::ExternalModel<CompareInterpreter, CompareOp> {
  FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Predicate predicate = cast<CompareOp>(op).getPredicate();
    Tensor result(resultType(op));
    auto to = result.mutableInts();
    for (int64_t i = 0, end = result.getSize(); i < end; ++i)
      to[i] = operands[0].isFloat() ? compare(predicate, operands[0].floats()[i], operands[1].floats()[i])
                                    : compare(predicate, operands[0].ints()[i], operands[1].ints()[i]);
    return SmallVector<Tensor>{result};
  }
};

struct SelectInterpreter : InterpretableOpInterface::ExternalModel<SelectInterpreter, SelectOp> {
  FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Tensor result(resultType(op));
    ArrayRef<int64_t> condition = operands[0].ints();
    if (result.isFloat()) {
      for (auto [to, c, x, y] :
           llvm::zip(result.mutableFloats(), condition, operands[1].floats(), operands[2].floats()))
        to = c ? x : y;
    } else {
      for (auto [to, c, x, y] : llvm::zip(result.mutableInts(), condition, operands[1].ints(), operands[2].ints()))
        to = c ? x : y;
    }
    return SmallVector<Tensor>{result};
  }
};

APFloat asFloat(double value, FloatType type) {
  bool inexact = false;
  APFloat result(value);
  result.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  return result;
}

struct BitCastInterpreter : InterpretableOpInterface::ExternalModel<BitCastInterpreter, BitCastOp> {
  FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Tensor result(resultType(op));
    const Tensor &from = operands[0];
    auto own = dyn_cast<FloatType>(cast<BitCastOp>(op).getOperand().getType().getElementType());
    auto other = dyn_cast<FloatType>(resultType(op).getElementType());
    unsigned width = resultType(op).getElementTypeBitWidth();
    for (int64_t i = 0, end = result.getSize(); i < end; ++i) {
      APInt bits = own ? asFloat(from.floats()[i], own).bitcastToAPInt() : APInt(width, bitsOf(from.ints()[i], width));
      if (!other) {
        result.mutableInts()[i] = bits.getSExtValue();
        continue;
      }
      APFloat value(other.getFloatSemantics(), bits);
      bool inexact = false;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
      result.mutableFloats()[i] = value.convertToDouble();
    }
    return SmallVector<Tensor>{result};
  }
};

/// Floats stay f64 in every type: the interpreter does not round to narrow types.
struct ConvertInterpreter : InterpretableOpInterface::ExternalModel<ConvertInterpreter, ConvertOp> {
  FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {
    Tensor result(resultType(op));
    const Tensor &from = operands[0];
    Type element = resultType(op).getElementType();
    bool boolean = element.isInteger(1);
    for (int64_t i = 0, end = result.getSize(); i < end; ++i) {
      if (result.isFloat())
        continue;
      if (from.isFloat()) {
        double x = from.floats()[i];
        result.mutableInts()[i] = boolean ? x != 0 : std::isfinite(x) ? wrap(static_cast<int64_t>(x), element) : 0;
      } else {
        result.mutableInts()[i] = boolean ? from.ints()[i] != 0 : wrap(from.ints()[i], element);
      }
    }
    if (result.isFloat() && from.isFloat())
      return SmallVector<Tensor>{from.withType(resultType(op))};
    if (result.isFloat())
      llvm::copy(from.ints(), result.mutableFloats().begin());
    return SmallVector<Tensor>{result};
  }
};

constexpr double inverseSqrt2 = 0.70710678118654752440, inverseSqrt2Pi = 0.39894228040143267794,
                 sqrt2OverPi = 0.79788456080286535588, geluCubic = 0.044715;

double gelu(double x, bool tanh) {
  if (!tanh)
    return 0.5 * x * (1 + std::erf(x * inverseSqrt2));
  return 0.5 * x * (1 + std::tanh(sqrt2OverPi * (x + geluCubic * x * x * x)));
}

double geluDerivative(double x, bool tanh) {
  if (!tanh)
    return 0.5 * (1 + std::erf(x * inverseSqrt2)) + x * inverseSqrt2Pi * std::exp(-0.5 * x * x);
  double t = std::tanh(sqrt2OverPi * (x + geluCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt2OverPi * (1 + 3 * geluCubic * x * x);
}

struct GeluInterpreter : InterpretableOpInterface::ExternalModel<GeluInterpreter, GeluOp> {
  FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {
    bool tanh = cast<GeluOp>(op).getTanh();
    return mapFloats(op, operands[0], [&](double x) { return gelu(x, tanh); });
  }
};

struct GeluGradInterpreter : InterpretableOpInterface::ExternalModel<GeluGradInterpreter, GeluGradOp> {
  FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {
    bool tanh = cast<GeluGradOp>(op).getTanh();
    Tensor result(resultType(op));
    for (auto [to, ct, x] : llvm::zip(result.mutableFloats(), operands[0].floats(), operands[1].floats()))
      to = ct * geluDerivative(x, tanh);
    return SmallVector<Tensor>{result};
  }
};

/// Markers are identities; a cotangent is its seed.
template <typename Op, unsigned index>
struct PassThrough : InterpretableOpInterface::ExternalModel<PassThrough<Op, index>, Op> {
  FailureOr<SmallVector<Tensor>> interpret(Operation *, ArrayRef<Tensor> operands) const {
    return SmallVector<Tensor>{operands[index]};
  }
};

} // namespace

void registerElementwiseInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
#define PAR_ATTACH(Name) attachOnce<Name##Op, Name##Interpreter>(*context)
    PAR_ATTACH(Exp);
    PAR_ATTACH(Log);
    PAR_ATTACH(Sqrt);
    PAR_ATTACH(Rsqrt);
    PAR_ATTACH(Reciprocal);
    PAR_ATTACH(Tanh);
    PAR_ATTACH(Erf);
    PAR_ATTACH(Sigmoid);
    PAR_ATTACH(Sin);
    PAR_ATTACH(Cos);
    PAR_ATTACH(Atan);
    PAR_ATTACH(Round);
    PAR_ATTACH(Floor);
    PAR_ATTACH(Ceil);
    PAR_ATTACH(Negate);
    PAR_ATTACH(Abs);
    PAR_ATTACH(Sign);
    PAR_ATTACH(Not);
    PAR_ATTACH(IsNan);
    PAR_ATTACH(IsFinite);
    PAR_ATTACH(Add);
    PAR_ATTACH(Subtract);
    PAR_ATTACH(Multiply);
    PAR_ATTACH(Divide);
    PAR_ATTACH(Remainder);
    PAR_ATTACH(Maximum);
    PAR_ATTACH(Minimum);
    PAR_ATTACH(Power);
    PAR_ATTACH(ShiftLeft);
    PAR_ATTACH(ShiftRight);
    PAR_ATTACH(RandomBits);
    PAR_ATTACH(BitCast);
    PAR_ATTACH(And);
    PAR_ATTACH(Or);
    PAR_ATTACH(Xor);
    PAR_ATTACH(Compare);
    PAR_ATTACH(Select);
    PAR_ATTACH(Convert);
    PAR_ATTACH(Gelu);
    PAR_ATTACH(GeluGrad);
#undef PAR_ATTACH
    attachOnce<ConstrainOp, PassThrough<ConstrainOp, 0>>(*context);
    attachOnce<GradientOp, PassThrough<GradientOp, 0>>(*context);
    attachOnce<CollectOp, PassThrough<CollectOp, 0>>(*context);
    attachOnce<CotangentOp, PassThrough<CotangentOp, 1>>(*context);
  });
}

} // namespace par
