#include "FoldKey.h"

namespace par {

namespace {
/// Bytes that differ for different values.
struct Key {
  std::string bytes;

  template <class T>
  void number(T value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  template <class T>
  void list(const T &values) {
    number(values.size());
    for (const auto &value : values)
      number(value);
  }
  void text(std::string_view value) {
    number(value.size());
    bytes += value;
  }
  void tensor(const StaticTensor &value) {
    number(value.getType());
    list(value.getShape());
    list(value.getStored());
    for (int64_t i = 0; i < value.getStoredCount(); ++i)
      value.isFloat() ? number(value.floatAt(i)) : number(value.intAt(i));
  }
  void tensor(const onnx::Tensor &value) {
    number(value.type);
    number(value.storage);
    list(value.dims);
    text(value.bytes);
    text(value.file);
    number(value.offset);
  }
};
} // namespace

/// Inputs of up to this many elements are compared by their elements.
static constexpr int64_t fewElements = 64;

std::string foldKey(const onnx::Node &node, int64_t opset, llvm::ArrayRef<const StaticTensor *> inputs) {
  Key key;
  key.number(opset);
  key.text(node.opType);
  for (const StaticTensor *input : inputs) {
    bool few = input && input->getStoredCount() <= fewElements;
    key.number(few);
    if (few)
      key.tensor(*input);
    else
      key.number(input);
  }
  for (const onnx::Attribute &attribute : node.attributes) {
    key.text(attribute.name);
    key.number(attribute.kind);
    key.number(attribute.f);
    key.number(attribute.i);
    key.text(attribute.s);
    key.list(attribute.floats);
    key.list(attribute.ints);
    key.number(attribute.strings.size());
    for (const std::string &value : attribute.strings)
      key.text(value);
    key.number(attribute.tensor.has_value());
    if (attribute.tensor)
      key.tensor(*attribute.tensor);
    key.number(attribute.graph.get());
  }
  return key.bytes;
}

} // namespace par
