// Evaluates GatherNDs of known tensors without joining their indices.
#include "JoinedIndices.h"
#include "../Parameters/Parameters.h"
#include "GraphImporter.h"
#include "par/Phases/Import/Fold.h"

namespace par {

static bool isGather(const onnx::Node &node) {
  return node.opType == "GatherND" && node.domain.empty() && node.inputs.size() == 2 && node.outputs.size() == 1;
}

JoinedIndices::JoinedIndices(llvm::ArrayRef<onnx::Node> nodes, const llvm::StringSet<> &others) {
  llvm::StringSet<> read = others;
  llvm::StringMap<llvm::SmallVector<const onnx::Node *>> gathers;
  for (const onnx::Node &node : nodes)
    if (isGather(node)) {
      read.insert(node.inputs[0]);
      gathers[node.inputs[1]].push_back(&node);
    } else {
      collectReads(node, read);
    }
  for (const onnx::Node &node : nodes)
    if (node.opType == "Concat" && node.domain.empty() && node.outputs.size() == 1 && !read.contains(node.outputs[0]))
      if (auto found = gathers.find(node.outputs[0]); found != gathers.end())
        readers[&node] = found->second;
}

bool JoinedIndices::fold(const onnx::Node &concat, Known known) {
  auto found = readers.find(&concat);
  if (found == readers.end())
    return false;
  llvm::SmallVector<const StaticTensor *> columns;
  for (const std::string &input : concat.inputs)
    columns.push_back(known(input));
  llvm::SmallVector<std::shared_ptr<const StaticTensor>> values;
  for (const onnx::Node *gather : found->second) {
    llvm::FailureOr<StaticTensor> value = gatherByColumns(*gather, known(gather->inputs[0]), concat, columns);
    if (failed(value) || needsRecipe(*value)) // which would read the joined indices
      return false;
    values.push_back(std::make_shared<StaticTensor>(std::move(*value)));
  }
  for (auto [gather, value] : llvm::zip(found->second, values))
    results[gather] = value;
  return true;
}

} // namespace par
