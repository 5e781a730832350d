#include "Elements.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;

namespace par::kernel_check {

using interp::Tensor;

namespace {

unsigned widthOf(Type type) { return type.getIntOrFloatBitWidth(); }

/// Calls visit with a null pointer of the integer that elements of this width have in memory.
template <typename Visit>
void asWord(unsigned width, Visit visit) {
  if (width == 64)
    return visit(static_cast<int64_t *>(nullptr));
  if (width == 32)
    return visit(static_cast<int32_t *>(nullptr));
  if (width == 16)
    return visit(static_cast<int16_t *>(nullptr));
  visit(static_cast<int8_t *>(nullptr));
}

llvm::APFloat narrow(FloatType type, double value) {
  llvm::APFloat number(value);
  bool inexact;
  number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return number;
}

double widen(llvm::APFloat number) {
  bool inexact;
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return number.convertToDouble();
}

/// Numbers of a float type of at most 32 bits: those of a grid whose step follows from their exponent.
struct Grid {
  int digits, minExponent;
  double largest;

  explicit Grid(FloatType type)
      : digits(llvm::APFloat::semanticsPrecision(type.getFloatSemantics())),
        minExponent(llvm::APFloat::semanticsMinExponent(type.getFloatSemantics())), largest(largestOf(type)) {}

  double round(double value, Rounding rounding, uint64_t &random) const {
    if (value == 0 || !std::isfinite(value))
      return value;
    double step = std::ldexp(1.0, std::max(std::ilogb(value), minExponent) - digits + 1), at = value / step;
    double low = std::floor(at);
    if (low == at)
      return value;
    random = random * 6364136223846793005u + 1442695040888963407u;
    double there = rounding.nearest ? std::nearbyint(at) : low + static_cast<double>(random >> 63);
    double rounded = there * step;
    return std::abs(rounded) <= largest ? rounded : std::copysign(std::numeric_limits<double>::infinity(), rounded);
  }
};

} // namespace

bool isKnownElement(Type type) {
  unsigned width = type.isIntOrFloat() ? widthOf(type) : 0;
  return isa<FloatType>(type) ? width == 16 || width == 32 || width == 64
                              : width == 1 || width == 8 || width == 16 || width == 32 || width == 64;
}

void writeElements(const Tensor &tensor, void *memory) {
  Type type = tensor.getType().getElementType();
  auto *bytes = static_cast<char *>(memory);
  asWord(widthOf(type), [&]<typename Word>(Word *) {
    auto put = [&](int64_t i, Word word) { std::memcpy(bytes + i * sizeof(Word), &word, sizeof(Word)); };
    for (int64_t i = 0; i < tensor.getSize(); ++i)
      if (auto real = dyn_cast<FloatType>(type))
        put(i, static_cast<Word>(narrow(real, tensor.floats()[i]).bitcastToAPInt().getZExtValue()));
      else
        put(i, static_cast<Word>(type.isInteger(1) ? tensor.ints()[i] != 0 : tensor.ints()[i]));
  });
}

Tensor readElements(RankedTensorType tensorType, const void *memory) {
  Type type = tensorType.getElementType();
  Tensor tensor(tensorType);
  const auto *bytes = static_cast<const char *>(memory);
  asWord(widthOf(type), [&]<typename Word>(Word *) {
    for (int64_t i = 0; i < tensor.getSize(); ++i) {
      Word word;
      std::memcpy(&word, bytes + i * sizeof(Word), sizeof(Word));
      if (auto real = dyn_cast<FloatType>(type)) {
        llvm::APInt bits(sizeof(Word) * 8, static_cast<uint64_t>(word), /*isSigned=*/true);
        tensor.mutableFloats()[i] = widen(llvm::APFloat(real.getFloatSemantics(), bits));
      } else {
        tensor.mutableInts()[i] = word;
      }
    }
  });
  return tensor;
}

void roundElements(Tensor &tensor, Rounding rounding) {
  auto type = dyn_cast<FloatType>(tensor.getType().getElementType());
  if (!type || type.getWidth() > 32)
    return;
  Grid grid(type);
  uint64_t random = rounding.seed;
  for (double &value : tensor.mutableFloats())
    value = grid.round(value, rounding, random);
}

double epsilonOf(FloatType type) {
  return std::ldexp(1.0, 1 - static_cast<int>(llvm::APFloat::semanticsPrecision(type.getFloatSemantics())));
}

double largestOf(FloatType type) { return widen(llvm::APFloat::getLargest(type.getFloatSemantics())); }

} // namespace par::kernel_check
