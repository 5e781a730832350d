// Merges parameters tied by `train.tie`: the graph reads one of them in place of both.
#include "par/Phases/Import/Import.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>

namespace par {

/// The node that makes a copy of its owner. Its module, which no other node is in, is the copy's name, so that it takes
/// no name from other nodes.
static onnx::Node makeCopy(const ParameterTie &tie) {
  onnx::Node node;
  node.name = node.modulePath = tie.name;
  node.opType = tie.transposed ? "Transpose" : "Identity";
  node.inputs = {tie.owner};
  node.outputs = {tie.name};
  return node;
}

void tieInModel(onnx::Model &model, llvm::ArrayRef<ParameterTie> ties) {
  auto isCopy = [&](llvm::StringRef name) {
    return llvm::any_of(ties, [&](const ParameterTie &tie) { return tie.name == name; });
  };
  llvm::erase_if(model.initializers, [&](const onnx::Tensor &tensor) { return isCopy(tensor.name); });
  llvm::erase_if(model.signature, [&](const onnx::SignatureEntry &entry) { return isCopy(entry.target); });
  std::vector<onnx::Node> copies;
  for (const ParameterTie &tie : ties)
    copies.push_back(makeCopy(tie));
  model.nodes.insert(model.nodes.begin(), copies.begin(), copies.end());
}

bool holdsOtherNumbers(const onnx::Model &model, const ParameterTie &tie) {
  std::optional<std::string> bytes[2];
  const onnx::Tensor *owner = nullptr;
  for (const onnx::Tensor &tensor : model.initializers) {
    bool isOwner = tensor.name == tie.owner;
    std::string reason;
    if (isOwner || tensor.name == tie.name)
      bytes[isOwner] = onnx::readTensor(model, tensor, reason);
    if (isOwner)
      owner = &tensor;
  }
  if (!bytes[0] || !bytes[1])
    return false;
  if (!tie.transposed || bytes[0]->size() != bytes[1]->size())
    return *bytes[0] != *bytes[1];
  size_t size = onnx::byteSize(owner->type), rows = owner->dims[0], columns = owner->dims[1];
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      if (std::memcmp(bytes[0]->data() + (column * rows + row) * size,
                      bytes[1]->data() + (row * columns + column) * size, size))
        return true;
  return false;
}

} // namespace par
