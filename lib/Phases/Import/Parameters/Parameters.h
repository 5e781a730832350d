#pragma once

#include "par/Onnx/Model.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace par {

/// The roles of a model's initializers: trained, moved or constant.
struct ParameterTable {
  /// Initializers that are trained by default: those that the exporter marked as PARAMETER. In files without such
  /// marks, every float initializer that has more than one element or a module's name of weight or bias, and that is
  /// neither a batch norm's statistic nor a shape.
  llvm::StringSet<> trainable;
  /// Initializers that a training step moves without a gradient: statistics of batch norms in training mode, and
  /// buffers that forward writes.
  llvm::StringSet<> moved;
  /// Means and variances of all batch norms. In inference they come with the weights, whatever the file says.
  llvm::StringSet<> statistics;
  /// Other names of an initializer: the name without the wrapper's prefix (`model.`), and those of tied parameters,
  /// which the signature lists without an initializer of that name.
  llvm::StringMap<std::vector<std::string>> aliases;
  /// The tied ones among these: (further name, initializer).
  std::vector<std::pair<std::string, std::string>> tied;
  /// Parameters of the signature without an initializer that are not found to be tied: unused, tied out of sight, or
  /// lost when the exporter folded them.
  std::vector<std::string> lost;
  /// The first segment that all names share if a module was wrapped (`model.`), with its dot; else "".
  std::string wrapper;
};

/// Whether the exporter computed it and gave it a name of its own (`onnx::MatMul_214`, `val_37`).
bool isRenamed(llvm::StringRef initializer);

/// PyTorch's names of the matrices that renamed initializers are the transposes of, by initializer: weights of linear
/// layers, right operands of matmuls. The name comes from the bias added to the matmul, or from a module whose only
/// node is the matmul; other initializers are not in the map.
llvm::StringMap<std::string> transposedWeights(const onnx::Model &model);

/// Every node of the graph and of the bodies in it (If, Loop, Scan), in file order, an outer node before those in its
/// bodies.
void forEachNode(const onnx::Model &model, llvm::function_ref<void(const onnx::Node &)> visit);

/// Adds the names that a node reads, or a body in it; of a body, its outputs too.
void collectReads(const onnx::Node &node, llvm::StringSet<> &names);
void collectReads(const onnx::Graph &body, llvm::StringSet<> &names);

/// Values that nothing but shapes depend on: scales of Resize, floats that become sizes.
llvm::StringSet<> structuralValues(const onnx::Model &model);

ParameterTable classifyParameters(const onnx::Model &model);

/// `MODULE/OpType` of every node; repeated ones get `.1`, `.2`, ... in file order.
std::vector<std::string> nodePaths(const onnx::Model &model);

} // namespace par
