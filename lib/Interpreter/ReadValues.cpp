#include "par/Interpreter/Interpreter.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace llvm::support;

namespace par::interp {
namespace {

/// An element type of the format: its bytes, and what it is here.
struct Element {
  Type type;
  unsigned bytes = 0;
};

Element elementOf(StringRef name, MLIRContext *context) {
  Builder builder(context);
  return llvm::StringSwitch<Element>(name)
      .Case("F32", {builder.getF32Type(), 4})
      .Case("F64", {builder.getF64Type(), 8})
      .Case("I32", {builder.getI32Type(), 4})
      .Case("I64", {builder.getI64Type(), 8})
      .Case("BOOL", {builder.getI1Type(), 1})
      .Default({});
}

int64_t integerAt(const char *at, unsigned bytes) {
  if (bytes == 1)
    return static_cast<int64_t>(*at != 0);
  return bytes == 4 ? endian::read32le(at) : static_cast<int64_t>(endian::read64le(at));
}

double floatAt(const char *at, unsigned bytes) {
  return bytes == 4 ? llvm::bit_cast<float>(endian::read32le(at))
                    : llvm::bit_cast<double>(endian::read64le(at));
}

/// Numbers of a JSON array, none of them negative; nullopt if it is none.
std::optional<SmallVector<int64_t>> numbers(const llvm::json::Array *array) {
  SmallVector<int64_t> result;
  for (const llvm::json::Value &value : array ? *array : llvm::json::Array()) {
    std::optional<int64_t> number = value.getAsInteger();
    if (!number || *number < 0)
      return std::nullopt;
    result.push_back(*number);
  }
  return array ? std::optional(result) : std::nullopt;
}

/// One entry of the header over the bytes that follow it.
std::optional<Tensor> readArray(const llvm::json::Object &entry, StringRef body, MLIRContext *context) {
  Element element = elementOf(entry.getString("dtype").value_or(""), context);
  auto shape = numbers(entry.getArray("shape")), range = numbers(entry.getArray("data_offsets"));
  if (!element.type || !shape || !range || range->size() != 2)
    return std::nullopt;
  int64_t begin = (*range)[0], end = (*range)[1], size = element.bytes;
  for (int64_t dim : *shape)
    if (llvm::MulOverflow(size, dim, size))
      return std::nullopt;
  if (begin > end || end > static_cast<int64_t>(body.size()) || end - begin != size)
    return std::nullopt;
  Tensor tensor(RankedTensorType::get(*shape, element.type));
  for (int64_t i = 0, n = tensor.getSize(); i < n; ++i) {
    const char *at = body.data() + begin + i * element.bytes;
    if (tensor.isFloat())
      tensor.mutableFloats()[i] = floatAt(at, element.bytes);
    else
      tensor.mutableInts()[i] = integerAt(at, element.bytes);
  }
  return tensor;
}

} // namespace

/// The format is a header's length in 8 bytes, the header in JSON, then the arrays' bytes, little-endian.
std::optional<Named> readValues(StringRef file, MLIRContext *context, std::string &reason) {
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    reason = buffer.getError().message();
    return std::nullopt;
  }
  StringRef bytes = (*buffer)->getBuffer();
  uint64_t length = bytes.size() < 8 ? 0 : endian::read64le(bytes.data());
  if (bytes.size() < 8 || length > bytes.size() - 8) {
    reason = "is no safetensors file: of " + std::to_string(bytes.size()) + " bytes the header would take " +
             std::to_string(length);
    return std::nullopt;
  }
  llvm::Expected<llvm::json::Value> header = llvm::json::parse(bytes.substr(8, length));
  if (!header || !header->getAsObject()) {
    reason = header ? "the header is no JSON object" : llvm::toString(header.takeError());
    return std::nullopt;
  }
  Named values;
  for (const auto &[name, entry] : *header->getAsObject()) {
    if (name == "__metadata__")
      continue;
    const llvm::json::Object *object = entry.getAsObject();
    std::optional<Tensor> array;
    if (object)
      array = readArray(*object, bytes.drop_front(8 + length), context);
    if (!array) {
      reason = "array \"" + name.str() + "\" is not of F32, F64, I32, I64 or BOOL or does not fit its bytes";
      return std::nullopt;
    }
    values[name.str()] = *array;
  }
  return values;
}

} // namespace par::interp
