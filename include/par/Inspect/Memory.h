// Bytes that ranks hold, by purpose.
#pragma once

#include "par/format/Bundle.h"

#include <optional>

namespace par {

/// Bytes of one rank of a role by purpose. `buffers` is the part of the peak that no other column explains; `host` are
/// bytes in host memory, which no other column counts.
struct RoleMemory {
  std::string name;
  size_t ranks = 0;
  uint64_t params = 0, grads = 0, states = 0, saved = 0, buffers = 0, peak = 0, host = 0;
};

/// One row a role: state by its tensor's kind; accumulators of gradients; values that forward keeps for backward, and
/// all others that have a slot for each microbatch. If gradients grow into the space of saved values, that column
/// has the rest.
std::vector<RoleMemory> measureMemory(const format::Bundle &bundle);

/// Values of one place and type that forward keeps of a microbatch for backward, those of several layers together.
struct SavedValues {
  std::string place;  ///< `h.0.mlp.c_fc, pytorch_utils.py:119`, of several layers `h.*.mlp.c_fc, ...`; empty: not known
  std::string layers; ///< `0 to 11`, `0, 2`; empty: it is of one place
  std::string type;   ///< `bf16[2x64x256]`
  size_t count = 0;
  uint64_t bytes = 0; ///< of each
};

/// Everything that a role keeps so, the largest first.
struct RoleSaved {
  std::string name;
  uint64_t bytes = 0; ///< of one microbatch
  size_t slots = 1;   ///< microbatches that are kept at once
  std::vector<SavedValues> values;
};

std::vector<RoleSaved> findSavedValues(const format::Bundle &bundle);

/// A program's name for a reader: "stage 0", of two on the same ranks "stages 0+2".
std::string nameOfRole(const std::string &program);

} // namespace par
