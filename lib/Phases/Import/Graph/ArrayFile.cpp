#include "ArrayFile.h"

#include "par/format/SafetensorsHeader.h"

namespace par {

static onnx::ElementType typeOf(format::DType type) {
  using onnx::ElementType;
  switch (type) {
  case format::DType::F64:
    return ElementType::F64;
  case format::DType::F32:
    return ElementType::F32;
  case format::DType::F16:
    return ElementType::F16;
  case format::DType::BF16:
    return ElementType::BF16;
  case format::DType::I64:
    return ElementType::I64;
  case format::DType::I32:
    return ElementType::I32;
  case format::DType::I16:
    return ElementType::I16;
  case format::DType::I8:
    return ElementType::I8;
  case format::DType::U64:
    return ElementType::U64;
  case format::DType::U32:
    return ElementType::U32;
  case format::DType::U16:
    return ElementType::U16;
  case format::DType::U8:
    return ElementType::U8;
  case format::DType::I1:
    return ElementType::Bool;
  }
  return ElementType::Undefined;
}

std::optional<std::map<std::string, StaticTensor>> readArrays(llvm::StringRef path, std::string &reason) {
  auto file = format::mapSafetensors(path.str());
  if (!file) {
    reason = file.message();
    return std::nullopt;
  }
  std::map<std::string, StaticTensor> arrays;
  for (const format::SafetensorsEntry &entry : file->header.arrays) {
    std::optional<StaticTensor> value = StaticTensor::ofBytes(typeOf(entry.type), entry.shape, file->bytesOf(entry));
    if (!value) {
      reason = "the array \"" + entry.name + "\" cannot be held";
      return std::nullopt;
    }
    arrays[entry.name] = std::move(*value);
  }
  if (format::Status status = file->file.stillWhole(); !status) {
    reason = status.message();
    return std::nullopt;
  }
  return arrays;
}

} // namespace par
