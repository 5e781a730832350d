// Annotations of one configuration, taken apart node by node.
#pragma once

#include "DeviceMesh.h"

#include "par/Compiler/Model.h"

namespace par {

/// The shards of one axis of a tensor, in a plan's terms.
struct ReadAxis {
  int64_t axis; ///< from the first if the tensor's rank is known
  int64_t shards;
  int64_t blocks; ///< parts side by side that are sharded alike
};

/// A sharding at a node.
struct ReadSharding {
  size_t node;
  const onnx::TensorSharding *said;
  std::vector<ReadAxis> axes;
  size_t group = 0; ///< of devices
};

/// Everything that the annotations say, without the names of axes.
struct ReadDevices {
  const onnx::DeviceConfiguration *configuration = nullptr;
  std::vector<std::optional<size_t>> stageOf; ///< of nodes: 0, 1, ... in the order of their numbers
  std::vector<int64_t> stages;                ///< the numbers as the file has them
  std::vector<size_t> groupOf;                ///< of stages: which group of devices
  std::vector<std::vector<int64_t>> groups;   ///< devices that hold the same stages, ascending
  std::vector<ReadSharding> shardings;
};

/// The name that errors use: `node "fc1"`.
std::string nameOfNode(const onnx::Model &model, size_t node);

/// Takes the annotations apart. False, after errors, if a plan has no word for some.
bool readDevices(const Model &model, llvm::StringRef configuration, DiagnosticSink sink, ReadDevices &read);

/// The shard of each axis at each place of the group's devices in the order of `members`.
std::vector<ShardOfPlace> shardsOf(const ReadSharding &sharding, llvm::ArrayRef<int64_t> members);

} // namespace par
