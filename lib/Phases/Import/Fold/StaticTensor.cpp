// Tensors whose elements are known when compiling. A repeated element or a sequence along one dim is stored once;
// integers wrap and floats round to their ONNX type.
#include "par/Phases/Import/StaticTensor.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace par {

using llvm::ArrayRef;
using onnx::ElementType;

int64_t saturatingProduct(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

int64_t countElements(ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return 0;
  int64_t count = 1;
  for (int64_t dim : shape)
    count = saturatingProduct(count, dim);
  return count;
}

bool isWithinMemory(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    count = saturatingProduct(count, std::max<int64_t>(dim, 1));
  return count <= int64_t(1) << 46;
}

void forEachIndex(ArrayRef<int64_t> shape, llvm::function_ref<void(ArrayRef<int64_t>)> body) {
  if (countElements(shape) == 0)
    return;
  Shape index(shape.size(), 0);
  while (true) {
    body(index);
    int64_t dim = int64_t(shape.size()) - 1;
    for (; dim >= 0; --dim) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
    if (dim < 0)
      return;
  }
}

llvm::FailureOr<Shape> broadcastShapes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  size_t rank = std::max(a.size(), b.size());
  Shape result(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return llvm::failure();
    result[rank - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

llvm::SmallVector<DimGroup> groupDims(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  llvm::SmallVector<DimGroup> groups;
  int64_t i = 0, j = 0, fromRank = from.size(), toRank = to.size();
  while (i < fromRank || j < toRank) {
    DimGroup group{i, i, j, j};
    int64_t a = i < fromRank ? from[i++] : 1, b = j < toRank ? to[j++] : 1;
    while (a != b) {
      if (a < b && i < fromRank)
        a = saturatingProduct(a, from[i++]);
      else if (b < a && j < toRank)
        b = saturatingProduct(b, to[j++]);
      else
        break; // element counts differ or are zero; the caller has checked counts
    }
    group.fromEnd = i;
    group.toEnd = j;
    groups.push_back(group);
  }
  return groups;
}

/// Rounds to the nearest value of a float type of the model.
static double roundTo(ElementType type, double value) {
  if (type == ElementType::F32)
    return float(value);
  if (type != ElementType::F16 && type != ElementType::BF16)
    return value;
  llvm::APFloat number(value);
  bool inexact = false;
  number.convert(type == ElementType::F16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat(),
                 llvm::APFloat::rmNearestTiesToEven, &inexact);
  return number.convertToDouble();
}

static int64_t wrapTo(ElementType type, int64_t value) {
  switch (type) {
  case ElementType::Bool:
    return value != 0;
  case ElementType::I8:
    return int8_t(value);
  case ElementType::U8:
    return uint8_t(value);
  case ElementType::I16:
    return int16_t(value);
  case ElementType::U16:
    return uint16_t(value);
  case ElementType::I32:
    return int32_t(value);
  case ElementType::U32:
    return uint32_t(value);
  default:
    return value;
  }
}

StaticTensor::StaticTensor(ElementType type, ArrayRef<int64_t> shape, ArrayRef<int64_t> stored)
    : type(type), shape(shape), stored(stored) {
  if (isFloat())
    floats.resize(countElements(stored));
  else
    ints.resize(countElements(stored));
}

StaticTensor StaticTensor::ofInts(ElementType type, ArrayRef<int64_t> shape, std::vector<int64_t> values) {
  StaticTensor result(type, shape, shape);
  for (size_t i = 0; i < values.size(); ++i)
    result.setInt(i, values[i]);
  return result;
}

StaticTensor StaticTensor::ofFloats(ElementType type, ArrayRef<int64_t> shape, std::vector<double> values) {
  StaticTensor result(type, shape, shape);
  for (size_t i = 0; i < values.size(); ++i)
    result.set(i, values[i]);
  return result;
}

StaticTensor StaticTensor::scalar(ElementType type, double value) {
  StaticTensor result(type, {}, {});
  result.set(0, value);
  return result;
}

template <class T>
static void readAs(StaticTensor &tensor, llvm::StringRef bytes) {
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    if constexpr (std::is_floating_point_v<T>)
      tensor.set(i, value);
    else
      tensor.setInt(i, int64_t(value));
  }
}

static void readHalves(StaticTensor &tensor, llvm::StringRef bytes, const llvm::fltSemantics &semantics) {
  for (size_t i = 0; i < bytes.size() / 2; ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    tensor.set(i, llvm::APFloat(semantics, llvm::APInt(16, bits)).convertToDouble());
  }
}

std::optional<StaticTensor> StaticTensor::ofBytes(ElementType type, ArrayRef<int64_t> shape, llvm::StringRef bytes) {
  if (onnx::byteSize(type) == 0)
    return std::nullopt;
  StaticTensor result(type, shape, shape);
  switch (type) {
  case ElementType::F32:
    readAs<float>(result, bytes);
    break;
  case ElementType::F64:
    readAs<double>(result, bytes);
    break;
  case ElementType::F16:
    readHalves(result, bytes, llvm::APFloat::IEEEhalf());
    break;
  case ElementType::BF16:
    readHalves(result, bytes, llvm::APFloat::BFloat());
    break;
  case ElementType::I64:
  case ElementType::U64:
    readAs<int64_t>(result, bytes);
    break;
  case ElementType::I32:
    readAs<int32_t>(result, bytes);
    break;
  case ElementType::U32:
    readAs<uint32_t>(result, bytes);
    break;
  case ElementType::I16:
    readAs<int16_t>(result, bytes);
    break;
  case ElementType::U16:
    readAs<uint16_t>(result, bytes);
    break;
  case ElementType::I8:
    readAs<int8_t>(result, bytes);
    break;
  case ElementType::U8:
  case ElementType::Bool:
    readAs<uint8_t>(result, bytes);
    break;
  default:
    return std::nullopt;
  }
  result.compact();
  return result;
}

int64_t StaticTensor::position(ArrayRef<int64_t> index) const {
  int64_t position = 0;
  for (size_t dim = 0; dim < stored.size(); ++dim)
    position = position * stored[dim] + (stored[dim] == 1 ? 0 : index[dim]);
  return position;
}

void StaticTensor::set(int64_t position, double value) {
  if (isFloat())
    floats[position] = roundTo(type, value);
  else if (type == ElementType::Bool)
    ints[position] = value != 0;
  else
    ints[position] = wrapTo(type, truncated(value));
}

void StaticTensor::setInt(int64_t position, int64_t value) {
  if (isFloat())
    floats[position] = roundTo(type, double(value));
  else
    ints[position] = wrapTo(type, value);
}

void StaticTensor::copy(int64_t position, const StaticTensor &from, int64_t fromPosition) {
  if (from.isFloat())
    set(position, from.floats[fromPosition]);
  else
    setInt(position, from.ints[fromPosition]);
}

llvm::SmallVector<int64_t> StaticTensor::toInts() const {
  llvm::SmallVector<int64_t> result;
  forEachIndex(shape, [&](ArrayRef<int64_t> index) { result.push_back(intAt(position(index))); });
  return result;
}

std::optional<double> StaticTensor::splat() const {
  if (getStoredCount() == 0)
    return std::nullopt;
  for (int64_t i = 1, e = getStoredCount(); i < e; ++i)
    if (isFloat() ? std::memcmp(&floats[i], &floats[0], sizeof(double)) != 0 : ints[i] != ints[0])
      return std::nullopt;
  return floatAt(0);
}

bool StaticTensor::isIota(int64_t dim) const {
  if (isFloat() || getStoredCount() != shape[dim] || (stored[dim] == 1 && shape[dim] != 1))
    return false;
  for (int64_t i = 0; i < shape[dim]; ++i)
    if (ints[i] != i)
      return false;
  return true;
}

StaticTensor StaticTensor::expanded(ArrayRef<int64_t> newShape) const {
  if (countElements(newShape) == 0)
    return StaticTensor(type, newShape, newShape);
  StaticTensor result = *this;
  result.shape = Shape(newShape);
  result.stored.insert(result.stored.begin(), newShape.size() - shape.size(), 1);
  return result;
}

StaticTensor StaticTensor::reshaped(ArrayRef<int64_t> newShape) const {
  if (countElements(shape) == 0)
    return StaticTensor(type, newShape, newShape);
  llvm::SmallVector<DimGroup> groups = groupDims(shape, newShape);
  Shape newStored(newShape);
  for (const DimGroup &group : groups) {
    bool constant = true;
    for (int64_t i = group.fromBegin; i < group.fromEnd; ++i)
      constant &= stored[i] == 1;
    for (int64_t j = group.toBegin; j < group.toEnd && constant; ++j)
      newStored[j] = 1;
  }
  StaticTensor result(type, newShape, newStored);
  Shape from(shape.size());
  forEachIndex(newStored, [&](ArrayRef<int64_t> index) {
    for (const DimGroup &group : groups) {
      int64_t linear = 0;
      for (int64_t j = group.toBegin; j < group.toEnd; ++j)
        linear = linear * newShape[j] + index[j];
      for (int64_t i = group.fromEnd; i-- > group.fromBegin;) {
        from[i] = linear % shape[i];
        linear /= shape[i];
      }
    }
    result.copy(result.position(index), *this, position(from));
  });
  return result;
}

void StaticTensor::compact() {
  for (size_t dim = 0; dim < stored.size(); ++dim) {
    if (stored[dim] <= 1)
      continue;
    int64_t inner = 1;
    for (size_t i = dim + 1; i < stored.size(); ++i)
      inner *= stored[i];
    int64_t size = stored[dim], total = getStoredCount();
    auto sameAsBefore = [&](int64_t i) {
      return isFloat() ? std::memcmp(&floats[i], &floats[i - inner], sizeof(double)) == 0 : ints[i] == ints[i - inner];
    };
    bool constant = true;
    for (int64_t i = 0; i < total && constant; ++i)
      constant = (i / inner) % size == 0 || sameAsBefore(i);
    if (!constant)
      continue;
    for (int64_t i = 0, next = 0; i < total; ++i)
      if ((i / inner) % size == 0) {
        (isFloat() ? void(floats[next] = floats[i]) : void(ints[next] = ints[i]));
        ++next;
      }
    isFloat() ? floats.resize(total / size) : ints.resize(total / size);
    stored[dim] = 1;
  }
}

} // namespace par
