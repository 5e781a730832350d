// Memory through which arrays go between the caller and the ranks: two places for each input, one for each result, and
// one for a tensor of the state.
#pragma once

#include "par/format/Bundle.h"

#include <array>
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
  /// `place`: 0 or 1, see Ahead.
  std::byte *input(size_t index, uint64_t place) const { return memory.data() + inputs[index][place]; }
  std::byte *output(size_t index) const { return memory.data() + outputs[index]; }
  std::byte *tensor() const { return memory.data() + tensors; }
  /// The number of the last arrays that arrive() told, in whichever process.
  uint64_t arrived() const;
  void arrive(uint64_t number) const;

private:
  uint64_t take(uint64_t bytes);

  std::vector<std::array<uint64_t, 2>> inputs;
  std::vector<uint64_t> outputs;
  uint64_t tensors = 0, end = 0;
  std::span<std::byte> memory;
};

} // namespace par::api
