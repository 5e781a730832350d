// A mesh of named axes found in lists of devices.
#pragma once

#include "par/Onnx/Devices.h"
#include "par/Plan/Model/Plan.h"

namespace par {

/// The shards of one dim by place: the shard that each place of a stage's mesh holds.
using ShardOfPlace = std::vector<int64_t>;

/// The axes of a stage, outermost first, and the devices at its places, of which the last axis varies fastest.
struct DeviceMesh {
  std::vector<std::pair<std::string, int64_t>> axes;
  std::string pipeline;                      ///< the axis along which stages lie; empty: there is one stage
  size_t pipelineAt = 0;                     ///< its place among the axes, before the one of this index
  std::vector<std::string> order;            ///< of all axes, by which devices are numbered; empty: as written
  std::vector<std::vector<int64_t>> members; ///< devices of each group of ranks that hold stages, by place

  int64_t places() const { return members.empty() ? 0 : int64_t(members.front().size()); }
  /// The axes, major first, that give each place this shard of `shards`; nothing if none do.
  std::optional<PlanAxes> axesOf(const ShardOfPlace &shardOf, int64_t shards) const;
};

/// The coordinates that names of devices say: `dp=0,tp=1`. Nothing if they are no names of that kind.
std::optional<DeviceMesh> meshOfNames(const onnx::DeviceConfiguration &configuration,
                                      llvm::ArrayRef<std::vector<int64_t>> groups);

/// The places where a digit of the shard changes: 1, and products of sizes of axes from the innermost on. Nothing if
/// the shards are of no mesh: 0 1 1 0.
std::optional<std::vector<int64_t>> bordersOf(const ShardOfPlace &shardOf);

/// Groups of devices, equal in size, as an axis beside the places within a group; nothing if they are not one.
struct GroupStride {
  int64_t stride; ///< places of a group between two that the axis parts
};
std::optional<GroupStride> strideOf(llvm::ArrayRef<std::vector<int64_t>> groups);

} // namespace par
