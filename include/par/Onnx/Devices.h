// ONNX's multi-device annotations (IR version 11), as the file has them, and the rules that they keep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace par::onnx {

struct Model;

/// IR version that has the annotations.
constexpr int64_t firstIrOfDevices = 11;

/// Part of an axis: N blocks in M shards. An axis has one, or several, major first, if a reshape made it of several.
struct SimpleSharding {
  std::optional<int64_t> size;       ///< N as a number
  std::optional<std::string> symbol; ///< or as a symbol; a file may give neither
  std::optional<int64_t> shards;     ///< M
  bool operator==(const SimpleSharding &) const = default;
};

struct ShardedAxis {
  std::optional<int64_t> axis; ///< negative: from the last
  std::vector<SimpleSharding> parts;
  bool operator==(const ShardedAxis &) const = default;
};

/// The devices that hold one shard alike, under the number by which the list of devices names them.
struct DeviceGroup {
  int64_t key = 0;
  std::vector<int64_t> devices;
  bool operator==(const DeviceGroup &) const = default;
};

/// How an input or output of a node lies on devices. Shard i, row by row over the axes in the order in which they are
/// listed, is on `devices[i]`, a device or a group.
struct TensorSharding {
  std::string tensor; ///< "" where the file names none; so is every name below
  std::vector<int64_t> devices;
  std::vector<DeviceGroup> groups;
  std::vector<ShardedAxis> axes;
  bool operator==(const TensorSharding &) const = default;

  /// The first group of each key; a number without one is a device.
  std::unordered_map<int64_t, const DeviceGroup *> groupsByKey() const;
  /// The devices of each entry of `devices`.
  std::vector<std::vector<int64_t>> holders() const;
};

/// The annotation of a node for one configuration.
struct NodeDevices {
  std::string configuration;
  std::vector<TensorSharding> shardings;
  std::optional<int64_t> stage; ///< of a pipeline
  bool operator==(const NodeDevices &) const = default;
};

/// A set of devices, numbered from 0.
struct DeviceConfiguration {
  std::string name;
  std::optional<int64_t> devices;
  std::vector<std::string> names; ///< none, or one a device
  bool operator==(const DeviceConfiguration &) const = default;
};

/// A broken rule, or a note about annotations that are right.
struct DeviceFinding {
  std::string message; ///< `node "fc1": tensor "x" in "tp2": axis 4 of a tensor of rank 3, ...`
  bool isNote = false;
};

/// Everything that is wrong with the annotations of a model, in the order of the file: names, counts, ranges of axes,
/// devices and groups, order of stages. A shape that the file does not have is not guessed.
std::vector<DeviceFinding> checkDevices(const Model &model);

/// Numbers of what the annotations of one configuration say.
struct DeviceCounts {
  int64_t nodes = 0, shardings = 0, stages = 0; ///< stages: different numbers
};
DeviceCounts countDevices(const Model &model, const std::string &configuration);

/// Writes the model of `model.path` with these annotations in place of its own, those of bodies and functions
/// included, the rest of the file as it is. `nodes` has one entry a node of the main graph. Returns "" or what failed,
/// a lower-case sentence without the path.
std::string writeDevices(const Model &model, const DeviceConfiguration &configuration,
                         const std::vector<std::optional<NodeDevices>> &nodes, const std::string &path);

} // namespace par::onnx
