// ONNX's multi-device annotations as a plan, and a plan as annotations.
#pragma once

#include "par/Compiler/Compiler.h"

#include <map>
#include <set>

namespace par {

/// A text in the language of plans, with a name for errors in it.
struct DevicePlan {
  std::string name, text;
  std::string configuration; ///< that it is of
};

/// The annotations of one configuration (empty: the only one) as a plan: a mesh from the lists of devices, cuts from
/// the stages, a rule of `shard` for each parameter, input and output of a node. Says only what a plan says exactly;
/// nothing, after errors at nodes of the model, where the annotations break ONNX's rules or say something else:
///
///     device [0, 1], axis 0 of the weight of fc1 in 2 shards     mesh: {tp: 2}
///                                                                shard: {"^fc1.weight": {0: tp, closed: true}}
std::optional<DevicePlan> planOfDevices(const Model &model, llvm::StringRef configuration, DiagnosticSink sink);

/// Annotations of a compiled step.
struct StepDevices {
  onnx::DeviceConfiguration configuration;
  std::vector<std::optional<onnx::NodeDevices>> nodes; ///< one a node of the model's graph
  /// Values that are left out: unreduced sums, tensors over a part of an axis, outputs whose shape the file does not
  /// have.
  int64_t sums = 0, partAxes = 0, unshaped = 0;
  std::set<size_t> parted;                ///< nodes whose ops are on several stages, which are left out, too
  std::map<size_t, std::string> reshaped; ///< and outputs that the compiler computes in another shape, by node
};

/// The places of the parameters, inputs and values of a plan's forward. `compiled` kept its module after Annotate,
/// `after` is that after Propagate. Values that the compiler folds have no place and get no annotation.
StepDevices devicesOfStep(const Model &model, const Compiled &compiled, mlir::ModuleOp after);

/// Annotations of the model that the compiled step contradicts, as sentences at nodes: a setting or another file of the
/// plan says otherwise, or a cut cannot part the graph so.
std::vector<std::string> findOtherDevices(const onnx::Model &model, llvm::StringRef configuration,
                                          const StepDevices &step);

} // namespace par
