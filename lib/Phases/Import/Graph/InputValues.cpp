// Inputs that the plan binds when compiling (inputs.X.value): a rule, a list of numbers, or an array of a file.
#include "ArrayFile.h"
#include "GraphImporter.h"

namespace par {

using namespace mlir;

/// An element of a list; exact for integer types.
static bool readElement(StringRef text, onnx::ElementType type, StaticTensor &value, int64_t at) {
  int64_t whole = 0;
  uint64_t large = 0;
  double number = 0;
  bool isWhole = !text.getAsInteger(10, whole);
  if (!isWhole && !text.getAsInteger(10, large)) { // a u64 above i64's range, as its bits
    isWhole = true;
    whole = static_cast<int64_t>(large);
  }
  if (isWhole && !onnx::isFloat(type)) {
    value.setInt(at, whole);
    return value.intAt(at) == whole;
  }
  if (text.getAsDouble(number) || (!onnx::isFloat(type) && number != std::trunc(number)))
    return false;
  value.set(at, number);
  return true;
}

/// `[2, 3, 4]`: the elements in row-major order.
FailureOr<StaticTensor> GraphImporter::listedInput(const onnx::ValueInfo &info, RankedTensorType type, StringRef list) {
  SmallVector<StringRef> texts;
  list.drop_front().drop_back().split(texts, ',', -1, /*KeepEmpty=*/false);
  if (int64_t(texts.size()) != type.getNumElements())
    return error() << "inputs." << info.name << ".value has " << texts.size() << " numbers, the input is " << type;
  StaticTensor value(info.type, type.getShape(), type.getShape());
  for (auto [i, text] : llvm::enumerate(texts))
    if (!readElement(text.trim(), info.type, value, i))
      return error() << "inputs." << info.name << ".value holds " << text.trim() << ", which is no "
                     << onnx::spell(info.type);
  return value;
}

/// The array of the input's name in a file, or the only one.
FailureOr<StaticTensor> GraphImporter::filedInput(const onnx::ValueInfo &info, RankedTensorType type, StringRef file) {
  std::string reason;
  auto arrays = readArrays(file, reason);
  if (!arrays)
    return error() << "inputs." << info.name << ".value: " << file << ": " << reason;
  auto found = arrays->size() == 1 ? arrays->begin() : arrays->find(info.name);
  if (found == arrays->end())
    return error() << "inputs." << info.name << ".value: " << file << ": has no array \"" << info.name << "\"";
  const StaticTensor *value = &found->second;
  if (value->getShape() != type.getShape() || value->getType() != info.type) {
    InFlightDiagnostic diagnostic = error() << "inputs." << info.name << ".value: the array of " << file << " is "
                                            << onnx::spell(value->getType()) << "[";
    llvm::interleaveComma(value->getShape(), diagnostic);
    return diagnostic << "], the input is " << onnx::spell(info.type) << " " << type;
  }
  return *value;
}

/// Reads an input that is no tensor: the arrays NAME.0, NAME.1, ... of a sequence, or the array NAME of an optional,
/// which may be missing.
LogicalResult GraphImporter::declareFiled(const onnx::ValueInfo &info, StringRef file) {
  std::string reason;
  auto arrays = readArrays(file, reason);
  if (!arrays)
    return error() << "inputs." << info.name << ".value: " << file << ": " << reason;
  GraphValue value;
  for (size_t i = 0;; ++i) {
    std::string name = info.isSequence ? info.name + "." + std::to_string(i) : info.name;
    auto found = arrays->find(name);
    if (found == arrays->end() || (!info.isSequence && i > 0))
      break;
    if (found->second.getType() != info.type)
      return error() << "inputs." << info.name << ".value: the array \"" << name << "\" of " << file << " is "
                     << onnx::spell(found->second.getType()) << ", the input holds " << onnx::spell(info.type);
    GraphValue part{std::make_shared<StaticTensor>(found->second), {}, {}, false};
    if (!info.isSequence)
      value = std::move(part);
    else
      value.sequence.push_back(std::move(part));
  }
  value.isSequence = info.isSequence && (!info.isOptional || !value.sequence.empty());
  values[info.name] = std::move(value);
  return success();
}

FailureOr<GraphValue> GraphImporter::constantInput(const onnx::ValueInfo &info, RankedTensorType type, StringRef rule) {
  StaticTensor one = StaticTensor::scalar(info.type, 0);
  if (rule.starts_with("[") || rule.ends_with(".safetensors")) {
    FailureOr<StaticTensor> value =
        rule.starts_with("[") ? listedInput(info, type, rule) : filedInput(info, type, rule);
    if (failed(value))
      return failure();
    return GraphValue{std::make_shared<StaticTensor>(std::move(*value)), {}, {}, false};
  }
  if (rule == "ones")
    one = StaticTensor::scalar(info.type, 1);
  else if (rule == "iota" && type.getRank() > 0) {
    one = StaticTensor(info.type, {type.getShape().back()}, {type.getShape().back()});
    for (int64_t i = 0; i < type.getShape().back(); ++i)
      one.setInt(i, i);
  } else if (rule != "zeros" && !readElement(rule, info.type, one, 0))
    return error() << "inputs." << info.name << ".value is \"" << rule << "\", expected zeros, ones, iota, a "
                   << onnx::spell(info.type) << ", a list of them or a file of arrays (.safetensors)";
  return GraphValue{std::make_shared<StaticTensor>(one.expanded(type.getShape())), {}, {}, false};
}

} // namespace par
