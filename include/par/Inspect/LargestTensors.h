// The tensors that take most of a rank's memory.
#pragma once

#include "par/format/Bundle.h"

namespace par {

/// Tensors of one name and type, those of several layers together.
struct LargeTensor {
  std::string name;   ///< `h.*.mlp.c_fc.weight`, `gradient of ...`, or the place that a value is from
  std::string type;   ///< `bf16[4x1024]`, of one
  size_t count = 0;   ///< with one slot for each microbatch that is kept
  uint64_t bytes = 0; ///< of all
};

/// The largest of the role with the highest peak, those that lie in memory beside each other or in turn.
std::vector<LargeTensor> findLargestTensors(const format::Bundle &bundle, size_t most);

} // namespace par
