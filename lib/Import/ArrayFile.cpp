#include "ArrayFile.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

namespace par {

static onnx::ElementType typeOf(llvm::StringRef name) {
  using onnx::ElementType;
  return llvm::StringSwitch<ElementType>(name)
      .Case("F64", ElementType::F64)
      .Case("F32", ElementType::F32)
      .Case("F16", ElementType::F16)
      .Case("BF16", ElementType::BF16)
      .Case("I64", ElementType::I64)
      .Case("I32", ElementType::I32)
      .Case("I16", ElementType::I16)
      .Case("I8", ElementType::I8)
      .Case("U64", ElementType::U64)
      .Case("U32", ElementType::U32)
      .Case("U16", ElementType::U16)
      .Case("U8", ElementType::U8)
      .Case("BOOL", ElementType::Bool)
      .Default(ElementType::Undefined);
}

/// Numbers of a JSON array, none of them negative; nothing if it is none.
static std::optional<Shape> numbersOf(const llvm::json::Array *array) {
  Shape numbers;
  if (!array)
    return std::nullopt;
  for (const llvm::json::Value &value : *array) {
    std::optional<int64_t> number = value.getAsInteger();
    if (!number || *number < 0)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

/// One entry of the header over the bytes that follow it.
static std::optional<StaticTensor> readEntry(const llvm::json::Object &entry, llvm::StringRef body) {
  onnx::ElementType type = typeOf(entry.getString("dtype").value_or(""));
  std::optional<Shape> shape = numbersOf(entry.getArray("shape")), range = numbersOf(entry.getArray("data_offsets"));
  if (type == onnx::ElementType::Undefined || !shape || !range || range->size() != 2)
    return std::nullopt;
  int64_t begin = (*range)[0], end = (*range)[1], size = onnx::byteSize(type);
  for (int64_t dim : *shape)
    if (llvm::MulOverflow(size, dim, size))
      return std::nullopt;
  if (begin > end || end > int64_t(body.size()) || end - begin != size)
    return std::nullopt;
  return StaticTensor::ofBytes(type, *shape, body.substr(begin, size));
}

std::optional<std::map<std::string, StaticTensor>> readArrays(llvm::StringRef file, std::string &reason) {
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    reason = buffer.getError().message();
    return std::nullopt;
  }
  llvm::StringRef bytes = (*buffer)->getBuffer();
  uint64_t length = bytes.size() < 8 ? 0 : llvm::support::endian::read64le(bytes.data());
  if (bytes.size() < 8 || length > bytes.size() - 8) {
    reason = "is no safetensors file";
    return std::nullopt;
  }
  llvm::Expected<llvm::json::Value> header = llvm::json::parse(bytes.substr(8, length));
  if (!header || !header->getAsObject()) {
    reason = header ? "the header is no JSON object" : llvm::toString(header.takeError());
    return std::nullopt;
  }
  std::map<std::string, StaticTensor> arrays;
  for (const auto &[key, entry] : *header->getAsObject()) {
    std::string name = llvm::StringRef(key).str();
    if (name == "__metadata__")
      continue;
    const llvm::json::Object *object = entry.getAsObject();
    std::optional<StaticTensor> value;
    if (object)
      value = readEntry(*object, bytes.drop_front(8 + length));
    if (!value) {
      reason = "the array \"" + name + "\" has a type that is not supported, or does not fit its bytes";
      return std::nullopt;
    }
    arrays[name] = std::move(*value);
  }
  return arrays;
}

} // namespace par
