#pragma once

#include "par/Onnx/Model.h"
#include "par/Phases/Import/StaticTensor.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

#include <memory>

namespace par {

/// Concats that only GatherNDs read, as indices: the masks of transformers index tables by (sample, position). Joined,
/// the indices have elements for each sample and position; the columns have one for each sample, or for each position.
class JoinedIndices {
public:
  /// `others` are names that something besides the nodes reads.
  JoinedIndices(llvm::ArrayRef<onnx::Node> nodes, const llvm::StringSet<> &others);

  using Known = llvm::function_ref<const StaticTensor *(const std::string &name)>;
  /// Evaluates what reads the Concat, whose value is then needed no more; false if that needs the value.
  bool fold(const onnx::Node &concat, Known known);
  /// The value of a GatherND that was evaluated so; else null.
  std::shared_ptr<const StaticTensor> resultOf(const onnx::Node &gather) const { return results.lookup(&gather); }

private:
  llvm::DenseMap<const onnx::Node *, llvm::SmallVector<const onnx::Node *>> readers;
  llvm::DenseMap<const onnx::Node *, std::shared_ptr<const StaticTensor>> results;
};

} // namespace par
