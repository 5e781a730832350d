#pragma once

#include "par/Onnx/Model.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace par {

/// What the initializers of a model are: trained, kept, or known.
struct ParameterTable {
  /// Initializers that are trained by default: what the exporter marked as PARAMETER; in files without such marks
  /// every float initializer of more than one element, or with the name of a module's weight or bias, that is no batch
  /// norm's statistic and says no shape.
  llvm::StringSet<> trainable;
  /// Initializers that a training step moves without a gradient: statistics of batch norms in training mode, and
  /// buffers that forward writes.
  llvm::StringSet<> moved;
  /// Means and variances of all batch norms. Where a model predicts they come with the weights, whatever the file says.
  llvm::StringSet<> statistics;
  /// Further names of an initializer, its own not among them: the name without the wrapper's prefix (`model.`), and
  /// those of tied parameters, which the signature lists without an initializer of that name.
  llvm::StringMap<std::vector<std::string>> aliases;
  /// The tied ones among these: (further name, initializer).
  std::vector<std::pair<std::string, std::string>> tied;
  /// Parameters of the signature without an initializer that are not found to be tied: unused, tied out of sight, or
  /// lost when the exporter folded them.
  std::vector<std::string> lost;
  /// The first segment that all names share where a module was wrapped (`model.`), with its dot; else "".
  std::string wrapper;
};

/// The exporter computed it, and gave it a name of its own (`onnx::MatMul_214`, `val_37`).
bool isRenamed(llvm::StringRef initializer);

/// PyTorch's names of the matrices that renamed initializers are the transposes of, by initializer: linear layers'
/// weights where a product has one on its right. They are known from the bias that the product's result meets, or as
/// the only product of a module without other nodes; an initializer of which neither tells is not in the map.
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

/// `MODULE/OpType` of every node, with `.1`, `.2`, ... in file order where one repeats.
std::vector<std::string> nodePaths(const onnx::Model &model);

} // namespace par
