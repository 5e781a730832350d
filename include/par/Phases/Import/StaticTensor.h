// Values that Import knows when compiling: shape arithmetic, position ids, masks.
#pragma once

#include "par/Onnx/Model.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/LogicalResult.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace par {

using Shape = llvm::SmallVector<int64_t, 4>;

/// Product of nonnegative factors, saturated.
int64_t saturatingProduct(int64_t a, int64_t b);

/// Product of the dims, saturated; 1 for a scalar.
int64_t countElements(llvm::ArrayRef<int64_t> shape);

/// Whether a tensor may have this shape: its dims, empty ones counted as 1, multiply to at most 2^46. So products of
/// some of its dims are numbers, too.
bool isWithinMemory(llvm::ArrayRef<int64_t> shape);

/// Rounds towards zero. ONNX leaves numbers outside of i64 and NaN undefined; they give 0, which avoids C++ undefined
/// behaviour.
inline int64_t truncated(double value) { return std::fabs(value) < 9.2e18 ? int64_t(value) : 0; }

/// A tensor of known values. A dim along which nothing changes is stored once (`stored` dim 1 where `shape` has n), so
/// that a causal mask expanded to [512, 1, 1024, 1024] takes the room of [1, 1, 1024, 1024] and its batch dim remains
/// a broadcast. Integers and booleans are held as int64, floats as double, rounded to the element type by every op.
class StaticTensor {
public:
  StaticTensor() = default;
  /// All zero.
  StaticTensor(onnx::ElementType type, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> stored);

  static StaticTensor ofInts(onnx::ElementType type, llvm::ArrayRef<int64_t> shape, std::vector<int64_t> values);
  static StaticTensor ofFloats(onnx::ElementType type, llvm::ArrayRef<int64_t> shape, std::vector<double> values);
  static StaticTensor scalar(onnx::ElementType type, double value);
  /// From little-endian bytes; nothing if the type is not one that can be held.
  static std::optional<StaticTensor> ofBytes(onnx::ElementType type, llvm::ArrayRef<int64_t> shape,
                                             llvm::StringRef bytes);

  onnx::ElementType getType() const { return type; }
  bool isFloat() const { return onnx::isFloat(type); }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  llvm::ArrayRef<int64_t> getStored() const { return stored; }
  int64_t getRank() const { return shape.size(); }
  int64_t getStoredCount() const { return countElements(stored); }
  int64_t getElements() const { return countElements(shape); }

  /// Position in storage of a multi-index of `shape`.
  int64_t position(llvm::ArrayRef<int64_t> index) const;
  int64_t intAt(int64_t position) const { return isFloat() ? truncated(floats[position]) : ints[position]; }
  double floatAt(int64_t position) const { return isFloat() ? floats[position] : double(ints[position]); }
  /// Stores with the conversion that ONNX's Cast does (truncation, wrap-around, rounding to f32, f16 or bf16).
  void set(int64_t position, double value);
  void setInt(int64_t position, int64_t value);
  void copy(int64_t position, const StaticTensor &from, int64_t fromPosition);

  /// All elements in row-major order of `shape`, for small integer tensors such as shapes and axes.
  llvm::SmallVector<int64_t> toInts() const;
  /// The value of a tensor with one distinct element.
  std::optional<double> splat() const;
  /// `i` where element i along `dim` has the value i, and no other dim matters.
  bool isIota(int64_t dim) const;

  /// The same elements in another shape; dims of constant value stay stored once if the grouping of dims allows it.
  StaticTensor reshaped(llvm::ArrayRef<int64_t> newShape) const;
  /// Stretches dims of size 1 and adds leading dims (numpy's rule); `newShape` must be compatible.
  StaticTensor expanded(llvm::ArrayRef<int64_t> newShape) const;
  /// Stores every dim once along which no element changes.
  void compact();

private:
  onnx::ElementType type = onnx::ElementType::Undefined;
  Shape shape, stored;
  std::vector<int64_t> ints;
  std::vector<double> floats;
};

/// Calls `body` with every multi-index of `shape`, in row-major order.
void forEachIndex(llvm::ArrayRef<int64_t> shape, llvm::function_ref<void(llvm::ArrayRef<int64_t>)> body);

/// numpy's broadcast of two shapes; fails where two sizes differ and neither is 1.
llvm::FailureOr<Shape> broadcastShapes(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// Splits both shapes (equal element counts) into the finest runs of dims with equal numbers of elements: (fromBegin,
/// fromEnd, toBegin, toEnd) each. [8, 32, 64] to [256, 64] is {0..2 to 0..1, 2..3 to 1..2}.
struct DimGroup {
  int64_t fromBegin, fromEnd, toBegin, toEnd;
};
llvm::SmallVector<DimGroup> groupDims(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// Largest number of stored elements that folding will touch.
inline constexpr int64_t foldLimit = int64_t(1) << 24;

} // namespace par
