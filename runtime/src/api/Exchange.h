// Memory through which arrays go between the caller and the ranks: a place for each input, each result, and for one
// tensor of the state.
#pragma once

#include "par/format/Bundle.h"

#include <span>

namespace par::api {

/// Rows of one call of an entry: `train` takes those of all its optimizer steps.
inline uint64_t rowsOfCall(const format::Manifest &manifest) { return manifest.batch * manifest.calls; }

/// Offsets in that memory, the same in every process.
class Exchange {
public:
  explicit Exchange(const format::Manifest &manifest);

  uint64_t bytes() const { return end; }
  /// The memory itself, of bytes() bytes.
  void lieIn(std::span<std::byte> bytes) { memory = bytes; }
  std::byte *begin() const { return memory.data(); }
  std::byte *input(size_t index) const { return memory.data() + inputs[index]; }
  std::byte *output(size_t index) const { return memory.data() + outputs[index]; }
  std::byte *tensor() const { return memory.data() + tensors; }

private:
  uint64_t take(uint64_t bytes);

  std::vector<uint64_t> inputs, outputs;
  uint64_t tensors = 0, end = 0;
  std::span<std::byte> memory;
};

} // namespace par::api
