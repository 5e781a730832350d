// The rules of one sharding at a node: its axes against the tensor's dims, its list of devices against the
// configuration.
#pragma once

#include "par/Onnx/Model.h"
#include "par/format/Printable.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace par::onnx {

/// The dims of the tensors that the file gives a shape. Values inside a body or a function are of another scope.
using Shapes = std::unordered_map<std::string, std::vector<Dim>>;

// Words of findings.
inline std::string number(int64_t value) { return std::to_string(value); }
inline std::string quoted(const std::string &name) { return "\"" + format::printable(name) + "\""; }
inline std::string counted(int64_t count, const std::string &word) {
  return number(count) + " " + word + (count == 1 ? "" : "s");
}

struct ShardingAtNode {
  const Node &node;
  const TensorSharding &sharding;
  const Shapes &shapes;
  const DeviceConfiguration *configuration; ///< null: unknown
  const std::string &place;                 ///< begin of every message
};

void checkSharding(const ShardingAtNode &at, std::vector<DeviceFinding> &findings);

} // namespace par::onnx
