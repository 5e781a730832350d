#include "par/Interpreter/Interpreter.h"

#include "par/format/SafetensorsHeader.h"

#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace llvm::support;

namespace par::interp {
namespace {

/// The type of an array's elements here; none for those that are not read.
Type elementOf(format::DType type, MLIRContext *context) {
  Builder builder(context);
  switch (type) {
  case format::DType::F32:
    return builder.getF32Type();
  case format::DType::F64:
    return builder.getF64Type();
  case format::DType::I32:
    return builder.getI32Type();
  case format::DType::I64:
    return builder.getI64Type();
  case format::DType::I1:
    return builder.getI1Type();
  default:
    return {};
  }
}

int64_t integerAt(const char *at, unsigned bytes) {
  if (bytes == 1)
    return static_cast<int64_t>(*at != 0);
  return bytes == 4 ? endian::read32le(at) : static_cast<int64_t>(endian::read64le(at));
}

double floatAt(const char *at, unsigned bytes) {
  return bytes == 4 ? llvm::bit_cast<float>(endian::read32le(at)) : llvm::bit_cast<double>(endian::read64le(at));
}

std::optional<Tensor> readArray(const format::SafetensorsEntry &entry, StringRef data, MLIRContext *context) {
  Type element = elementOf(entry.type, context);
  if (!element)
    return std::nullopt;
  Tensor tensor(RankedTensorType::get(entry.shape, element));
  unsigned bytes = format::sizeOf(entry.type);
  for (int64_t i = 0, n = tensor.getSize(); i < n; ++i) {
    const char *at = data.data() + i * bytes;
    if (tensor.isFloat())
      tensor.mutableFloats()[i] = floatAt(at, bytes);
    else
      tensor.mutableInts()[i] = integerAt(at, bytes);
  }
  return tensor;
}

} // namespace

std::optional<Named> readValues(StringRef path, MLIRContext *context, std::string &reason) {
  auto file = format::mapSafetensors(path.str());
  if (!file) {
    reason = file.message();
    return std::nullopt;
  }
  Named values;
  for (const format::SafetensorsEntry &entry : file->header.arrays) {
    std::optional<Tensor> array = readArray(entry, file->bytesOf(entry), context);
    if (!array) {
      reason = "array \"" + entry.name + "\" is not of F32, F64, I32, I64 or BOOL";
      return std::nullopt;
    }
    values[entry.name] = *array;
  }
  if (format::Status status = file->file.stillWhole(); !status) {
    reason = status.message();
    return std::nullopt;
  }
  return values;
}

} // namespace par::interp
